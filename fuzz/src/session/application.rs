//! The application of either end: sessions, their streams and datagrams, each with a separate waiting task.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};

use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use swiftwater_http::h3;
use swiftwater_http::udp::webtransport::{RecvStream, SendStream, Session, SessionRequest};
use swiftwater_http::udp::{H3Server, SendRequest};
use swiftwater_http::web::body::Body;
use swiftwater_net::Endpoint;
use swiftwater_net::quic::ClientConfig;
use swiftwater_units::Side;
use tokio::task::JoinSet;
use tower::service_fn;

use crate::closing::program::Call;

/// Sessions that a client may have at once.
const SESSIONS: u64 = 2;
/// Bytes that are read from a stream at most.
const READ_AT_MOST: usize = 1 << 16;

/// What tasks share with the case.
#[derive(Default)]
struct Shared {
    sessions: Mutex<Vec<Arc<Session>>>,
    /// What the service does with the next request.
    behaviour: AtomicU8,
    /// The client's handle, once the connection is there.
    requests: Mutex<Option<Arc<SendRequest>>>,
}

impl Shared {
    fn add(&self, session: Session) {
        self.sessions
            .lock()
            .expect("nobody panics")
            .push(Arc::new(session));
    }

    fn session(&self, nth: u8) -> Option<Arc<Session>> {
        let sessions = self.sessions.lock().expect("nobody panics");
        sessions
            .get(usize::from(nth) % sessions.len().max(1))
            .cloned()
    }

    fn requests(&self) -> Option<Arc<SendRequest>> {
        self.requests.lock().expect("nobody panics").clone()
    }
}

/// The application.
pub(super) struct Application {
    side: Side,
    shared: Arc<Shared>,
    server: H3Server,
    tasks: JoinSet<&'static str>,
    /// Tasks by what they wait for.
    open: BTreeMap<&'static str, usize>,
}

impl Application {
    fn new(side: Side) -> Self {
        Self {
            side,
            shared: Arc::default(),
            server: H3Server::default().webtransport(SESSIONS),
            tasks: JoinSet::new(),
            open: BTreeMap::new(),
        }
    }

    /// Serves every connection of `endpoint`.
    pub(super) fn server(endpoint: &Endpoint) -> Self {
        let mut application = Self::new(Side::Server);
        let (endpoint, server) = (endpoint.clone(), application.server.clone());
        let shared = Arc::clone(&application.shared);
        application.spawn("a server", async move {
            // One connection: the peer has no other.
            if let Some(connection) = endpoint.accept().await {
                let service = service_fn(move |request| answer(Arc::clone(&shared), request));
                drop(server.serve(connection, service).await);
            }
        });
        application
    }

    /// Connects to the peer.
    pub(super) fn client(endpoint: &Endpoint, config: &ClientConfig, to: SocketAddr) -> Self {
        let mut application = Self::new(Side::Client);
        let shared = Arc::clone(&application.shared);
        let connecting = endpoint
            .connect(config, to, "localhost")
            .expect("good settings");
        application.spawn("a connection", async move {
            let Ok(connection) = connecting.await else {
                return;
            };
            let config = h3::Config {
                webtransport_sessions: SESSIONS,
                ..h3::Config::default()
            };
            let requests = SendRequest::new(connection, config);
            *shared.requests.lock().expect("nobody panics") = Some(Arc::new(requests));
        });
        application
    }

    pub(super) fn side(&self) -> Side {
        self.side
    }

    fn spawn(&mut self, what: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        *self.open.entry(what).or_default() += 1;
        self.tasks.spawn(async move {
            task.await;
            what
        });
    }

    /// Waits until all tasks are done.
    pub(super) async fn join(&mut self) {
        while let Some(done) = self.tasks.join_next().await {
            let what = done.expect("no task panics");
            if let Some(count) = self.open.get_mut(what) {
                *count -= 1;
            }
        }
    }

    /// What the tasks that are left wait for.
    pub(super) fn waiting(&self) -> String {
        let left = self.open.iter().filter(|(_, count)| **count > 0);
        left.map(|(what, count)| format!("{count} x {what}; "))
            .collect()
    }

