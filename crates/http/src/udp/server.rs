//! HTTP/3 server for tower services.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use swiftwater_net::Connection;
use swiftwater_net::quic::ConnectionError;
use thiserror::Error;
use tokio::sync::watch;

use super::ALPN_HTTP3;
use super::answer::{Answering, answer};
use super::connection::Http3;
use super::exchange::Exchange;
use super::idle::Idle;
use super::request_tasks::RequestTasks;
use super::webtransport::SessionLimits;
use crate::h3::{self, Code, Fault};
use crate::web::connection_info::{ConnectionInfo, Transport};
use crate::web::response_budget::ResponseBudget;
use crate::web::service::WebService;
use crate::web::timed_body::Pace;

/// The ALPN name in the connection information of all requests.
static ALPN: LazyLock<Arc<[u8]>> = LazyLock::new(|| Arc::from(ALPN_HTTP3));

/// Why serving a connection did not end normally.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Client and server negotiated another protocol than `h3`.
    #[error("the connection was not negotiated for HTTP/3")]
    NotHttp3,
    /// The client violated the protocol.
    #[error("the client violated the protocol: {0}")]
    Fault(#[from] Fault),
    /// The QUIC connection failed.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

/// HTTP/3 for any tower service, one connection at a time: the caller accepts QUIC connections and
/// passes those with the ALPN name `h3`.
///
/// Every request carries a [`ConnectionInfo`] in its extensions, and [`EarlyData`](crate::web::early_data::EarlyData) if it may be a
/// replay. If the service fails, the response is 500; if it panics, only that request is lost.
#[derive(Clone, Debug)]
pub struct H3Server {
    config: h3::Config,
    pace: Pace,
    send_timeout: Duration,
    idle_timeout: Duration,
    budget: ResponseBudget,
    session_limits: SessionLimits,
    draining: watch::Receiver<bool>,
    /// The sender that keeps the default `draining` channel open.
    drain: Arc<watch::Sender<bool>>,
    open: Arc<AtomicUsize>,
}

impl Default for H3Server {
    fn default() -> Self {
        Self::new(h3::Config::default())
    }
}

impl H3Server {
    /// A server whose connections have this configuration.
    pub fn new(config: h3::Config) -> Self {
        let (drain, draining) = watch::channel(false);
        Self {
            config,
            pace: Pace {
                gap: Duration::from_secs(30),
                minimum_rate: 500,
                grace: Duration::from_secs(10),
            },
            send_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(60),
            budget: ResponseBudget::default(),
            session_limits: SessionLimits::default(),
            draining,
            drain: Arc::new(drain),
            open: Arc::default(),
        }
    }

    /// Minimum rate of request content while the service reads it. Default: a gap of at most 30 s,
    /// and 500 bytes per second after 10 s.
    #[must_use]
    pub fn body_pace(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self
    }

    /// How long a client may leave a response unread; then the response is reset. Default: 30 s.
    #[must_use]
    pub fn send_timeout(mut self, timeout: Duration) -> Self {
        self.send_timeout = timeout;
        self
    }

    /// How long a connection may be without a request; then it is closed as by [`H3Server::drain`], whatever
    /// else the client sends: PINGs alone do not keep a connection open. Default: 60 s. A client that sends
    /// nothing is dropped sooner, by the transport's idle timeout
    /// ([`max_idle_timeout`](swiftwater_net::quic::TransportConfig::max_idle_timeout)).
    #[must_use]
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// Memory of responses until clients have acknowledged them, over all connections; further requests are
    /// answered with 503. Servers of one process share a budget. Default: a separate one of
    /// [`ResponseBudget::DEFAULT_BYTES`].
    #[must_use]
    pub fn response_budget(mut self, budget: ResponseBudget) -> Self {
        self.budget = budget;
        self
    }

    /// Accepts up to `sessions` concurrent WebTransport sessions on each connection; more are rejected
    /// with H3_REQUEST_REJECTED. Default: the configuration's
    /// ([`webtransport_sessions`](h3::Config::webtransport_sessions)), which is none. Services find a
    /// [`SessionRequest`](super::webtransport::SessionRequest) in the extensions of requests for one.
    #[must_use]
    pub fn webtransport(mut self, sessions: u64) -> Self {
        self.config.webtransport_sessions = sessions;
        self
    }

    /// Limits on what a WebTransport session buffers until its service reads it.
    #[must_use]
    pub fn session_limits(mut self, limits: SessionLimits) -> Self {
        self.session_limits = limits;
        self
    }

    /// Ends all connections after the requests in progress: clients get GOAWAY (RFC 9114, section
    /// 5.2). Connections passed afterwards end at once.
    pub fn drain(&self) {
        self.drain.send_replace(true);
    }

    /// Connections at present.
    pub fn connections(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Serves `connection` to its end.
    ///
    /// Dropping the future closes the connection and ends the requests in progress.
    pub async fn serve<S>(&self, connection: Connection, service: S) -> Result<(), ServeError>
    where
        S: WebService,
    {
        // Early data always use the ALPN protocol of their session.
        if connection.alpn().is_some_and(|alpn| alpn != ALPN_HTTP3) {
            connection.close(Code::VERSION_FALLBACK.0, b"");
            return Err(ServeError::NotHttp3);
        }
        let _counted = Counted::new(&self.open);
        let engine = h3::Connection::server(self.config);
        let http3 = Http3::new(connection, engine, self.session_limits);
        let answering = Arc::new(Answering {
            pace: self.pace,
            send_timeout: self.send_timeout,
            budget: self.budget.connection(),
        });
        let mut requests = RequestTasks::default();
        let mut arrived = VecDeque::new();
        let mut draining = self.draining.clone();
        let mut drained = false;
        let mut idle = Idle::new(self.idle_timeout);
        let mut client_chain = None;
        loop {
            tokio::select! {
                more = http3.accept(&mut arrived) => {
                    if !more {
                        break;
                    }
                    if client_chain.is_none() {
                        client_chain = chain_of_client(http3.quic());
                    }
                    let info = connection_info(http3.quic(), client_chain.clone());
                    for incoming in arrived.drain(..) {
                        requests.pause().await;
                        let exchange = Exchange::new(http3.clone(), incoming.id);
                        let (answering, service) = (Arc::clone(&answering), service.clone());
                        requests.begin(answer(answering, exchange, incoming, info.clone(), service));
                    }
                    idle.restart();
                }
                () = until_draining(&mut draining), if !drained => {
                    drained = true;
                    http3.shutdown();
                }
                () = requests.ended() => idle.restart(),
                () = idle.over(), if requests.is_empty() => {
                    drained = true;
                    idle.end(&http3);
                }
            }
        }
        requests.shutdown().await;
        match http3.end() {
            Some(end) => conclude(end.reason, end.fault),
            None => Ok(()),
        }
    }
}

/// Waits for [`H3Server::drain`].
async fn until_draining(draining: &mut watch::Receiver<bool>) {
    // The sender is owned by the server, so the channel is open.
    let _ = draining.wait_for(|draining| *draining).await;
}

type Chain = Option<Arc<[CertificateDer<'static>]>>;

/// The certificates of the client, once they are verified.
fn chain_of_client(connection: &Connection) -> Chain {
    let chain = connection.peer_certificates();
    let is_known = !chain.is_empty();
    is_known.then(|| chain.into_iter().map(CertificateDer::from).collect())
}

/// What services learn of the connection of the requests that arrived.
fn connection_info(connection: &Connection, client_chain: Chain) -> ConnectionInfo {
    ConnectionInfo {
        peer: connection.remote_address(),
        local: connection.local_address(),
        protocol: Transport::Quic,
        alpn: Some(Arc::clone(&ALPN)),
        server_name: connection.server_name().map(Arc::from),
        client_chain,
    }
}

/// The result for a connection's end.
fn conclude(reason: ConnectionError, fault: Option<Fault>) -> Result<(), ServeError> {
    if let Some(fault) = fault {
        return Err(fault.into());
    }
    let is_orderly = match &reason {
        ConnectionError::LocallyClosed { .. } | ConnectionError::TimedOut => true,
        ConnectionError::PeerApplication { code, .. } => *code == Code::NO_ERROR.0,
        _ => false,
    };
    if is_orderly {
        Ok(())
    } else {
        Err(reason.into())
    }
}

/// A counted connection.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(open: &Arc<AtomicUsize>) -> Self {
        open.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(open))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
