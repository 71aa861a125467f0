//! How much the service of `hq-interop` does at the same time.

use std::convert::Infallible;
use std::future::ready;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use swiftwater::quic::observe::{Observation, Observer, ObserverFactory};
use swiftwater::quic::wire::Frame;
use swiftwater::units::{Instant, Side};
use swiftwater::{
    Client, ConnectionError, DevCertificate, ReadError, RecvStream, SendStream, Server,
};
use swiftwater_cli::hq::service::{MAX_REQUESTS, serve_connection};
use swiftwater_cli::hq::{ALPN, request};
use swiftwater_http::web::body::Body;
use tokio::sync::{Notify, mpsc, watch};
use tower::service_fn;

/// Fires when a RESET_STREAM frame arrives.
#[derive(Clone, Debug, Default)]
struct ResetSignal(Arc<Notify>);

impl ObserverFactory for ResetSignal {
    fn observer(&self, _: Side) -> Option<Box<dyn Observer>> {
        Some(Box::new(self.clone()))
    }
}

impl Observer for ResetSignal {
    fn observe(&mut self, _: Instant, observation: &Observation<'_>) {
        if let Observation::PacketReceived { payload, .. } = observation
            && payload
                .frames()
                .any(|frame| matches!(frame, Frame::ResetStream { .. }))
        {
            self.0.notify_one();
        }
    }
}

async fn answer(mut recv: RecvStream) -> Vec<u8> {
    recv.read_to_end(1000).await.unwrap()
}

async fn complete(send: &mut SendStream, rest: &[u8]) {
    send.write_all(rest).await.unwrap();
    send.finish().unwrap();
}

/// A server that answers every request with `content`, and logs the path of each.
fn serve(
    content: &'static [u8],
    send_timeout: Duration,
) -> (SocketAddr, Client, mpsc::UnboundedReceiver<String>) {
    serve_observed(content, send_timeout, &ResetSignal::default())
}

/// The same, with a client that fires `resets`.
fn serve_observed(
    content: &'static [u8],
    send_timeout: Duration,
    resets: &ResetSignal,
) -> (SocketAddr, Client, mpsc::UnboundedReceiver<String>) {
    let certificate = DevCertificate::generate(["localhost"]).unwrap();
    let server = Server::builder()
        .certificate_pem(certificate.certificate_pem(), certificate.private_key_pem())
        .alpn([ALPN])
        .transport(|transport| transport.max_concurrent_bidi_streams = 1000)
        .bind("127.0.0.1:0".parse().unwrap())
        .unwrap();
    let address = server.local_addr();
    let (asked, log) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let (_drain, draining) = watch::channel(false);
        while let Some(connection) = server.accept().await {
            let asked = asked.clone();
            let service = service_fn(move |request: Request<Body>| {
                let _ = asked.send(request.uri().to_string());
                ready(Ok::<_, Infallible>(Response::new(Body::full(content))))
            });
            tokio::spawn(serve_connection(
                connection,
                service,
                draining.clone(),
                send_timeout,
            ));
        }
    });
    let client = Client::builder()
        .trust_only([certificate.certificate_der()])
        .alpn([ALPN])
        // What is not read is not sent.
        .transport(|transport| {
            transport.stream_receive_window = 20_000_u64.into();
            transport.observer = Some(Arc::new(resets.clone()));
        })
        .build()
        .unwrap();
    (address, client, log)
}

/// Clients may be allowed more streams than are served at once. The requests beyond wait.
#[tokio::test]
async fn requests_beyond_the_limit_wait() {
    let (address, client, mut log) = serve(b"content", Duration::from_secs(60));
    let busy = client.connect_to(address, "localhost").await.unwrap();
    let mut waiting = Vec::new();
    for _ in 0..MAX_REQUESTS {
        let (mut send, recv) = busy.open_bi().await.unwrap();
        send.write_all(b"GET /x").await.unwrap();
        waiting.push((send, recv));
    }
    let (mut send, late) = busy.open_bi().await.unwrap();
    complete(&mut send, &request("/x?late")).await;
    // Time enough for the late request to be answered, were it served: others are, one after another.
    let other = client.connect_to(address, "localhost").await.unwrap();
    for _ in 0..50 {
        let (mut send, recv) = other.open_bi().await.unwrap();
        complete(&mut send, &request("/x?other")).await;
        assert_eq!(answer(recv).await, b"content");
        assert_eq!(log.recv().await.unwrap(), "/x?other");
    }
    let (mut send, recv) = waiting.pop().unwrap();
    complete(&mut send, b"?first\r\n").await;
    assert_eq!(answer(recv).await, b"content");
    assert_eq!(answer(late).await, b"content");
    assert_eq!(log.recv().await.unwrap(), "/x?first");
    assert_eq!(log.recv().await.unwrap(), "/x?late");
}

/// A client that does not read a response loses it, and only that.
#[tokio::test]
async fn a_response_that_is_not_taken_ends() {
    static LARGE: [u8; 20_000_000] = [7; 20_000_000];
    let resets = ResetSignal::default();
    let (address, client, _log) = serve_observed(&LARGE, Duration::from_millis(500), &resets);
    let connection = client.connect_to(address, "localhost").await.unwrap();
    let (mut send, mut idle) = connection.open_bi().await.unwrap();
    complete(&mut send, &request("/x")).await;
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    complete(&mut send, &request("/y")).await;
    let mut read = 0;
    while let Some(chunk) = recv.read_chunk(1 << 20).await.unwrap() {
        read += chunk.len();
    }
    assert_eq!(read, LARGE.len());
    // The server resets the response of which nothing is read; the rest of it is not sent.
    resets.0.notified().await;
    let outcome = async {
        loop {
            match idle.read_chunk(1 << 20).await {
                Ok(Some(_)) => {}
                other => return other,
            }
        }
    };
    assert!(matches!(outcome.await, Err(ReadError::Reset(500))));
}

/// Requests that are cancelled cost the server what others might need.
#[tokio::test]
async fn a_client_that_cancels_too_many_requests_is_sent_away() {
    static LARGE: [u8; 1_000_000] = [7; 1_000_000];
    let (address, client, _log) = serve(&LARGE, Duration::from_secs(60));
    let connection = client.connect_to(address, "localhost").await.unwrap();
    for _ in 0..100_000 {
        let Ok((mut send, mut recv)) = connection.open_bi().await else {
            break;
        };
        if send.write_all(&request("/x")).await.is_err() {
            break;
        }
        // The response has started, so that not only the request is cancelled.
        if recv.read_chunk(1).await.is_err() {
            break;
        }
        let _ = recv.stop(0);
    }
    let reason = connection.closed().await;
    assert!(
        matches!(reason, ConnectionError::PeerApplication { code: 429, .. }),
        "{reason:?}"
    );
}
