//! Requests for tunnels for IP packets.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Response, request};
use http_body_util::channel::Channel;
use swiftwater_http::udp::connect::HttpDatagrams;
use swiftwater_http::web::body::{Body, BoxError};
use swiftwater_http::web::upgrade::UpgradeRequest;

use super::network::AttachedNetwork;
use super::rules::PacketRules;
use super::tunnel::IpTunnel;
use crate::CONNECT_IP;
use crate::ip::{AddressRange, Scope, ScopeTarget};
use crate::policy::{Prefix, TargetDenied};
use crate::proxy::refusal::Refusal;
use crate::proxy::usage::TunnelPermit;
use crate::proxy::{CAPSULE_PROTOCOL, TunnelProxy, WAITING_PIECES, resolve};

impl TunnelProxy {
    /// Opens a tunnel for the packets of `scope` into the network of `network`.
    pub(in crate::proxy) async fn open_ip(
        &self,
        network: &AttachedNetwork,
        head: &request::Parts,
        asked: &UpgradeRequest,
        scope: Scope,
    ) -> Result<Response<Body>, Refusal> {
        let shared = &self.shared;
        let AttachedNetwork { dispatcher, policy } = network;
        let user = shared.config.access.check(head)?;
        let limits = &shared.config.limits;
        let permit = shared.config.usage.permit(limits, user.as_deref())?;
        let (targets, permit) = self.scope_addresses(&scope, permit).await?;
        let rules = PacketRules::new(policy.clone(), targets, scope.protocol);
        if rules.routes().as_slice().is_empty() {
            return Err(nothing_permitted(&scope));
        }
        let (ipv4, ipv6) = rules.versions();
        if !dispatcher.has_version(ipv4, ipv6) {
            return Err(Refusal::NoSuchVersion);
        }
        let registration = dispatcher
            .register(ipv4, ipv6, &shared.counters)
            .map_err(Refusal::Socket)?;
        let registration = registration.ok_or(Refusal::Full)?;
        let (to_client, body) = Channel::<Bytes, BoxError>::new(WAITING_PIECES);
        let tunnel = IpTunnel {
            dispatcher: Arc::clone(dispatcher),
            registration,
            rules,
            datagrams: head.extensions.get::<HttpDatagrams>().cloned(),
            to_client,
            from_client: asked.incoming().unwrap_or_default(),
            budget: permit.budget(),
            counters: Arc::clone(&shared.counters),
        };
        tracing::debug!(%scope, "IP tunnel opened");
        tokio::spawn(async move {
            let end = tunnel.run(permit).await;
            tracing::debug!(%scope, %end, "IP tunnel closed");
        });
        let mut response = asked.accepting(CONNECT_IP, Body::new(body));
        let headers = response.headers_mut();
        headers.insert(CAPSULE_PROTOCOL, HeaderValue::from_static("?1"));
        Ok(response)
    }

    /// The addresses of a scope, for the tunnel of `permit`; `None` for all.
    async fn scope_addresses(
        &self,
        scope: &Scope,
        permit: TunnelPermit,
    ) -> Result<(Option<Vec<AddressRange>>, TunnelPermit), Refusal> {
        let config = &self.shared.config;
        match &scope.target {
            ScopeTarget::Any => Ok((None, permit)),
            ScopeTarget::Prefix(prefix) => Ok((Some(vec![(*prefix).into()]), permit)),
            ScopeTarget::Name(name) => {
                let resolver = &self.shared.resolver;
                let time_limit = config.limits.resolution;
                let resolved = resolve::name_addresses(resolver, name, 0, permit, time_limit);
                let (found, permit) = resolved.await?;
                if found.is_empty() {
                    return Err(Refusal::NoAddress);
                }
                let permitted = config.policy.permitted(found)?;
                let single = permitted.iter().map(|found| Prefix::single(found.ip()));
                Ok((Some(single.map(AddressRange::from).collect()), permit))
            }
        }
    }
}

/// Why there is no route within a scope.
fn nothing_permitted(scope: &Scope) -> Refusal {
    match &scope.target {
        ScopeTarget::Prefix(prefix) => TargetDenied::Address(prefix.address()).into(),
        _ => Refusal::NoAddress,
    }
}
