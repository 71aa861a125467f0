//! The proxy: a tower service that answers requests for tunnels, for UDP (RFC 9298), for IP (RFC 9484) and for TCP
//! (CONNECT), over HTTP/3, HTTP/2 and HTTP/1.1.
//!
//! A request passes, in this order: its form, its origin, the user, the port, the resolution of the name, the address, the
//! limits. Then the socket to the target is opened and the request is answered; a tunnel for UDP lasts until either
//! side ends the stream, the target refuses datagrams, or nothing passes for the idle timeout.
//!
//! - [`ProxyConfig`]: who may use it, which targets it reaches, limits.
//! - [`TunnelProxy`]: the service. Requests that are not for tunnels get 404, those for other protocols 501.
//! - [`ProxyStats`] counts what passes.
//! - [`IpNetwork`]: the network behind a proxy for IP, which has no port to check and no socket: a tunnel gets addresses.

mod access;
mod capsules;
mod config;
mod content;
mod forwarding;
mod idle;
mod ip;
mod metered;
mod new_tunnels;
mod origin;
mod places;
mod receive_buffers;
mod refusal;
mod repaired;
mod request;
mod resolve;
mod send_run;
mod stats;
mod target_socket;
mod tcp_tunnel;
mod to_client;
mod udp_tunnel;
mod user_budget;

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body_util::channel::Channel;
use swiftwater_http::udp::connect::HttpDatagrams;
use swiftwater_http::web::body::Body;
use swiftwater_http::web::upgrade::UpgradeRequest;
use tower::Service;

use self::forwarding::Agreed;
use self::ip::Attachment;
use self::metered::Metered;
use self::new_tunnels::NewTunnels;
use self::places::{Place, Places};
use self::refusal::Refusal;
use self::request::Asked;
use self::stats::Counters;
use self::target_socket::TargetSocket;
use self::udp_tunnel::Tunnel;
use crate::CONNECT_UDP;
use crate::forwarding::{
    ForwardingOffer, PROXY_QUIC_FORWARDING, PROXY_QUIC_PORT_SHARING, port_sharing,
};
use crate::proxy_status::{PROXY_STATUS, connected};
use crate::target::Target;
use crate::tecc::{Agreement, RepairLimits, TECC};

pub use self::access::{Access, Token, TokenError};
pub use self::config::{Limits, ProxyConfig, UserLimit};
pub use self::ip::{IpNetwork, NetworkError, interface_addresses};
pub use self::origin::{Origin, OriginError};
pub use self::resolve::{Resolve, Resolving, SystemResolver};
pub use self::stats::{ProxyStats, describe_metrics};

/// Says that the content is capsules (RFC 9297, section 3.4).
pub(crate) const CAPSULE_PROTOCOL: HeaderName = HeaderName::from_static("capsule-protocol");

/// Pieces of content for the client that wait to be sent.
const WAITING_PIECES: usize = 16;

/// A proxy for UDP and TCP. Clones share its limits and counters.
#[derive(Clone)]
pub struct TunnelProxy {
    shared: Arc<Shared>,
}

struct Shared {
    config: ProxyConfig,
    resolver: Box<dyn Resolve>,
    places: Places,
    new_tunnels: NewTunnels,
    counters: Arc<Counters>,
    /// The network for IP, if there is one.
    attachment: Option<Attachment>,
}

impl TunnelProxy {
    /// A proxy that resolves names with the system's resolver.
    pub fn new(config: ProxyConfig) -> Self {
        Self::with_resolver(config, SystemResolver)
    }

    /// A proxy that resolves names with `resolver`.
    pub fn with_resolver(config: ProxyConfig, resolver: impl Resolve) -> Self {
        Self::build(config, resolver, None)
    }

    /// The same, and tunnels for IP packets lead into `network`. They reach the addresses of the policy; its ports
    /// concern UDP and TCP tunnels only. Several proxies may have one network, such as one that replaces another.
    pub fn with_network(config: ProxyConfig, resolver: impl Resolve, network: &IpNetwork) -> Self {
        Self::build(config, resolver, Some(network))
    }

    fn build(config: ProxyConfig, resolver: impl Resolve, network: Option<&IpNetwork>) -> Self {
        let places = Places::new(config.limits);
        let counters = Arc::<Counters>::default();
        let attachment = network.map(|network| network.attach(&config.policy));
        Self {
            shared: Arc::new(Shared {
                new_tunnels: NewTunnels::new(config.limits.new_per_target),
                config,
                resolver: Box::new(resolver),
                places,
                counters,
                attachment,
            }),
        }
    }

    /// Counters since the start.
    pub fn stats(&self) -> ProxyStats {
        self.shared.counters.read()
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        match self.open(request).await {
            Ok(response) => response,
            Err(refusal) => {
                tracing::debug!(%refusal, "a tunnel was refused");
                self.shared.counters.on_refusal();
                refusal.response()
            }
        }
    }

    async fn open(&self, request: Request<Body>) -> Result<Response<Body>, Refusal> {
        let (head, _) = request.into_parts();
        let asked = request::read(&head, self.shared.attachment.is_some())?;
        origin::check(&head.headers, &self.shared.config.allowed_origins)?;
        match asked {
            Asked::Udp(asked, target) => self.open_udp(&head, &asked, target).await,
            Asked::Ip(asked, scope) => {
                let attachment = self.shared.attachment.as_ref();
                let attachment = attachment.ok_or(Refusal::OtherProtocol)?;
                self.open_ip(attachment, &head, &asked, scope).await
            }
            Asked::Tcp(asked, target) => self.open_tcp(&head, &asked, target).await,
        }
    }

