//! One system: server, proxy if it has one, emulated links, and the client's connection.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use swiftwater::link::LinkConfig;
use swiftwater::net::relay::{Relay, RelayConfig};
use swiftwater::{CertificateDer, Client, Connection, DevCertificate, Server};
use swiftwater_http::h3;
use swiftwater_http::udp::{ALPN_HTTP3, SendRequest};
use swiftwater_http::web::body::{Body, text_response};
use swiftwater_tunnel::client::{Connect, Connecting, TunnelCarrier, TunnelClient};
use swiftwater_tunnel::policy::{Ports, TargetPolicy};
use swiftwater_tunnel::proxy::{Access, ProxyConfig, TunnelProxy};
use swiftwater_tunnel::target::Template;
use swiftwater_tunnel::transport::{fit_initial_packets, for_client};
use tokio::task::{JoinHandle, spawn_blocking};
use tower::service_fn;

use super::plan::{Plan, System};
use crate::demo::http3_connections::serve_http3;
use crate::exit::{Exit, Failure};
use crate::identity::Identity;
use crate::transport::{
    CloseReason, Trust, build_failure, client, client_failure, farewell, hang_up, listen, server,
};
use crate::web_content::{Content, boxed};

/// Where everything listens.
const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// The name in the certificate.
const NAME: &str = "localhost";

/// What the systems share.
#[derive(Debug)]
pub(super) struct Stage {
    identity: Identity,
    trusted: CertificateDer<'static>,
    /// The beginning of it is each object.
    pub(super) content: Bytes,
}

impl Stage {
    pub(super) fn new(content: Bytes) -> Result<Self, Failure> {
        let certificate = DevCertificate::generate([NAME])
            .map_err(|error| Failure::new(Exit::Certificate, error))?;
        Ok(Self {
            identity: Identity::of(&certificate),
            trusted: certificate.certificate_der(),
            content,
        })
    }
}

/// Connections that a server has accepted, in order.
type Accepted = Arc<Mutex<Vec<Connection>>>;

/// A running server.
struct Serving {
    server: Server,
    accepted: Accepted,
    task: JoinHandle<()>,
}

/// A running system, connected.
pub(super) struct Course {
    pub(super) system: System,
    /// Sends requests.
    pub(super) requests: SendRequest,
    /// The client's end of the connection to the server.
    pub(super) connection: Connection,
    server: Serving,
    proxy: Option<Serving>,
    clients: Vec<Client>,
    /// The links, for as long as the system runs.
    _relays: Vec<Relay>,
}

impl Course {
    pub(super) async fn connect(
        plan: &Plan,
        stage: &Stage,
        system: System,
    ) -> Result<Self, Failure> {
        let mut origin = server(&stage.identity, &[ALPN_HTTP3], &plan.tuning);
        if system == System::Tecc {
            origin = origin.tecc();
        }
        let origin = Serving::start(listen(&origin, LOOPBACK)?, objects(stage.content.clone()));
        let [up, down] = plan.last_mile.clone();
        let far = plan.far_delay;
        let trust = Trust::Roots(vec![stage.trusted.clone()]);
        if !system.has_proxy() {
            let longer = |link: LinkConfig| LinkConfig {
                delay: link.delay + far,
                ..link
            };
            let to = origin.server.local_addr();
            let relay = relay(plan, to, longer(up), longer(down)).await?;
            let client = client(&trust, ALPN_HTTP3, &plan.tuning).bind(LOOPBACK);
            let client = client.build().map_err(|error| build_failure(&error))?;
            let connection = connect(&client, relay.local_addr()).await?;
            return Ok(Self {
                system,
                requests: SendRequest::new(connection.clone(), h3::Config::default()),
                connection,
                server: origin,
                proxy: None,
                clients: vec![client],
                _relays: vec![relay],
            });
        }
        let delay = LinkConfig {
            delay: far,
            ..LinkConfig::default()
        };
        let far = relay(plan, origin.server.local_addr(), delay.clone(), delay).await?;
        let proxy =
            server(&stage.identity, &[ALPN_HTTP3], &plan.tuning).transport(fit_initial_packets);
        let proxy = Serving::start(
            listen(&proxy, LOOPBACK)?,
            boxed(TunnelProxy::new(proxy_config()?)),
        );
        let near = relay(plan, proxy.server.local_addr(), up, down).await?;
        let outer = client(&trust, ALPN_HTTP3, &plan.tuning)
            .bind(LOOPBACK)
            .transport(for_client);
        let outer = outer.build().map_err(|error| build_failure(&error))?;
        let template = Template::new(NAME).map_err(|error| Failure::new(Exit::Failure, error))?;
        let connector = ProxyAt {
            client: outer.clone(),
            address: near.local_addr(),
        };
        let tunnels = match system {
            System::Tecc => TunnelClient::with_reports(template, None, connector),
            System::Repair => TunnelClient::with_repair(template, None, connector),
            System::Masque | System::Direct => TunnelClient::new(template, None, connector),
        };
        let mut inner =
            client(&trust, ALPN_HTTP3, &plan.tuning).carrier(Arc::new(TunnelCarrier::new(tunnels)));
        if system == System::Tecc {
            inner = inner.tecc();
        }
        let inner = inner.build().map_err(|error| build_failure(&error))?;
        let connection = connect(&inner, far.local_addr()).await?;
        Ok(Self {
            system,
            requests: SendRequest::new(connection.clone(), h3::Config::default()),
            connection,
            server: origin,
            proxy: Some(proxy),
            clients: vec![inner, outer],
            _relays: vec![far, near],
        })
    }

