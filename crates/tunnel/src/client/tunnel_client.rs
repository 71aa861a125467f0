//! Opens tunnels, and the connection to the proxy.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use http::header::PROXY_AUTHORIZATION;
use http::{HeaderValue, Request, Version};
use swiftwater_http::h3::ConnectProtocol;
use swiftwater_http::udp::SendRequest;
use swiftwater_http::web::body::BoxError;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::error::{ConnectError, OpenError, check_answer, proxy_status_of};
use super::ip_tunnel::IpTunnel;
use super::link::{HttpVersions, Link, LinkSlot};
use super::tcp_connection::ConnectingTcp;
use super::tcp_tunnel::TcpTunnel;
use super::udp_tunnel::{Offer, OpeningTunnel, UdpTunnel};
use crate::forwarding::{ForwardingOffer, ScrambleKey, Transform};
use crate::ip::Scope;
use crate::proxy::{CAPSULE_PROTOCOL, Token};
use crate::target::{Target, Template};
use crate::tecc::Agreement;
use crate::{CONNECT_IP, CONNECT_UDP};

/// A connection attempt.
pub type Connecting<'a> = Pin<Box<dyn Future<Output = Result<SendRequest, BoxError>> + Send + 'a>>;

/// Connects to the proxy.
///
/// The connection needs datagrams (RFC 9221) that are at least 1221 bytes long, so that the first packets of QUIC
/// fit into a tunnel: see [`initial_max_datagram_size`](swiftwater_net::quic::TransportConfig::initial_max_datagram_size).
pub trait Connect: Send + Sync + 'static {
    /// A new connection with HTTP/3.
    fn connect(&self) -> Connecting<'_>;

    /// Which versions of HTTP are used. Default: HTTP/3 alone.
    fn versions(&self) -> HttpVersions {
        HttpVersions::Http3
    }

    /// A new connection over TCP, for [`versions`](Self::versions) that need it.
    fn connect_tcp(&self) -> ConnectingTcp<'_> {
        Box::pin(async { Err("there is no way to the proxy over TCP".into()) })
    }
}

/// A client of one proxy. Clones share the connection, which is replaced when it has ended.
#[derive(Clone)]
pub struct TunnelClient {
    shared: Arc<Shared>,
}

struct Shared {
    template: Template,
    credentials: Option<HeaderValue>,
    asks: Asks,
    connector: Box<dyn Connect>,
    link: Mutex<LinkSlot>,
}

/// What a client asks of the proxy beyond RFC 9298, for each tunnel.
enum Asks {
    Nothing,
    Repair(Agreement),
    /// Forwarding with one of these transforms.
    Forwarding(Vec<Transform>),
}

impl Asks {
    /// The offer of one tunnel. Each has keys of its own.
    fn offer(&self) -> Option<Offer> {
        match self {
            Self::Nothing => None,
            Self::Repair(agreement) => Some(Offer::Repair(*agreement)),
            Self::Forwarding(transforms) => {
                let offer = ForwardingOffer::new(transforms, ScrambleKey::random());
                Some(Offer::Forwarding(offer))
            }
        }
    }
}

impl TunnelClient {
    /// A client of the proxy that `template` names, with the user's token if the proxy wants one. It connects when
    /// the first tunnel is opened.
    pub fn new(template: Template, token: Option<&Token>, connector: impl Connect) -> Self {
        Self::build(template, token, connector, Asks::Nothing)
    }

    /// The same, and asks the proxy to repair losses on its way to the client ([`tecc`](crate::tecc)); a proxy that
    /// doesn't know how opens plain tunnels.
    pub fn with_repair(template: Template, token: Option<&Token>, connector: impl Connect) -> Self {
        let asks = Asks::Repair(Agreement::OFFER);
        Self::build(template, token, connector, asks)
    }

    /// The same, and asks the proxy for reports, which come with the datagrams
    /// ([`UdpTunnel::recv_any`]): for programs whose QUIC connections go through the tunnel and take them.
    pub fn with_reports(
        template: Template,
        token: Option<&Token>,
        connector: impl Connect,
    ) -> Self {
        let asks = Asks::Repair(Agreement::OFFER_WITH_REPORTS);
        Self::build(template, token, connector, asks)
    }

    /// The same, and asks the proxy to forward QUIC packets with short headers beside the connection to it, with one of
    /// these transforms, the preferred one first ([`forwarding`](crate::forwarding)): less work for both, and nothing that
    /// slows down what is in the tunnel, but also nothing that hides which packets belong together. A proxy that doesn't
    /// forward opens plain tunnels; so does one over TCP, and one behind another proxy.
    pub fn with_forwarding(
        template: Template,
        token: Option<&Token>,
        connector: impl Connect,
        transforms: &[Transform],
    ) -> Self {
        let asks = Asks::Forwarding(transforms.to_vec());
        Self::build(template, token, connector, asks)
    }

