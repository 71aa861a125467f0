//! The content served over HTTP: directories and upstreams, and the layers in front of them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Request, Response};
use swiftwater::tls::ClientAuthorities;
use swiftwater_http::web::access_log::AccessLogLayer;
use swiftwater_http::web::alt_svc::AltSvcLayer;
use swiftwater_http::web::body::Body;
use swiftwater_http::web::compression::Compress;
use swiftwater_http::web::early_data::EarlyDataLayer;
use swiftwater_http::web::files::{FileBody, FileCache, FileOptions, FileService};
use swiftwater_http::web::metrics::MetricsLayer;
use swiftwater_http::web::redirect::Redirect;
use swiftwater_http::web::response_fields::ResponseFields;
use swiftwater_http::web::shared_limit::SharedLimit;
use swiftwater_tunnel::proxy::{ProxyConfig, SystemResolver, TunnelProxy};
use tokio::sync::watch;
use tower::util::BoxCloneSyncService;
use tower::{Layer, ServiceBuilder, ServiceExt, service_fn};

use super::args::LogFormat;
use super::client_authorities::for_known_clients;
use super::config::values::{RedirectStatus, RedirectTarget};
use super::config::{self, Config};
use super::descriptors::Descriptors;
use super::ip_networks::IpNetworks;
use super::live::Live;
use super::reports::Reports;
use super::router::{RouteService, Router};
use super::tunnel_usages::TunnelUsages;
use super::upstreams::upstreams;
use crate::exit::{Exit, Failure};
use crate::web_content::{Content, boxed};

/// How long clients may cache the advertisement of HTTP/3.
const ALT_SVC_AGE: Duration = Duration::from_secs(24 * 3600);

/// Clients repeat method and content, and may remember it.
const PERMANENT_REDIRECT: u16 = 308;

/// State that outlives a reload of the configuration.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    /// Budget of open files.
    open_files: SharedLimit,
    /// Contents of small files.
    file_cache: Option<FileCache>,
    /// Budget of concurrent compression.
    compression: SharedLimit,
    /// Concurrent requests to one upstream.
    upstream_requests: usize,
    /// TUN devices.
    networks: IpNetworks,
    /// What the tunnels of each route use of its limits.
    tunnel_usages: TunnelUsages,
    /// Whose certificates clients may have, if they are asked for one.
    clients: Option<Arc<ClientAuthorities>>,
}

impl Shared {
    /// Limits derived from the file descriptors.
    pub(super) fn new(
        descriptors: &Descriptors,
        config: &Config,
        clients: Option<Arc<ClientAuthorities>>,
    ) -> Self {
        let routes = config.sites.iter().flat_map(|site| &site.get_ref().routes);
        let upstreams = routes.filter_map(|route| route.get_ref().upstream.as_ref()?.split());
        let upstreams: usize = upstreams.map(|(_, others)| 1 + others.len()).sum();
        Self {
            open_files: SharedLimit::new(descriptors.files),
            file_cache: file_cache(config),
            compression: Compress::default_budget(),
            upstream_requests: descriptors.upstream_requests / upstreams.max(1),
            networks: IpNetworks::default(),
            tunnel_usages: TunnelUsages::default(),
            clients,
        }
    }

    /// The same, without making devices: to check a configuration.
    pub(super) fn for_check(self) -> Self {
        Self {
            networks: IpNetworks::for_check(),
            ..self
        }
    }
}

/// The file cache of `config`, unless it is switched off.
fn file_cache(config: &Config) -> Option<FileCache> {
    let limits = &config.limits;
    let bytes = limits.file_cache.get();
    (bytes > 0).then(|| FileCache::new(bytes, limits.file_cache_time.0))
}

/// Builds the content of `config`; each request is reported to `reports`.
pub(super) fn content(
    config: &Config,
    shared: &Shared,
    reports: &Reports,
) -> Result<Content, Failure> {
    let router = Arc::new(router(config, shared)?);
    let routed = service_fn(move |request: Request<Body>| {
        let router = Arc::clone(&router);
        async move { router.answer(request).await }
    });
    let guarded = boxed(EarlyDataLayer.layer(routed));
    let packed = if config.compression {
        boxed(
            Compress::default()
                .budget(shared.compression.clone())
                .layer(guarded),
        )
    } else {
        guarded
    };
    let counted = if config.metrics.listen.is_some() {
        boxed(MetricsLayer.layer(packed))
    } else {
        packed
    };
    if !reports.take_requests() {
        return Ok(counted);
    }
    let reports = reports.clone();
    let log = AccessLogLayer::to(move |record| reports.request(record));
    Ok(boxed(log_of(log, config).layer(counted)))
}

/// The access log with what the configuration asks for.
fn log_of(mut log: AccessLogLayer, config: &Config) -> AccessLogLayer {
    if config.log.query {
        log = log.with_query();
    }
    if config.log.format == LogFormat::Combined {
        log = log.with_client_fields();
    }
    log
}

