//! `serve --webtransport-echo`: a path whose WebTransport sessions echo all data, for testing
//! clients.

use std::convert::Infallible;
use std::time::Instant;

use http::{Request, Response};
use swiftwater_http::udp::webtransport::{RecvStream, SendStream, Session, SessionRequest};
use swiftwater_http::web::body::Body;
use swiftwater_http::web::connection_info::ConnectionInfo;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower::util::BoxCloneSyncService;
use tower::{ServiceExt, service_fn};

use super::access_format::canonical;
use super::live::Live;
use super::log::LogLine;
use crate::web_content::Content;

/// Concurrent sessions of a connection.
pub(super) const SESSIONS: u64 = 16;

/// Most bytes read at once.
const CHUNK: usize = 64 << 10;

/// The path of `--webtransport-echo`.
pub(super) fn parse_path(text: &str) -> Result<String, String> {
    let is_path = text
        .parse::<http::Uri>()
        .is_ok_and(|uri| uri.path() == text);
    if is_path && text.starts_with('/') {
        Ok(text.to_owned())
    } else {
        Err("not a path such as /echo".to_owned())
    }
}

/// `content`, except that requests for sessions at `path` are accepted and echoed.
pub(super) fn with_echo(content: Content, path: String, live: watch::Receiver<Live>) -> Content {
    BoxCloneSyncService::new(service_fn(move |request: Request<Body>| {
        let content = content.clone();
        let asked = request.extensions().get::<SessionRequest>();
        let asked = asked.filter(|_| request.uri().path() == path).cloned();
        let client = request.extensions().get::<ConnectionInfo>();
        let client = client.map(|connection| canonical(connection.peer));
        let (path, live) = (path.clone(), live.clone());
        async move {
            let Some(asked) = asked else {
                return content.oneshot(request).await;
            };
            tokio::spawn(async move {
                let begin = Instant::now();
                let Ok(session) = asked.session().await else {
                    return;
                };
                let bytes = echo(session).await;
                let Some(client) = client else { return };
                let line = LogLine {
                    client,
                    protocol: "h3",
                    method: "CONNECT",
                    path: &path,
                    status: Some(200),
                    bytes,
                    elapsed: begin.elapsed(),
                    error: None,
                };
                live.borrow().reports.line(&line);
            });
            Ok::<_, Infallible>(Response::new(Body::empty()))
        }
    }))
}

/// Echoes until the session ends or the server stops; returns the number of bytes.
async fn echo(session: Session) -> u64 {
    let mut bytes = 0;
    let mut streams = JoinSet::new();
    loop {
        tokio::select! {
            stream = session.accept_bi() => {
                let Ok((send, recv)) = stream else { break };
                streams.spawn(copy(recv, send));
            }
            stream = session.accept_uni() => {
                let Ok(recv) = stream else { break };
                streams.spawn(copy_to_new(session.clone(), recv));
            }
            datagram = session.recv_datagram() => {
                let Ok(datagram) = datagram else { break };
                // Datagrams are unreliable: without room it is dropped.
                if session.try_send_datagram(&datagram).is_ok() {
                    bytes += datagram.len() as u64;
                }
            }
            Some(copied) = streams.join_next() => bytes += copied.unwrap_or(0),
            () = session.draining() => break,
        }
    }
    while let Some(copied) = streams.join_next().await {
        bytes += copied.unwrap_or(0);
    }
    session.close(0, "the server is shutting down");
    bytes
}

async fn copy_to_new(session: Session, recv: RecvStream) -> u64 {
    match session.open_uni().await {
        Ok(send) => copy(recv, send).await,
        Err(_) => 0,
    }
}

/// Echoes a stream at the rate at which the client reads, and ends it as the client does; returns
/// the number of bytes.
async fn copy(mut recv: RecvStream, mut send: SendStream) -> u64 {
    let mut bytes = 0;
    loop {
        match recv.read_chunk(CHUNK).await {
            Ok(Some(chunk)) => {
                let len = chunk.len() as u64;
                if let Err(error) = send.write_chunk(chunk).await {
                    let _ = recv.stop(error.application_code().unwrap_or(0));
                    return bytes;
                }
                bytes += len;
            }
            Ok(None) => {
                // Ending the session loses data that the client has not received.
                if send.finish().is_ok() {
                    let _ = send.stopped().await;
                }
                return bytes;
            }
            Err(error) => {
                let _ = send.reset(error.application_code().unwrap_or(0));
                return bytes;
            }
        }
    }
}
