//! Clients that close their connection in the packet that starts a request, over real sockets: the server
//! continues to serve others.

use std::convert::Infallible;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use http::{Request, Response};
use swiftwater_http::web::body::Body;
use swiftwater_net::quic::ClientConfig;
use swiftwater_net::quic::wire::Frame;
use tower::service_fn;

use crate::pair::{Pair, get, guard, read};
use crate::peer::RawPeer;
use crate::persona::Persona;

/// Frames of one 1-RTT packet: a request stream whose head is not complete, and the end.
const LAST_WORDS: [(&str, &[u8]); 6] = [
    (
        "an empty STREAM frame, an unknown frame",
        &[0x0a, 0, 0, 0x21],
    ),
    (
        "a byte at offset 1, an unknown frame",
        &[0x0e, 0, 1, 1, 1, 0x21],
    ),
    (
        "a piece of HEADERS, CONNECTION_CLOSE of the application",
        &[0x0a, 0, 3, 1, 16, 0, 0x1d, 0, 0],
    ),
    (
        "a piece of HEADERS, CONNECTION_CLOSE of the transport",
        &[0x0a, 0, 3, 1, 16, 0, 0x1c, 0, 0, 0],
    ),
    (
        "a byte at offset 1, CONNECTION_CLOSE of the application",
        &[0x0e, 0, 1, 1, 1, 0x1d, 0, 0],
    ),
    (
        "a byte at offset 1, CONNECTION_CLOSE of the transport",
        &[0x0e, 0, 1, 1, 1, 0x1c, 0, 0, 0],
    ),
];

/// Does the handshake as it should, and then says `words` and nothing more.
fn say(server: SocketAddr, config: &ClientConfig, words: &[u8]) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server).unwrap();
    let timeout = Some(Duration::from_secs(20));
    socket.set_read_timeout(timeout).unwrap();
    let mut peer = RawPeer::client(&*config.crypto, &Persona::default());
    let mut buffer = [0; 2048];
    loop {
        for datagram in peer.answers() {
            socket.send(&datagram).unwrap();
        }
        let is_done = |frame: &Frame<'_>| matches!(frame, Frame::HandshakeDone);
        if peer.is_complete() && peer.count(is_done) > 0 {
            break;
        }
        let len = socket.recv(&mut buffer).unwrap();
        peer.open(&buffer[..len]);
    }
    socket.send(&peer.seal_payload(words)).unwrap();
}

async fn greet(_: Request<Body>) -> Result<Response<Body>, Infallible> {
    Ok(Response::new(Body::full("hello")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_begins_with_the_end_harms_no_other() {
    guard(async {
        let pair = Pair::new(service_fn(greet));
        let before = pair.connect().await;
        let server = pair.server_end.local_addr();
        for (what, words) in LAST_WORDS {
            let config = pair.config.clone();
            let speaking = tokio::task::spawn_blocking(move || say(server, &config, words));
            speaking.await.unwrap();
            let response = before.send(get("/")).await;
            assert!(response.is_ok(), "after {what}");
            assert_eq!(read(response.unwrap()).await, "hello");
            let newcomer = pair.connect().await;
            let response = newcomer.send(get("/")).await;
            assert!(response.is_ok(), "after {what}");
            assert_eq!(read(response.unwrap()).await, "hello");
        }
        // The connections that ended are discarded, too.
        while pair.server.connections() > 1 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}