    /// Performs application calls.
    pub(super) fn call(&mut self, call: Call) {
        match call {
            Call::Request { session, end } => self.ask(session, end),
            Call::Respond { kind, .. } => self.shared.behaviour.store(kind, Ordering::Relaxed),
            Call::Shutdown => match self.side {
                Side::Server => self.server.drain(),
                Side::Client => {
                    if let Some(requests) = self.shared.requests() {
                        requests.shutdown();
                    }
                }
            },
            Call::Finish { nth }
            | Call::Trailers { nth }
            | Call::Reset { nth }
            | Call::Stop { nth }
            | Call::Cancel { nth }
            | Call::Read { nth }
            | Call::Write { nth, .. }
            | Call::Datagram { nth, .. }
            | Call::OpenSessionStream { nth, .. }
            | Call::SessionStream { nth, .. } => {
                if let Some(session) = self.shared.session(nth) {
                    self.on_session(session, call);
                }
            }
            Call::Lazy(_) | Call::Close => {}
        }
    }

    fn ask(&mut self, session: bool, end: bool) {
        let Some(requests) = self.shared.requests() else {
            return;
        };
        let request = Request::get("https://localhost/session");
        let shared = Arc::clone(&self.shared);
        if session {
            let request = request.body(()).expect("a request");
            self.spawn("a session's answer", async move {
                if let Ok((session, _)) = requests.open_session(request).await {
                    shared.add(session);
                }
            });
        } else {
            let request = request.body(Body::empty()).expect("a request");
            self.spawn("a response", async move {
                if let Ok(response) = requests.send(request).await
                    && end
                {
                    drop(response.into_body().collect().await);
                }
            });
        }
    }

    fn on_session(&mut self, session: Arc<Session>, call: Call) {
        match call {
            Call::Finish { .. } => session.close(7, "bye"),
            Call::Trailers { .. } => session.drain(),
            Call::Stop { .. } => self.spawn("a session's end", async move {
                session.closed().await;
            }),
            Call::Reset { .. } => self.spawn("a session's draining", async move {
                session.draining().await;
            }),
            Call::Cancel { .. } => {
                let mut sessions = self.shared.sessions.lock().expect("nobody panics");
                sessions.retain(|each| !Arc::ptr_eq(each, &session));
            }
            Call::Read { nth } => self.spawn("a stream of the peer's", async move {
                if nth & 1 == 0 {
                    if let Ok(recv) = session.accept_uni().await {
                        read(recv).await;
                    }
                } else if let Ok((send, recv)) = session.accept_bi().await {
                    read(recv).await;
                    write(send, 10).await;
                }
            }),
            Call::Write { len, .. } => self.spawn("a stream that is written", async move {
                if let Ok(send) = session.open_uni().await {
                    write(send, len.into()).await;
                }
            }),
            Call::OpenSessionStream { uni, .. } => self.spawn("a stream of ours", async move {
                if uni {
                    if let Ok(mut send) = session.open_uni().await {
                        drop(send.stopped().await);
                    }
                } else if let Ok((send, recv)) = session.open_bi().await {
                    write(send, 10).await;
                    read(recv).await;
                }
            }),
            Call::SessionStream { act, .. } => {
                self.spawn("a stream that is given up", async move {
                    if let Ok((mut send, mut recv)) = session.accept_bi().await {
                        drop(send.reset(act.into()));
                        drop(recv.stop(act.into()));
                    }
                })
            }
            Call::Datagram { len, .. } => {
                drop(session.try_send_datagram(&vec![7; len.into()]));
                self.spawn("a datagram", async move {
                    drop(session.recv_datagram().await);
                });
            }
            _ => {}
        }
    }
}

async fn read(mut recv: RecvStream) {
    drop(recv.read_to_end(READ_AT_MOST).await);
}

async fn write(mut send: SendStream, len: usize) {
    if send.write_all(&vec![7; len]).await.is_ok() {
        drop(send.finish());
        drop(send.stopped().await);
    }
}

async fn answer(shared: Arc<Shared>, request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let behaviour = shared.behaviour.load(Ordering::Relaxed);
    let asked = request.extensions().get::<SessionRequest>().cloned();
    let mut response = Response::new(Body::empty());
    match (asked, behaviour % 5) {
        // Nobody answers: the request ends with the connection.
        (_, 1) => std::future::pending::<()>().await,
        (_, 2) => *response.status_mut() = StatusCode::NOT_FOUND,
        // Accepted, and not taken.
        (Some(_), 3) => {}
        (Some(asked), _) => {
            tokio::spawn(async move {
                if let Ok(session) = asked.session().await {
                    shared.add(session);
                }
            });
        }
        (None, 3) => drop(request.into_body().collect().await),
        (None, _) => response = Response::new(Body::full(vec![7; 5000])),
    }
    Ok(response)
}
