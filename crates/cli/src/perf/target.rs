//! The server to measure against, and connections to it.

use std::sync::Arc;
use std::time::Duration;

use swiftwater::tls::rustls::ClientConfig;
use swiftwater::{Client, Connection, ConnectionStats};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::args::PerfProtocol;
use super::http::link::{Link, PerfRequest};
use super::protocol;
use crate::exit::{Exit, Failure};
use crate::multipath::{PathArgs, PathManagers};
use crate::transport::{CloseReason, Trust, Tuning, build_failure, client, connect, hang_up};

/// Settings of the connections to a target.
#[derive(Clone, Copy)]
pub(super) struct TargetSettings<'a> {
    pub(super) trust: &'a Trust,
    pub(super) tuning: &'a Tuning,
    pub(super) paths: &'a PathArgs,
    /// Time limit of connection establishment; `None` uses the default.
    pub(super) time_limit: Option<Duration>,
}

/// A server, and the settings to connect to it.
#[derive(Clone)]
pub(super) struct Target {
    protocol: PerfProtocol,
    host: String,
    port: u16,
    way: Connector,
}

#[derive(Clone)]
enum Connector {
    /// A client, and what opens further paths if there are to be any.
    Quic(Client, Option<Arc<PathManagers>>),
    Tcp {
        tls: Arc<ClientConfig>,
        /// Time limit of connection establishment; `None` uses the system's.
        time_limit: Option<Duration>,
    },
}

/// A handle of a connection on which requests are made.
pub(super) enum Requester {
    Perf(Connection),
    Http(Link),
}

/// A request that is sent repeatedly.
#[derive(Clone)]
pub(super) struct PerfJob {
    up: u64,
    down: u64,
    /// `None` for other protocols than HTTP.
    ask: Option<PerfRequest>,
}

impl Target {
    /// Must be called inside the runtime of the load.
    pub(super) fn new(
        protocol: PerfProtocol,
        (host, port): (String, u16),
        settings: &TargetSettings<'_>,
    ) -> Result<Self, Failure> {
        let TargetSettings {
            trust,
            tuning,
            paths,
            time_limit,
        } = *settings;
        let builder = client(trust, protocol.alpn(), tuning).transport(|transport| {
            if let Some(timeout) = time_limit {
                transport.handshake_timeout = timeout;
            }
        });
        let builder = paths.apply(builder, Some(&host))?;
        let way = if protocol.is_over_tcp() {
            let tls = builder.tls_over_tcp();
            let mut tls = tls.map_err(|error| build_failure(&error))?;
            tls.alpn_protocols = vec![protocol.alpn().to_vec()];
            Connector::Tcp {
                tls: Arc::new(tls),
                time_limit,
            }
        } else {
            let client = builder.build().map_err(|error| build_failure(&error))?;
            let managers = (!paths.path.is_empty())
                .then(|| Arc::new(PathManagers::new(client.endpoint().clone(), paths.policy())));
            Connector::Quic(client, managers)
        };
        Ok(Self {
            protocol,
            host,
            port,
            way,
        })
    }

    pub(super) fn protocol(&self) -> PerfProtocol {
        self.protocol
    }

    /// A request of `up` bytes for `down` bytes.
    pub(super) fn job(&self, up: u64, down: u64) -> Result<PerfJob, Failure> {
        let authority = if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        };
        let ask = match self.protocol {
            PerfProtocol::Perf => None,
            http => Some(PerfRequest::new(http, &authority, up, down)?),
        };
        Ok(PerfJob { up, down, ask })
    }

    /// A new connection.
    pub(super) async fn connect(&self) -> Result<Requester, Failure> {
        match &self.way {
            Connector::Quic(client, paths) => {
                let connection = connect(client, &self.host, self.port).await?;
                if let Some(paths) = paths {
                    // What is measured is to have them all.
                    let open = paths.opened(&connection).await;
                    tracing::info!(open, "paths are open");
                }
                Ok(if self.protocol == PerfProtocol::Perf {
                    Requester::Perf(connection)
                } else {
                    Requester::Http(Link::http3(connection))
                })
            }
            Connector::Tcp { tls, time_limit } => {
                let link = Link::tcp(tls, &self.host, self.port, self.protocol);
                let Some(time_limit) = *time_limit else {
                    return Ok(Requester::Http(link.await?));
                };
                let link = timeout(time_limit, link).await.map_err(|_| {
                    let text = format!("no connection after {time_limit:?}");
                    Failure::new(Exit::Connection, text)
                })?;
                Ok(Requester::Http(link?))
            }
        }
    }

    /// Handles for `each` concurrent requests on each of `connections` connections; on
    /// correspondingly more connections if one carries a single request at a time.
    pub(super) async fn handles(
        &self,
        connections: u16,
        each: u16,
    ) -> Result<Vec<Requester>, Failure> {
        let (connections, each) = if self.protocol.multiplexes() {
            (u32::from(connections), each)
        } else {
            (u32::from(connections) * u32::from(each), 1)
        };
        let mut connecting = JoinSet::new();
        for _ in 0..connections {
            let target = self.clone();
            connecting.spawn(async move { target.connect().await });
        }
        let mut handles = Vec::new();
        while let Some(connected) = connecting.join_next().await {
            let first = connected.map_err(|error| Failure::new(Exit::Failure, error))??;
            handles.extend((1..each).filter_map(|_| first.share()));
            handles.push(first);
        }
        Ok(handles)
    }

    /// Closes all connections.
    pub(super) async fn part(&self, parting: CloseReason) {
        // TCP connections close with their handles.
        if let Connector::Quic(client, _) = &self.way {
            hang_up(client, parting).await;
        }
    }
}

impl Requester {
    fn share(&self) -> Option<Self> {
        match self {
            Self::Perf(connection) => Some(Self::Perf(connection.clone())),
            Self::Http(link) => link.share().map(Self::Http),
        }
    }

    /// Sends one request and waits for the whole response.
    pub(super) async fn request(&mut self, job: &PerfJob) -> Result<(), Failure> {
        match (self, &job.ask) {
            (Self::Http(link), Some(ask)) => link.request(ask).await,
            (Self::Perf(connection), _) => protocol::request(connection, job.up, job.down).await,
            (Self::Http(_), None) => Err(Failure::new(Exit::Failure, "no request to make")),
        }
    }

    /// Statistics of the QUIC connection, if there is one.
    pub(super) fn stats(&self) -> Option<ConnectionStats> {
        match self {
            Self::Perf(connection) => Some(connection.stats()),
            Self::Http(link) => link.stats(),
        }
    }

    /// Ends the connection at once.
    pub(super) fn close(self) {
        match self {
            Self::Perf(connection) => connection.close(0, b""),
            // Others close with their last handle.
            Self::Http(Link::Http3(sender)) => sender.close(),
            Self::Http(_) => {}
        }
    }
}
