//! Requests in early data (RFC 8470) on loopback.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use http::{Request, Response};
use swiftwater_http::h3;
use swiftwater_http::udp::SendRequest;
use swiftwater_http::web::body::Body;
use swiftwater_http::web::early_data::EarlyData;
use swiftwater_tls::{ServerId, SessionStore};
use tokio::net::UdpSocket;
use tokio::sync::watch;
use tower::service_fn;

use crate::pair::{NAME, Pair, get, guard, read};

/// Forwards datagrams between a client and the server at `to`; what the server sends waits while
/// `answers` is false. Returns the address for the client.
async fn relay(to: SocketAddr, mut answers: watch::Receiver<bool>) -> SocketAddr {
    let [front, back] = [
        UdpSocket::bind("127.0.0.1:0").await.unwrap(),
        UdpSocket::bind("127.0.0.1:0").await.unwrap(),
    ];
    back.connect(to).await.unwrap();
    let address = front.local_addr().unwrap();
    tokio::spawn(async move {
        let mut client = None;
        let (mut request, mut answer) = (vec![0; 1 << 16], vec![0; 1 << 16]);
        loop {
            let may_answer = *answers.borrow_and_update();
            tokio::select! {
                Ok((len, from)) = front.recv_from(&mut request) => {
                    client = Some(from);
                    back.send(&request[..len]).await.unwrap();
                }
                Ok(len) = back.recv(&mut answer), if may_answer => {
                    front.send_to(&answer[..len], client.unwrap()).await.unwrap();
                }
                Ok(()) = answers.changed() => {}
                else => return,
            }
        }
    });
    address
}

/// Waits until the client has a session to resume.
async fn wait_for_session(pair: &Pair, version: u32) {
    let server = ServerId {
        name: NAME.into(),
        version,
    };
    loop {
        if let Some(session) = pair.sessions.take_session(&server) {
            return pair.sessions.put_session(&server, session);
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// The client gets nothing from the server until the service has the request, so that the handshake
/// can't be complete then, however fast either end is: the request is early data, and marked as such.
#[tokio::test]
async fn a_resumed_connection_takes_requests_as_early_data() {
    guard(async {
        let (answers, may_answer) = watch::channel(true);
        let open = answers.clone();
        let pair = Pair::new(service_fn(move |request: Request<Body>| {
            let early = request.extensions().get::<EarlyData>().is_some();
            open.send_replace(true);
            let text = format!("{} early: {early}", request.uri().path());
            async { Ok::<_, Infallible>(Response::new(Body::full(text))) }
        }));
        let to = relay(pair.server_end.local_addr(), may_answer).await;

        let connecting = pair.client_end.connect(&pair.config, to, NAME).unwrap();
        let client = SendRequest::new(connecting.await.unwrap(), h3::Config::default());
        let response = client.send(get("/1")).await.unwrap();
        assert_eq!(read(response).await, "/1 early: false");
        let remembered = client.peer_settings();
        assert!(remembered.is_some());
        wait_for_session(&pair, client.connection().stats().version).await;
        client.close();

        answers.send_replace(false);
        let connecting = pair.client_end.connect(&pair.config, to, NAME).unwrap();
        let config = h3::Config {
            remembered,
            ..h3::Config::default()
        };
        let client = SendRequest::new(connecting.into_early().unwrap(), config);
        let response = client.send(get("/2")).await.unwrap();
        assert_eq!(read(response).await, "/2 early: true");
    })
    .await;
}