    fn build(
        template: Template,
        token: Option<&Token>,
        connector: impl Connect,
        asks: Asks,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                template,
                credentials: token.and_then(Token::credentials),
                asks,
                connector: Box::new(connector),
                link: Mutex::default(),
            }),
        }
    }

    /// Whether proxies are asked to forward packets.
    pub(super) fn asks_for_forwarding(&self) -> bool {
        matches!(self.shared.asks, Asks::Forwarding(_))
    }

    /// Opens a tunnel to `target`, and waits for the proxy's answer.
    pub async fn open(&self, target: &Target) -> Result<UdpTunnel, OpenError> {
        self.begin(target).await?.opened().await
    }

    /// Asks for a tunnel to `target`; datagrams can be sent before the proxy answers, which saves a round trip if
    /// it agrees. The proxy may drop them (RFC 9298, section 5).
    pub async fn begin(&self, target: &Target) -> Result<OpeningTunnel, OpenError> {
        let uri = self.shared.template.expand(target)?;
        let mut request = Request::get(uri).header(CAPSULE_PROTOCOL, "?1").body(())?;
        self.authorize(&mut request);
        let mut offer = self.shared.asks.offer();
        let connection = match self.link().await? {
            Link::Http3(connection) => connection,
            Link::Tcp(link) => {
                // There is no repair over TCP, which has its own, and no forwarding, which needs UDP.
                let client = self.clone();
                return Ok(OpeningTunnel::over_tcp(async move {
                    let answer = link
                        .open_capsules(&*client.shared.connector, CONNECT_UDP, request)
                        .await;
                    client.noted(answer).await
                }));
            }
        };
        if !connection.connection().has_udp_socket() {
            // It is in a tunnel itself: what is beside it would have to be forwarded there.
            offer = offer.filter(|offer| !matches!(offer, Offer::Forwarding(_)));
        }
        if let Some(offer) = &offer {
            offer.add_to(request.headers_mut());
        }
        let protocol = ConnectProtocol::new(CONNECT_UDP)
            .ok_or_else(|| ConnectError("connect-udp is no token".into()))?;
        let pending = connection.connect(protocol, request).await?;
        Ok(OpeningTunnel::new(pending, offer))
    }

    /// Opens a tunnel for the IP packets of `scope` (RFC 9484), and waits for the proxy's answer. The request has the
    /// default template of IP proxying at the proxy's authority.
    pub async fn open_ip(&self, scope: &Scope) -> Result<IpTunnel, OpenError> {
        let uri = scope.uri(&self.shared.template)?;
        let mut request = Request::get(uri).header(CAPSULE_PROTOCOL, "?1").body(())?;
        self.authorize(&mut request);
        let connection = match self.link().await? {
            Link::Http3(connection) => connection,
            Link::Tcp(link) => {
                let connector = &*self.shared.connector;
                let answer = link.open_capsules(connector, CONNECT_IP, request).await;
                let (_, stream) = self.noted(answer).await?;
                return Ok(IpTunnel::over_tcp(stream));
            }
        };
        let protocol = ConnectProtocol::new(CONNECT_IP)
            .ok_or_else(|| ConnectError("connect-ip is no token".into()))?;
        let pending = connection.connect(protocol, request).await?;
        IpTunnel::over_http3(pending).await
    }

    /// Opens a tunnel to `target` for TCP (CONNECT), and waits for the proxy's answer.
    pub async fn open_tcp(&self, target: &Target) -> Result<TcpTunnel, OpenError> {
        let mut request = Request::connect(target.to_string()).body(())?;
        self.authorize(&mut request);
        let connection = match self.link().await? {
            Link::Http3(connection) => connection,
            Link::Tcp(link) => {
                let answer = link.open_tcp(&*self.shared.connector, request).await;
                let (head, stream) = self.noted(answer).await?;
                return Ok(TcpTunnel::new(stream, proxy_status_of(&head.headers)));
            }
        };
        let pending = connection.connect_host(request).await?;
        let (head, content) = pending.response().await?.into_parts();
        let proxy_status = check_answer(head.status.is_success(), head.status, &head.headers)?;
        Ok(TcpTunnel::new(content.into_stream(), proxy_status))
    }

    /// The connection of HTTP/3 to the proxy: the one in use, or a new one. Fails if another version is in use.
    pub async fn connection(&self) -> Result<SendRequest, ConnectError> {
        match self.link().await? {
            Link::Http3(connection) => Ok(connection),
            Link::Tcp(_) => Err(ConnectError("the one in use is not of HTTP/3".into())),
        }
    }

    /// Connects to the proxy, unless there is a connection; returns its version of HTTP.
    pub async fn connected(&self) -> Result<Version, ConnectError> {
        Ok(self.link().await?.version())
    }

    /// Adds the user's credentials.
    fn authorize(&self, request: &mut Request<()>) {
        if let Some(credentials) = &self.shared.credentials {
            let headers = request.headers_mut();
            headers.insert(PROXY_AUTHORIZATION, credentials.clone());
        }
    }

    /// The connection in use, or a new one.
    async fn link(&self) -> Result<Link, ConnectError> {
        let asked = Instant::now();
        let mut slot = self.shared.link.lock().await;
        let link = slot.get(&*self.shared.connector, asked).await;
        link.map_err(ConnectError)
    }

    /// The same answer; if there was no connection for it, the next tunnel tries all versions again.
    async fn noted<T>(&self, answer: Result<T, OpenError>) -> Result<T, OpenError> {
        if matches!(answer, Err(OpenError::Connect(_))) {
            self.shared.link.lock().await.take();
        }
        answer
    }

    /// Closes the connection to the proxy, and all tunnels with it; over TCP, tunnels go on until they are dropped.
    pub async fn close(&self) {
        if let Some(Link::Http3(connection)) = self.shared.link.lock().await.take() {
            connection.close();
        }
    }
}

impl std::fmt::Debug for TunnelClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TunnelClient")
            .field("template", &self.shared.template)
            .finish_non_exhaustive()
    }
}