    /// The server's end of the connection.
    pub(super) fn at_server(&self) -> Option<Connection> {
        self.server.first()
    }

    /// The proxy's end of the connection that carries the tunnel.
    pub(super) fn at_proxy(&self) -> Option<Connection> {
        self.proxy.as_ref()?.first()
    }

    pub(super) async fn close(self) {
        for client in &self.clients {
            hang_up(client, CloseReason::Done).await;
        }
        for serving in self.proxy.into_iter().chain([self.server]) {
            farewell(&serving.server).await;
            serving.task.abort();
        }
    }
}

impl Serving {
    fn start(server: Server, content: Content) -> Self {
        let accepted = Accepted::default();
        let (listener, list) = (server.clone(), Arc::clone(&accepted));
        let task = tokio::spawn(async move {
            serve_http3(&listener, content, |connection| {
                let mut list = list.lock().unwrap_or_else(PoisonError::into_inner);
                list.push(connection.clone());
            })
            .await;
        });
        Self {
            server,
            accepted,
            task,
        }
    }

    fn first(&self) -> Option<Connection> {
        let accepted = self.accepted.lock();
        let accepted = accepted.unwrap_or_else(PoisonError::into_inner);
        accepted.first().cloned()
    }
}

/// Answers `/SIZE` with that much of `content`.
fn objects(content: Bytes) -> Content {
    boxed(service_fn(move |request: Request<Body>| {
        let size: Result<usize, _> = request.uri().path().trim_start_matches('/').parse();
        let response = match size {
            Ok(size) if size <= content.len() => Response::new(Body::full(content.slice(..size))),
            _ => text_response(StatusCode::NOT_FOUND, "no such object\n"),
        };
        std::future::ready(Ok::<_, Infallible>(response))
    }))
}

/// For everybody on this machine, while the demonstration runs.
fn proxy_config() -> Result<ProxyConfig, Failure> {
    let loopback = "127.0.0.0/8".parse();
    let loopback = loopback.map_err(|error| Failure::new(Exit::Failure, error))?;
    Ok(ProxyConfig {
        policy: TargetPolicy {
            ports: Ports::all(),
            allowed: vec![loopback],
            denied: Vec::new(),
        },
        ..ProxyConfig::new(Access::Anyone)
    })
}

async fn relay(
    plan: &Plan,
    to: SocketAddr,
    up: LinkConfig,
    down: LinkConfig,
) -> Result<Relay, Failure> {
    let config = RelayConfig {
        up,
        down,
        seed: plan.seed,
        ..RelayConfig::new(LOOPBACK, to)
    };
    let failed = |error: &dyn std::fmt::Display| Failure::new(Exit::Failure, error);
    spawn_blocking(move || Relay::start(config))
        .await
        .map_err(|error| failed(&error))?
        .map_err(|error| failed(&error))
}

async fn connect(client: &Client, address: SocketAddr) -> Result<Connection, Failure> {
    let connected = client.connect_to(address, NAME).await;
    connected.map_err(|error| client_failure(&error, &address.to_string()))
}

/// Connects to the proxy at an address.
struct ProxyAt {
    client: Client,
    address: SocketAddr,
}

impl Connect for ProxyAt {
    fn connect(&self) -> Connecting<'_> {
        Box::pin(async move {
            let connection = self.client.connect_to(self.address, NAME).await?;
            Ok(SendRequest::new(connection, h3::Config::default()))
        })
    }
}
