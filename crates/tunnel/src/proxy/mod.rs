//! The proxy: a tower service that answers requests for tunnels, for UDP (RFC 9298), for IP (RFC 9484) and for TCP
//! (CONNECT), over HTTP/3, HTTP/2 and HTTP/1.1.
//!
//! A request passes, in this order: its form, its origin, the user, the port, the number of tunnels, the resolution of the
//! name, the address, the number of new tunnels to it. Then the socket to the target is opened and the request is answered; a tunnel for UDP lasts until either
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
mod distinguished_name;
mod forwarding;
mod idle;
mod ip;
mod metered;
mod new_tunnels;
mod origin;
mod own_addresses;
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
mod usage;
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
use swiftwater_http::web::body::{Body, BoxError};
use swiftwater_http::web::upgrade::UpgradeRequest;
use tower::Service;

use self::forwarding::Agreed;
use self::ip::AttachedNetwork;
use self::metered::Metered;
use self::own_addresses::without_own;
use self::refusal::Refusal;
use self::request::TunnelRequest;
use self::stats::Counters;
use self::target_socket::TargetSocket;
use self::udp_tunnel::Tunnel;
use self::usage::TunnelPermit;
use crate::CONNECT_UDP;
use crate::forwarding::{
    ForwardingOffer, PROXY_QUIC_FORWARDING, PROXY_QUIC_PORT_SHARING, port_sharing,
};
use crate::policy::TargetDenied;
use crate::proxy_status::{PROXY_STATUS, connected};
use crate::target::Target;
use crate::tecc::{Agreement, RepairLimits, TECC};

pub use self::access::{Access, Token, TokenError};
pub use self::config::{Limits, ProxyConfig, UserLimit};
pub use self::ip::{IpNetwork, NetworkError, interface_addresses};
pub use self::origin::{Origin, OriginError};
pub use self::resolve::{Resolve, Resolving, SystemResolver};
pub use self::stats::{ProxyStats, describe_metrics};
pub use self::usage::TunnelUsage;

/// Says that the content is capsules (RFC 9297, section 3.4).
pub(crate) const CAPSULE_PROTOCOL: HeaderName = HeaderName::from_static("capsule-protocol");

/// Pieces of content for the client that wait to be sent.
const WAITING_PIECES: usize = 16;

/// A proxy for UDP, IP and TCP. Clones share its limits and counters.
#[derive(Clone)]
pub struct TunnelProxy {
    shared: Arc<Shared>,
}

struct Shared {
    config: ProxyConfig,
    resolver: Arc<dyn Resolve>,
    counters: Arc<Counters>,
    /// The network for IP, if there is one.
    network: Option<AttachedNetwork>,
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
        let counters = Arc::<Counters>::default();
        let network = network.map(|network| network.attach(&config.policy));
        Self {
            shared: Arc::new(Shared {
                config,
                resolver: Arc::new(resolver),
                counters,
                network,
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
        let request = request::read(&head, self.shared.network.is_some())?;
        origin::check(&head.headers, &self.shared.config.allowed_origins)?;
        match request {
            TunnelRequest::Udp(asked, target) => self.open_udp(&head, &asked, target).await,
            TunnelRequest::Ip(asked, scope) => {
                let network = self.shared.network.as_ref();
                let network = network.ok_or(Refusal::OtherProtocol)?;
                self.open_ip(network, &head, &asked, scope).await
            }
            TunnelRequest::Tcp(asked, target) => self.open_tcp(&head, &asked, target).await,
        }
    }

    /// The addresses of `target` that the user of a request may reach, never none, and a permit for the tunnel.
    async fn admit(
        &self,
        head: &http::request::Parts,
        target: &Target,
    ) -> Result<(Vec<SocketAddr>, TunnelPermit), Refusal> {
        let shared = &self.shared;
        let ProxyConfig { policy, limits, .. } = &shared.config;
        let user = shared.config.access.check(head)?;
        policy.check_port(target.port())?;
        let permit = shared.config.usage.permit(limits, user.as_deref())?;
        let resolved = resolve::addresses(&shared.resolver, target, permit, limits.resolution);
        let (addresses, permit) = resolved.await?;
        if addresses.is_empty() {
            return Err(Refusal::NoAddress);
        }
        let mut addresses = policy.permitted(addresses)?;
        let first = addresses[0].ip();
        without_own(&mut addresses, policy);
        if addresses.is_empty() {
            return Err(TargetDenied::Own(first).into());
        }
        Ok((addresses, permit))
    }

    /// Counts a new tunnel to `address`, which is connected to next, or refuses it.
    fn permit_target(&self, address: SocketAddr) -> Result<(), Refusal> {
        let config = &self.shared.config;
        let new_tunnels = config.usage.new_tunnels();
        new_tunnels.open(address.ip(), config.limits.new_per_target)
    }

    async fn open_udp(
        &self,
        head: &http::request::Parts,
        asked: &UpgradeRequest,
        target: Target,
    ) -> Result<Response<Body>, Refusal> {
        let (addresses, permit) = self.admit(head, &target).await?;
        let shared = &self.shared;
        let permit_target = |address| self.permit_target(address);
        let (socket, address) = TargetSocket::connect(&addresses, permit_target)?;
        let datagrams = head.extensions.get::<HttpDatagrams>().cloned();
        let agreement = self.agreement(&head.headers, datagrams.as_ref());
        // Forwarded packets are neither numbered nor repaired.
        let forwarding = match agreement {
            Some(_) => None,
            None => self.forwarding(&head.headers, datagrams.as_ref()),
        };
        let answer = forwarding.as_ref().map(|agreed| agreed.answer);
        let (to_client, body) = Channel::<bytes::Bytes, BoxError>::new(WAITING_PIECES);
        let tunnel = Tunnel {
            socket,
            datagrams,
            agreement,
            forwarding,
            to_client,
            from_client: asked.incoming().unwrap_or_default(),
            reflection: shared.config.reflection,
            budget: permit.budget(),
            idle_timeout: shared.config.limits.idle_timeout,
            counters: Arc::clone(&shared.counters),
        };
        tracing::debug!(%target, %address, "UDP tunnel opened");
        tokio::spawn(async move {
            let end = tunnel.run(permit).await;
            tracing::debug!(%target, %address, %end, "UDP tunnel closed");
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
        let (addresses, permit) = self.admit(head, &target).await?;
        let time_limit = self.shared.config.limits.connecting;
        let permit_target = |address| self.permit_target(address);
        let stream = tcp_tunnel::connect(&addresses, permit_target, time_limit).await?;
        let address = stream.peer_addr().map_err(Refusal::Socket)?;
        let taken = Refusal::Malformed("the content was read already");
        let (mut response, client) = asked.accept("").ok_or(taken)?;
        tracing::debug!(%target, %address, "TCP tunnel opened");
        let counters = Arc::clone(&self.shared.counters);
        let client = Metered::new(client, permit.budget());
        tokio::spawn(async move {
            counters.on_open();
            let end = tcp_tunnel::forward(client, stream).await;
            drop(permit);
            counters.on_close();
            tracing::debug!(%target, %address, ?end, "TCP tunnel closed");
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
