//! Opens tunnels, and the connection to the proxy.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use http::header::PROXY_AUTHORIZATION;
use http::{HeaderValue, Request};
use swiftwater_http::h3::ConnectProtocol;
use swiftwater_http::udp::SendRequest;
use swiftwater_http::web::body::BoxError;
use tokio::sync::Mutex;

use super::error::{ConnectError, OpenError, check_answer};
use super::tcp_tunnel::TcpTunnel;
use super::udp_tunnel::{OpeningTunnel, UdpTunnel};
use crate::CONNECT_UDP;
use crate::proxy::{CAPSULE_PROTOCOL, Token};
use crate::target::{Target, Template};
use crate::tecc::{Agreement, TECC};

/// A connection attempt.
pub type Connecting<'a> = Pin<Box<dyn Future<Output = Result<SendRequest, BoxError>> + Send + 'a>>;

/// Connects to the proxy.
///
/// The connection needs datagrams (RFC 9221) that are at least 1221 bytes long, so that the first packets of QUIC
/// fit into a tunnel: see [`initial_max_datagram_size`](swiftwater_net::quic::TransportConfig::initial_max_datagram_size).
pub trait Connect: Send + Sync + 'static {
    /// A new connection with HTTP/3.
    fn connect(&self) -> Connecting<'_>;
}

/// A client of one proxy. Clones share the connection, which is replaced when it has ended.
#[derive(Clone)]
pub struct TunnelClient {
    shared: Arc<Shared>,
}

struct Shared {
    template: Template,
    credentials: Option<HeaderValue>,
    offer: Option<Agreement>,
    connector: Box<dyn Connect>,
    connection: Mutex<Option<SendRequest>>,
}

impl TunnelClient {
    /// A client of the proxy that `template` names, with the user's token if the proxy wants one. It connects when
    /// the first tunnel is opened.
    pub fn new(template: Template, token: Option<&Token>, connector: impl Connect) -> Self {
        Self::build(template, token, connector, None)
    }

    /// The same, and asks the proxy to repair losses on its way to the client ([`tecc`](crate::tecc)); a proxy that
    /// doesn't know how opens plain tunnels.
    pub fn with_repair(template: Template, token: Option<&Token>, connector: impl Connect) -> Self {
        Self::build(template, token, connector, Some(Agreement::OFFER))
    }

    /// The same, and asks the proxy for reports, which come with the datagrams
    /// ([`UdpTunnel::recv_any`]): for programs whose QUIC connections go through the tunnel and take them.
    pub fn with_reports(
        template: Template,
        token: Option<&Token>,
        connector: impl Connect,
    ) -> Self {
        let offer = Agreement::OFFER_WITH_REPORTS;
        Self::build(template, token, connector, Some(offer))
    }

    fn build(
        template: Template,
        token: Option<&Token>,
        connector: impl Connect,
        offer: Option<Agreement>,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                template,
                credentials: token.and_then(Token::credentials),
                offer,
                connector: Box::new(connector),
                connection: Mutex::default(),
            }),
        }
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
        if let Some(credentials) = &self.shared.credentials {
            let headers = request.headers_mut();
            headers.insert(PROXY_AUTHORIZATION, credentials.clone());
        }
        if let Some(offer) = self.shared.offer.and_then(Agreement::field) {
            request.headers_mut().insert(TECC, offer);
        }
        let connection = self.connection().await?;
        let protocol = ConnectProtocol::new(CONNECT_UDP)
            .ok_or_else(|| ConnectError("connect-udp is no token".into()))?;
        let pending = connection.connect(protocol, request).await?;
        Ok(OpeningTunnel::new(pending, self.shared.offer))
    }

    /// Opens a tunnel to `target` for TCP (CONNECT), and waits for the proxy's answer.
    pub async fn open_tcp(&self, target: &Target) -> Result<TcpTunnel, OpenError> {
        let mut request = Request::connect(target.to_string()).body(())?;
        if let Some(credentials) = &self.shared.credentials {
            let headers = request.headers_mut();
            headers.insert(PROXY_AUTHORIZATION, credentials.clone());
        }
        let connection = self.connection().await?;
        let pending = connection.connect_host(request).await?;
        let (head, content) = pending.response().await?.into_parts();
        let proxy_status = check_answer(head.status, &head.headers)?;
        Ok(TcpTunnel::new(content.into_stream(), proxy_status))
    }

    /// The connection to the proxy: the one in use, or a new one.
    pub async fn connection(&self) -> Result<SendRequest, ConnectError> {
        let mut slot = self.shared.connection.lock().await;
        if let Some(connection) = slot.as_ref().filter(|connection| !connection.is_closed()) {
            return Ok(connection.clone());
        }
        let connected = self.shared.connector.connect().await;
        let connection = connected.map_err(ConnectError)?;
        *slot = Some(connection.clone());
        Ok(connection)
    }

    /// Closes the connection to the proxy, and all tunnels with it.
    pub async fn close(&self) {
        if let Some(connection) = self.shared.connection.lock().await.take() {
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
