//! The content of routes with upstreams: the proxy or balancer, and TLS to them.

use std::sync::Arc;
use std::time::Duration;

use swiftwater::Client;
use swiftwater::tls::pki_types::ServerName;
use swiftwater_http::web::balancer::{Balancer, HealthCheck};
use swiftwater_http::web::proxy::{Proxy, ProxyOptions, UpstreamTls};

use super::client_certificate;
use super::config;
use super::config::values::{Period, UpstreamUrl, Upstreams};
use crate::exit::{Exit, Failure};
use crate::identity::read_certificates;
use crate::web_content::{Content, boxed};

/// Time between health checks of an upstream.
const HEALTH_INTERVAL: Duration = Duration::from_secs(10);

/// The content of `route` if it has upstreams; each gets at most `in_flight` requests at once.
pub(super) fn upstreams(
    route: &config::Route,
    in_flight: usize,
) -> Result<Option<Content>, Failure> {
    let Some((first, others)) = route.upstream.as_ref().and_then(Upstreams::split) else {
        return Ok(None);
    };
    let default = ProxyOptions::default();
    let time = |period: Option<Period>, default| period.map_or(default, |period| period.0);
    let is_secure = |url: &UpstreamUrl| url.upstream().is_secure();
    let tls = (is_secure(first) || others.iter().any(is_secure))
        .then(|| tls(route))
        .transpose()?;
    let options = ProxyOptions {
        preserve_host: route.preserve_host,
        // Validated when it was read.
        host: (route.upstream_host.as_deref()).and_then(|host| host.parse().ok()),
        tls,
        trust_forwarded: route.trust_forwarded,
        in_flight: in_flight.max(1),
        connect_timeout: time(route.connect_timeout, default.connect_timeout),
        head_timeout: time(route.head_timeout, default.head_timeout),
        body_gap: time(route.body_timeout, default.body_gap),
        websocket: route.websocket.unwrap_or(default.websocket),
        websocket_timeout: time(route.websocket_timeout, default.websocket_timeout),
        ..default
    };
    let first = first.upstream().clone();
    if others.is_empty() && route.health_path.is_none() {
        return Ok(Some(boxed(Proxy::new(first, options))));
    }
    let others = others.iter().map(|url| url.upstream().clone()).collect();
    let balancer = Balancer::new(first, others, &options);
    Ok(Some(boxed(match &route.health_path {
        None => balancer,
        Some(path) => balancer.with_check(&HealthCheck {
            path: path.get().clone(),
            interval: time(route.health_interval, HEALTH_INTERVAL),
            timeout: options.connect_timeout,
        }),
    })))
}

/// TLS to the upstreams of `route`: trusted are the certificates of its file, or those that the system trusts.
fn tls(route: &config::Route) -> Result<UpstreamTls, Failure> {
    let mut client = Client::builder();
    if let Some(path) = &route.upstream_ca {
        client = client.trust_only(read_certificates(path)?);
    }
    let mut config = client
        .tls_over_tcp()
        .map_err(|error| Failure::new(Exit::Certificate, error))?;
    if let (Some(cert), Some(key)) = (&route.upstream_cert, &route.upstream_key) {
        config.client_auth_cert_resolver = client_certificate::read(cert, key)?;
    }
    // Validated when it was read.
    let name = route.upstream_name.clone();
    Ok(UpstreamTls {
        config: Arc::new(config),
        name: name.and_then(|name| ServerName::try_from(name).ok()),
    })
}
