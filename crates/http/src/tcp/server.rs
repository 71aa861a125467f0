//! The TCP server: accepts connections, counts them, drains them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout_at};

use super::connection::{self, Shared};
use super::limits::TcpLimits;
use super::observer::{ConnectionEnd, Observer};
use swiftwater_quic::ShareError;

use crate::web::descriptors::are_exhausted;
use crate::web::service::WebService;
use crate::web::shared_limit::{SharedLimit, SharedPermit};

/// Pause before the next `accept` when the process has no file descriptor left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// HTTP/1.1 and HTTP/2 on one TCP socket, for any tower service.
///
/// Every request carries a [`ConnectionInfo`](crate::web::connection_info::ConnectionInfo) in its
/// extensions. If the service fails, the response is 500.
#[derive(Debug, Clone, Default)]
pub struct TcpServer {
    tls: Option<Arc<ServerConfig>>,
    limits: TcpLimits,
    observer: Option<Observer>,
}

impl TcpServer {
    /// A server without TLS. HTTP/2 requires clients with prior knowledge (RFC 9113, section 3.3).
    pub fn plain() -> Self {
        Self::default()
    }

    /// A server with TLS; [`server_config`](super::server_config) makes configurations. ALPN
    /// chooses the version.
    pub fn tls(config: Arc<ServerConfig>) -> Self {
        Self {
            tls: Some(config),
            ..Self::default()
        }
    }

    /// Sets the limits instead of the defaults.
    #[must_use]
    pub fn limits(mut self, limits: TcpLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Reports every closed connection to `observer`, including those whose handshake failed.
    /// Connections cut when the server stops are not reported.
    #[must_use]
    pub fn observe(mut self, observer: impl Fn(&ConnectionEnd) + Send + Sync + 'static) -> Self {
        self.observer = Some(Observer(Arc::new(observer)));
        self
    }

    /// Serves `listener` until the returned handle is drained or dropped. Must be called within a
    /// tokio runtime.
    pub fn serve<S>(self, listener: TcpListener, service: S) -> io::Result<RunningServer>
    where
        S: WebService + Sync,
    {
        let local = listener.local_addr()?;
        let (drain, draining) = watch::channel(false);
        let count = Arc::new(AtomicUsize::new(0));
        let slots = self.limits.connections.clamp(1, Semaphore::MAX_PERMITS);
        let shares = (self.limits.share_by_address).then(|| SharedLimit::new(slots));
        let acceptor = Acceptor {
            listener,
            shares,
            slots: Arc::new(Semaphore::new(slots)),
            count: Arc::clone(&count),
            shared: Arc::new(Shared {
                service,
                tls: self.tls,
                limits: Arc::new(self.limits),
                observer: self.observer,
                draining,
            }),
        };
        Ok(RunningServer {
            local,
            drain,
            count,
            task: tokio::spawn(acceptor.run()),
        })
    }
}

/// A running server. Dropping it stops it at once and cuts its connections.
#[derive(Debug)]
pub struct RunningServer {
    local: SocketAddr,
    drain: watch::Sender<bool>,
    count: Arc<AtomicUsize>,
    /// Accepts until draining starts, then returns the remaining connections.
    task: JoinHandle<JoinSet<()>>,
}

/// Observes the number of connections of a server.
#[derive(Debug, Clone)]
pub struct ConnectionCount(Arc<AtomicUsize>);

impl ConnectionCount {
    /// Connections at present, including those in their handshake.
    pub fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Result of draining.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// Connections that were still busy at the deadline and were cut.
    pub cut: usize,
}

impl RunningServer {
    /// The address that the server listens on.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Connections at present, including those in their handshake.
    pub fn connections(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// A handle to the same count that may outlive this one.
    pub fn counter(&self) -> ConnectionCount {
        ConnectionCount(Arc::clone(&self.count))
    }

    /// Stops accepting, lets requests in progress complete for at most `deadline`, then cuts the
    /// remaining connections. HTTP/1.1 clients get `Connection: close`, HTTP/2 clients GOAWAY.
    pub async fn drain(mut self, deadline: Duration) -> Drained {
        let deadline = Instant::now() + deadline;
        self.drain.send_replace(true);
        let Ok(mut connections) = (&mut self.task).await else {
            return Drained { cut: 0 };
        };
        let all = async { while connections.join_next().await.is_some() {} };
        let _ = timeout_at(deadline, all).await;
        let cut = connections.len();
        connections.shutdown().await;
        Drained { cut }
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        // The connections are owned by the task and end with it.
        self.task.abort();
    }
}

struct Acceptor<S> {
    listener: TcpListener,
    slots: Arc<Semaphore>,
    /// By client address.
    shares: Option<SharedLimit>,
    count: Arc<AtomicUsize>,
    shared: Arc<Shared<S>>,
}

impl<S> Acceptor<S>
where
    S: WebService + Sync,
{
    async fn run(self) -> JoinSet<()> {
        let mut connections = JoinSet::new();
        let mut draining = self.shared.draining.clone();
        loop {
            tokio::select! {
                _ = draining.wait_for(|draining| *draining) => return connections,
                (stream, peer, place) = self.accept() => {
                    self.start(&mut connections, stream, peer, place);
                }
                Some(_) = connections.join_next() => {}
            }
        }
    }

    async fn accept(&self) -> (TcpStream, SocketAddr, Place) {
        loop {
            // The semaphore is never closed.
            let Ok(permit) = Arc::clone(&self.slots).acquire_owned().await else {
                return std::future::pending().await;
            };
            match self.listener.accept().await {
                Ok((stream, peer)) => match self.share(peer) {
                    Ok(share) => return (stream, peer, Place(permit, share)),
                    // Closes it.
                    Err(error) => tracing::debug!(%peer, ?error, "a connection was refused"),
                },
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    // Logged by the module for descriptors.
                    if !are_exhausted(&error) {
                        tracing::warn!(%error, "connections can't be accepted");
                    }
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// The permit of `peer` for a connection, if connections are shared.
    fn share(&self, peer: SocketAddr) -> Result<Option<SharedPermit>, ShareError> {
        let shares = self.shares.as_ref();
        shares
            .map(|shares| shares.try_acquire(peer.ip(), 1))
            .transpose()
    }

    fn start(
        &self,
        connections: &mut JoinSet<()>,
        stream: TcpStream,
        peer: SocketAddr,
        place: Place,
    ) {
        let shared = Arc::clone(&self.shared);
        let counted = Counted::new(&self.count, place);
        connections.spawn(async move {
            let _counted = counted;
            if let Err(error) = connection::serve(stream, peer, shared).await {
                tracing::debug!(%peer, %error, "a connection broke");
            }
        });
    }
}

/// Whether `accept` failed because the client is gone, rather than because of the server.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
    )
}

/// The permits of one connection: among all, and of its client's share.
struct Place(
    #[expect(dead_code, reason = "held until the connection ends")] OwnedSemaphorePermit,
    #[expect(dead_code, reason = "held until the connection ends")] Option<SharedPermit>,
);

/// A connection that is counted as long as this exists.
struct Counted {
    count: Arc<AtomicUsize>,
    _place: Place,
}

impl Counted {
    fn new(count: &Arc<AtomicUsize>, place: Place) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self {
            count: Arc::clone(count),
            _place: place,
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}