    /// The addresses of `target` that the user of a request may reach, never none, and a place for the tunnel.
    async fn admit(
        &self,
        head: &http::request::Parts,
        target: &Target,
    ) -> Result<(Vec<SocketAddr>, Place), Refusal> {
        let shared = &self.shared;
        let user = shared.config.access.check(head)?;
        shared.config.policy.check_port(target.port())?;
        let time_limit = shared.config.limits.resolution;
        let addresses = resolve::addresses(&*shared.resolver, target, time_limit).await?;
        if addresses.is_empty() {
            return Err(Refusal::NoAddress);
        }
        let addresses = shared.config.policy.permitted(addresses)?;
        let place = shared.places.take(user.as_deref())?;
        shared.new_tunnels.open(addresses[0].ip())?;
        Ok((addresses, place))
    }

    async fn open_udp(
        &self,
        head: &http::request::Parts,
        asked: &UpgradeRequest,
        target: Target,
    ) -> Result<Response<Body>, Refusal> {
        let (addresses, place) = self.admit(head, &target).await?;
        let shared = &self.shared;
        let (socket, address) = TargetSocket::connect(&addresses).map_err(Refusal::Socket)?;
        let datagrams = head.extensions.get::<HttpDatagrams>().cloned();
        let agreement = self.agreement(&head.headers, datagrams.as_ref());
        // Forwarded packets are neither numbered nor repaired.
        let forwarding = match agreement {
            Some(_) => None,
            None => self.forwarding(&head.headers, datagrams.as_ref()),
        };
        let answer = forwarding.as_ref().map(|agreed| agreed.answer);
        let (to_client, body) = Channel::<bytes::Bytes>::new(WAITING_PIECES);
        let tunnel = Tunnel {
            socket,
            datagrams,
            agreement,
            forwarding,
            to_client,
            from_client: asked.incoming().unwrap_or_default(),
            reflection: shared.config.reflection,
            budget: place.budget(),
            idle_timeout: shared.config.limits.idle_timeout,
            counters: Arc::clone(&shared.counters),
        };
        tracing::debug!(%target, %address, "UDP tunnel opened");
        tokio::spawn(async move {
            let end = tunnel.run().await;
            tracing::debug!(%target, %address, %end, "UDP tunnel closed");
            drop(place);
        });
        let mut response = asked.accepting(CONNECT_UDP, Body::new(body));
        let headers = response.headers_mut();
        headers.insert(CAPSULE_PROTOCOL, HeaderValue::from_static("?1"));
        if let Some(field) = agreement.and_then(|(agreement, _)| agreement.field()) {
            headers.insert(TECC, field);
        }
        if let Some(field) = answer.and_then(|answer| answer.field()) {
            headers.insert(PROXY_QUIC_FORWARDING, field);
        }
        if head.headers.contains_key(PROXY_QUIC_PORT_SHARING) {
            headers.insert(PROXY_QUIC_PORT_SHARING, port_sharing(false));
        }
        if let Some(status) = connected(address) {
            headers.insert(PROXY_STATUS, status);
        }
        Ok(response)
    }

    /// The forwarding that the client of a request asks for, if this proxy and the version of HTTP have it.
    fn forwarding(&self, headers: &HeaderMap, datagrams: Option<&HttpDatagrams>) -> Option<Agreed> {
        datagrams?.max_size()?;
        let offer = ForwardingOffer::parse(headers.get(PROXY_QUIC_FORWARDING)?)?;
        Agreed::new(&offer, &self.shared.config.forwarding)
    }

    /// The repair that the client of a request asks for, if this proxy and the version of HTTP have it.
    fn agreement(
        &self,
        headers: &HeaderMap,
        datagrams: Option<&HttpDatagrams>,
    ) -> Option<(Agreement, RepairLimits)> {
        let limits = self.shared.config.repair?;
        datagrams?.max_size()?;
        Some((Agreement::parse(headers.get(TECC)?)?, limits))
    }

    async fn open_tcp(
        &self,
        head: &http::request::Parts,
        asked: &UpgradeRequest,
        target: Target,
    ) -> Result<Response<Body>, Refusal> {
        let (addresses, place) = self.admit(head, &target).await?;
        let time_limit = self.shared.config.limits.connecting;
        let stream = tcp_tunnel::connect(&addresses, time_limit).await;
        let stream = stream.map_err(Refusal::Socket)?;
        let address = stream.peer_addr().map_err(Refusal::Socket)?;
        let taken = Refusal::Malformed("the content was read already");
        let (mut response, client) = asked.accept("").ok_or(taken)?;
        tracing::debug!(%target, %address, "TCP tunnel opened");
        let counters = Arc::clone(&self.shared.counters);
        let client = Metered::new(client, place.budget());
        tokio::spawn(async move {
            counters.on_open();
            let end = tcp_tunnel::forward(client, stream).await;
            counters.on_close();
            tracing::debug!(%target, %address, ?end, "TCP tunnel closed");
            drop(place);
        });
        if let Some(status) = connected(address) {
            response.headers_mut().insert(PROXY_STATUS, status);
        }
        Ok(response)
    }
}

impl Service<Request<Body>> for TunnelProxy {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let proxy = self.clone();
        Box::pin(async move { Ok(proxy.answer(request).await) })
    }
}

impl std::fmt::Debug for TunnelProxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TunnelProxy")
            .field("config", &self.shared.config)
            .finish_non_exhaustive()
    }
}
