//! `serve --webtransport-echo`, seen by a client with WebTransport sessions.

use http::{Request, StatusCode};
use swiftwater::Client;
use swiftwater_cli::identity::read_certificates;
use swiftwater_http::h3::Config;
use swiftwater_http::udp::webtransport::{OpenSessionError, ReadError, Session};
use swiftwater_http::udp::{ALPN_HTTP3, SendRequest};

use crate::support::{Site, failed, run};

async fn connect(site: &Site) -> SendRequest {
    let client = Client::builder()
        .alpn([ALPN_HTTP3])
        .trust_only(read_certificates(&site.certificate()).unwrap())
        .build()
        .unwrap();
    let address = format!("127.0.0.1:{}", site.port);
    let config = Config {
        webtransport_sessions: 1,
        ..Config::default()
    };
    SendRequest::new(client.connect(&address).await.unwrap(), config)
}

async fn open(client: &SendRequest, path: &str) -> Result<Session, OpenSessionError> {
    let uri = format!("https://127.0.0.1{path}");
    let request = Request::get(uri).body(()).unwrap();
    let (session, _) = client.open_session(request).await?;
    Ok(session)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_and_datagrams_come_back() {
    let flags = ["--webtransport-echo", "/echo"];
    let mut site = Site::start_with(&[("echo", b"a file")], &flags);
    let client = connect(&site).await;
    let session = open(&client, "/echo").await.unwrap();
    let data: Vec<u8> = (0..200_000_u32).map(|nth| (nth / 7) as u8).collect();

    let (mut send, mut recv) = session.open_bi().await.unwrap();
    let write = async {
        send.write_all(&data).await.unwrap();
        send.finish().unwrap();
    };
    let (back, ()) = tokio::join!(recv.read_to_end(data.len()), write);
    assert!(back.unwrap() == data);

    let mut send = session.open_uni().await.unwrap();
    send.write_all(b"one way").await.unwrap();
    drop(send);
    let mut recv = session.accept_uni().await.unwrap();
    assert_eq!(recv.read_to_end(100).await.unwrap(), b"one way");

    session.send_datagram(b"datagram").await.unwrap();
    assert_eq!(session.recv_datagram().await.unwrap(), "datagram");

    // A stream that is reset is echoed with a reset.
    let (mut send, mut recv) = session.open_bi().await.unwrap();
    send.write_all(b"x").await.unwrap();
    assert_eq!(recv.read_chunk(10).await.unwrap().unwrap(), "x");
    send.reset(77).unwrap();
    let error = recv.read_chunk(10).await.unwrap_err();
    assert!(matches!(error, ReadError::Reset(_)));
    assert_eq!(error.application_code(), Some(77));

    session.close(0, "");
    let line = site.server.next();
    assert_eq!(line["method"], "CONNECT");
    assert_eq!(
        (&line["path"], &line["status"]),
        (&"/echo".into(), &200.into())
    );
    assert_eq!(line["bytes"], 200_000 + 7 + 8 + 1);
    client.close();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_paths_have_no_sessions() {
    let flags = ["--webtransport-echo", "/echo"];
    let site = Site::start_with(&[("file", b"1")], &flags);
    let client = connect(&site).await;
    let refused = open(&client, "/file").await.unwrap_err();
    assert!(
        matches!(
            refused,
            OpenSessionError::Refused(StatusCode::METHOD_NOT_ALLOWED)
        ),
        "{refused:?}"
    );
    client.close();
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopping_the_server_ends_sessions_in_good_order() {
    let flags = ["--webtransport-echo", "/echo"];
    let site = Site::start_with(&[("file", b"1")], &flags);
    let client = connect(&site).await;
    let session = open(&client, "/echo").await.unwrap();
    session.send_datagram(b"x").await.unwrap();
    session.recv_datagram().await.unwrap();
    let stopped = tokio::task::spawn_blocking(move || site.server.interrupt());
    let end = session.closed().await.to_string();
    assert!(end.contains("the server is shutting down"), "{end}");
    assert_eq!(stopped.await.unwrap(), Some(0));
}

#[test]
fn what_is_no_path_is_refused() {
    let message = failed(&run(["serve", ".", "--webtransport-echo", "echo"]), 2);
    assert!(message.contains("/echo"), "{message}");
}
