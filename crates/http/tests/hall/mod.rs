//! A server that accepts WebTransport sessions, on loopback, and a client that requests them. The
//! test gets the server's end of each session and controls it.
#![allow(dead_code, unreachable_pub, reason = "every test crate uses its part")]

use std::convert::Infallible;

use http::{Request, Response, StatusCode};
use swiftwater_http::h3;
use swiftwater_http::udp::webtransport::{Session, SessionLimits, SessionRequest};
use swiftwater_http::udp::{H3Server, SendRequest};
use swiftwater_http::web::body::Body;
use swiftwater_net::quic::TransportConfig;
use tokio::sync::mpsc;
use tower::service_fn;

use crate::pair::{NAME, Pair};

/// Sessions that a client may have at once.
pub const SESSIONS: u64 = 3;

pub struct Hall {
    pub pair: Pair,
    accepted: mpsc::UnboundedReceiver<Session>,
}

impl Hall {
    pub fn new() -> Self {
        Self::with(SessionLimits::default(), TransportConfig::default())
    }

    /// Sessions are accepted at `/session` only.
    pub fn with(limits: SessionLimits, transport: TransportConfig) -> Self {
        let (sender, accepted) = mpsc::unbounded_channel();
        let service = service_fn(move |request: Request<Body>| {
            let sender = sender.clone();
            async move {
                let mut response = Response::new(Body::empty());
                let asked = request.extensions().get::<SessionRequest>().cloned();
                match (asked, request.uri().path()) {
                    (Some(asked), "/session") => {
                        tokio::spawn(async move {
                            if let Ok(session) = asked.session().await {
                                let _ = sender.send(session);
                            }
                        });
                    }
                    // Accepted, and not taken.
                    (Some(_), "/unwanted") => {}
                    _ => *response.status_mut() = StatusCode::NOT_FOUND,
                }
                Ok::<_, Infallible>(response)
            }
        });
        let server = H3Server::default()
            .webtransport(SESSIONS)
            .session_limits(limits);
        let pair = Pair::with(server, transport, service);
        Self { pair, accepted }
    }

    pub async fn client(&self) -> SendRequest {
        SendRequest::new(self.pair.connection().await, config())
    }

    /// The server's end of the next session.
    pub async fn accepted(&mut self) -> Session {
        self.accepted.recv().await.unwrap()
    }

    /// Both ends of a session: the client's, the server's.
    pub async fn session(&mut self) -> (SendRequest, Session, Session) {
        let client = self.client().await;
        let (ours, _) = client.open_session(ask("/session")).await.unwrap();
        let theirs = self.accepted().await;
        (client, ours, theirs)
    }
}

pub fn config() -> h3::Config {
    h3::Config {
        webtransport_sessions: 1,
        ..h3::Config::default()
    }
}

pub fn ask(path: &str) -> Request<()> {
    let uri = format!("https://{NAME}{path}");
    Request::get(uri).body(()).unwrap()
}