/// The content over HTTP without TLS: redirections to the HTTPS server at `port`.
pub(super) fn redirections(
    config: &Config,
    port: u16,
    current: watch::Receiver<Live>,
) -> Result<Content, Failure> {
    let default = match port {
        443 => "https://{host}{path}".to_owned(),
        port => format!("https://{{host}}:{port}{{path}}"),
    };
    let target = config.http.redirect.as_ref();
    let target = target.map_or(default.as_str(), RedirectTarget::as_str);
    let redirect = Redirect::new(target, PERMANENT_REDIRECT);
    let redirect = redirect.map_err(|error| Failure::new(Exit::Usage, error))?;
    let log = AccessLogLayer::to(move |record| current.borrow().reports.request(record));
    Ok(boxed(log_of(log, config).layer(redirect)))
}

/// Passes each request to the value of `current` at that time.
pub(super) fn latest(current: watch::Receiver<Live>) -> Content {
    BoxCloneSyncService::new(service_fn(move |request: Request<Body>| {
        let content = current.borrow().content.clone();
        content.oneshot(request)
    }))
}

/// The same for TCP, whose clients get HTTP/3 on UDP port `port` advertised.
pub(super) fn with_alt_svc(content: Content, port: u16) -> Content {
    let layers = ServiceBuilder::new().layer(AltSvcLayer::new(port, ALT_SVC_AGE));
    boxed(layers.service(content))
}

fn router(config: &Config, shared: &Shared) -> Result<Router, Failure> {
    let mut router = Router::default();
    for site in config.sites.iter().map(toml::Spanned::get_ref) {
        let routes = (site.routes.iter()).map(|place| route(place.get_ref(), site, shared));
        let routes = routes.collect::<Result<_, _>>()?;
        router.add(&site.hosts, routes, fields(site.headers.iter())?);
    }
    Ok(router)
}

fn route(
    route: &config::Route,
    site: &config::Site,
    shared: &Shared,
) -> Result<RouteService, Failure> {
    // One of the four is set, which was validated when the configuration was read.
    let (content, strip) = if let Some(content) = upstreams(route, shared.upstream_requests)? {
        (content, route.strip_path)
    } else if let Some(tunnels) = &route.tunnels {
        let config = ProxyConfig {
            usage: shared.tunnel_usages.of(site, route),
            ..tunnels.proxy(shared.clients.as_ref())?
        };
        let proxy = match shared.networks.network(tunnels)? {
            Some(network) => TunnelProxy::with_network(config, SystemResolver, &network),
            None => TunnelProxy::new(config),
        };
        (boxed(proxy), false)
    } else if let Some(target) = &route.redirect {
        let status = route.status.map_or(PERMANENT_REDIRECT, RedirectStatus::get);
        let redirect = Redirect::new(target.as_str(), status);
        let redirect = redirect.map_err(|error| Failure::new(Exit::Usage, error))?;
        (boxed(redirect), true)
    } else {
        let directory = route.directory.as_deref();
        let directory = directory.unwrap_or_else(|| Path::new("."));
        let files = files(directory, route, shared)?;
        // Content in memory needs no box.
        let files =
            ServiceExt::<Request<Body>>::map_response(files, |response: Response<FileBody>| {
                response.map(Body::from)
            });
        (boxed(files), true)
    };
    let of_all = fields(site.headers.iter().chain(route.headers.iter()))?;
    let content = if of_all.is_empty() {
        content
    } else {
        boxed(of_all.layer(content))
    };
    // Those of the route, such as for caches, are for its content.
    let fields = fields(site.headers.iter())?;
    let content = if site.client_certificate {
        for_known_clients(content, fields.clone())
    } else {
        content
    };
    Ok(RouteService {
        path: route.path.clone(),
        strip,
        directory: route.directory.is_some(),
        relocate: route.redirect.is_none(),
        takes_protocols: route.upstream.is_some() || route.tunnels.is_some(),
        tunnels: route.tunnels.is_some(),
        content,
        fields,
    })
}

/// Fields of responses by their names and values.
fn fields<'a>(
    entries: impl Iterator<Item = (&'a str, &'a str)>,
) -> Result<ResponseFields, Failure> {
    ResponseFields::new(entries).map_err(|error| Failure::new(Exit::Usage, error))
}

fn files(directory: &Path, route: &config::Route, shared: &Shared) -> Result<FileService, Failure> {
    // Validated when it was read.
    let cache_control = route.cache_control.as_deref();
    let cache_control = cache_control.and_then(|value| HeaderValue::from_str(value).ok());
    let options = FileOptions {
        listing: route.listing,
        open_files: Some(shared.open_files.clone()),
        cache: shared.file_cache.clone(),
        spa_fallback: route.spa.clone(),
        hidden: route.hidden,
        precompressed: route.precompressed,
        follow_symlinks: route.follow_symlinks,
        cache_control,
        ..FileOptions::default()
    };
    FileService::new(directory, options)
        .map_err(|error| Failure::new(Exit::LocalFile, format_args!("cannot serve {error}")))
}
