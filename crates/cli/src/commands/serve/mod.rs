//! `serve`: directories and upstreams over HTTP/3, HTTP/2 and HTTP/1.1 on one port number, and files
//! over `hq-interop` on request.
//!
//! - [`args`], [`config`]: flags and configuration.
//! - `live`: state that changes on SIGHUP: content, reports, certificates.
//! - `certificates`: of files, and of an authority by ACME.
//! - `client_authorities`: certificates of clients; `client_certificate`: the server's own towards upstreams.
//! - `inherited_sockets`: listeners of the service manager.
//! - `listeners`, `connection_service`, `drain`: sockets, connections, graceful end.
//! - `content`, `router`, `upstreams`, `ip_networks`: content for requests; `echo`: WebTransport sessions.
//! - `reports`, `line_writer`, `access_format`, `connection_log`, `log`, `metrics`, `process_metrics`: logs and
//!   metrics.
//! - `descriptors`: division of file descriptors; `secrets`: state kept for the next process.

mod access_format;
mod acme_args;
pub mod args;
mod certificates;
mod client_authorities;
mod client_certificate;
pub mod config;
mod connection_log;
mod connection_service;
mod content;
mod descriptors;
mod drain;
mod echo;
mod inherited_sockets;
mod ip_networks;
mod line_writer;
mod listeners;
mod live;
mod log;
mod metrics;
mod process_metrics;
mod reports;
mod router;
mod secrets;
mod tunnel_usages;
mod upstreams;

use std::path::Path;
use std::sync::{Arc, Mutex};

use swiftwater::Server;
use swiftwater::tls::ClientAuthorities;
use swiftwater_http::tcp::{Certificates, ConnectionCount, RunningServer};
use swiftwater_http::web::response_budget::ResponseBudget;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower::Layer as _;

use self::args::{LogLevel, ServeArgs};
use self::certificates::{Challenges, StateFiles, authority, certificates, identities, maintain};
use self::client_authorities::authorities;
use self::config::values::Upstreams;
use self::config::{Config, effective};
use self::connection_service::ConnectionService;
use self::content::{Shared, latest};
use self::descriptors::Descriptors;
use self::drain::finish;
use self::echo::with_echo;
pub(crate) use self::inherited_sockets::InheritedSockets;
pub(crate) use self::listeners::bind;
use self::listeners::{builder, http3, serve_redirections, serve_tcp};
use self::live::{Live, Reloader};
pub(crate) use self::log::announce;
use self::log::{
    announce_browser, announce_metrics, announce_others, announce_protocols, announce_redirections,
};
use self::metrics::Exporter;
use crate::cli::IdentityArgs;
use crate::exit::{Exit, Failure};
use crate::identity::{Identity, default_state_dir};
use crate::logging::Logging;
use crate::output;
use crate::runtime::{ReloadRequests, StopRequests};
use crate::transport::farewell;
use crate::web_content::{Content, boxed};

pub(crate) async fn run(args: ServeArgs, logging: &Logging) -> Result<(), Failure> {
    let config = effective(&args)?;
    if args.print_config {
        return print_config(&config);
    }
    if args.check_config {
        return check(config, args.json);
    }
    // First of all: unhandled signals would end it without draining, and systemd does not start again what a reload ended.
    let mut stops = StopRequests::new()?;
    let reloads = ReloadRequests::new()?;
    let identities = identities(&config, StateFiles::Created)?;
    let certificates = Arc::new(certificates(&identities)?);
    let challenges = Challenges::default();
    let authority = authority(&config, &challenges)?;
    let descriptors = Descriptors::obtain(&config, args.config.is_some());
    let clients = authorities(&config)?;
    let shared = Shared::new(&descriptors, &config, clients.clone());
    logging.set_level(config.log.level.map(LogLevel::as_str));
    let exporter = exporter(&config).await?;
    let (live, current) = watch::channel(Live::new(&config, &shared, args.json)?);
    let content = latest(current.clone());
    let mut sockets = InheritedSockets::take();
    let asked = (&certificates, clients.as_ref());
    let opened = open(&args, &config, &identities, asked, &mut sockets);
    let (server, listener) = opened.await?;
    // One budget for HTTP/3 and TCP together.
    let responses = ResponseBudget::new(config.limits.response_memory.get() as usize);
    let over_tcp = |listener| {
        let (content, live) = (content.clone(), current.clone());
        serve_tcp(
            &config,
            descriptors.connections,
            &responses,
            (&certificates, clients.as_ref(), &challenges),
            listener,
            content,
            live,
        )
    };
    let tcp = listener.map(over_tcp).transpose()?;
    let port = server.local_addr().port();
    let most = descriptors.connections;
    let plain = content::redirections(&config, port, current.clone())?;
    let plain = boxed(challenges.http.layer(plain));
    let redirections = serve_redirections(&config, most, &responses, plain, &mut sockets).await?;
    if let Some(redirections) = &redirections {
        announce_redirections(redirections.local_addr(), args.json)?;
    }
    let _metrics = start_metrics(exporter, &server, tcp.as_ref(), args.json)?;

    let reloader = Reloader {
        args: &args,
        started: &config,
        applied: Mutex::new(config.clone()),
        live,
        certificates: Arc::clone(&certificates),
        clients: clients.clone(),
        logging,
        shared,
    };
    let (drain, draining) = watch::channel(false);
    let service = connection_service(&args, &config, &responses, content, &current, draining);
    let mut connections = JoinSet::new();
    tokio::select! {
        () = accept(&server, &service, &mut connections, reloads, &reloader) => {}
        () = maintain(authority.as_ref(), |progress| reloader.on_progress(&progress)) => {}
        stopped = stops.next() => stopped?,
    }
    server.endpoint().set_server_config(None);
    drain.send_replace(true);
    service.http3.drain();
    let over_tcp = (tcp, redirections);
    let outcome = finish(&mut connections, over_tcp, config.grace.0, &mut stops).await;
    farewell(&server).await;
    flush(&current).await;
    outcome
}

/// Writes out what the access log holds.
async fn flush(current: &watch::Receiver<Live>) {
    let reports = current.borrow().reports.clone();
    // A failure means that the runtime ends, and the log with it.
    let _ = tokio::task::spawn_blocking(move || reports.flush()).await;
}

/// `--print-config`: the configuration in use.
fn print_config(config: &Config) -> Result<(), Failure> {
    let text = toml::to_string(config).map_err(|error| Failure::new(Exit::Failure, error))?;
    output::raw(text.as_bytes())
}

/// The listener of the metrics, if there is one.
async fn exporter(config: &Config) -> Result<Option<Exporter>, Failure> {
    match config.metrics.listen {
        Some(address) => Exporter::bind(address).await.map(Some),
        None => Ok(None),
    }
}

/// Binds the server, over TCP too if that is served, and announces it.
async fn open(
    args: &ServeArgs,
    config: &Config,
    identities: &[Identity],
    (certificates, clients): (&Arc<Certificates>, Option<&Arc<ClientAuthorities>>),
    sockets: &mut InheritedSockets,
) -> Result<(Server, Option<TcpListener>), Failure> {
    let mut builder = builder(args, config, &identities[0], certificates);
    if let Some(clients) = clients {
        builder = builder.client_certificates(Arc::clone(clients) as _);
    }
    if let Some(secrets) = secrets::kept(config)? {
        builder = builder.secrets(secrets);
    }
    let (server, listener) = bind(&builder, config.listen, !config.tcp, sockets).await?;
    announce_all(&server, identities, config, args.json)?;
    Ok((server, listener))
}

/// Shows where and what is served: addresses and certificates, protocols, and how a browser opens it.
fn announce_all(
    server: &Server,
    identities: &[Identity],
    config: &Config,
    json: bool,
) -> Result<(), Failure> {
    announce(server, &identities[0], &what(config), json)?;
    announce_others(&identities[1..], json)?;
    announce_protocols(server.local_addr(), config.tcp, json)?;
    if only_tunnels(config) {
        return Ok(());
    }
    announce_browser(server.local_addr(), &identities[0], json)
}

/// `--check-config`: checks everything, but creates no files.
fn check(config: Config, json: bool) -> Result<(), Failure> {
    certificates(&identities(&config, StateFiles::Read)?)?;
    if let Some(path) = config.log.access.as_deref()
        && path != Path::new(config::OFF)
    {
        line_writer::check(path).map_err(|error| live::access_log_failure(path, &error))?;
    }
    secrets::check(&config)?;
    let log = config::Log::default();
    let descriptors = Descriptors::obtain(&config, true);
    let shared = Shared::new(&descriptors, &config, authorities(&config)?).for_check();
    Live::new(&Config { log, ..config }, &shared, json)?;
    output::line("the configuration can be served")
}

/// Configuration and content of QUIC connections.
fn connection_service(
    args: &ServeArgs,
    config: &Config,
    responses: &ResponseBudget,
    content: Content,
    live: &watch::Receiver<Live>,
    draining: watch::Receiver<bool>,
) -> ConnectionService {
    let http3 = http3(&config.limits, responses);
    let (http3, content) = match &args.webtransport_echo {
        Some(path) => (
            http3.webtransport(echo::SESSIONS),
            with_echo(content, path.clone(), live.clone()),
        ),
        None => (http3, content),
    };
    ConnectionService {
        http3,
        content,
        live: live.clone(),
        draining,
        send_timeout: config.limits.send_timeout.0,
        path_operations: args.operations.path_operation.clone(),
    }
}

/// Serves connections until the server is closed.
async fn accept(
    server: &Server,
    service: &ConnectionService,
    connections: &mut JoinSet<()>,
    mut reloads: ReloadRequests,
    reloader: &Reloader<'_>,
) {
    loop {
        tokio::select! {
            connection = server.accept() => {
                let Some(connection) = connection else { return };
                connections.spawn(service.clone().serve(connection));
            }
            Some(_) = connections.join_next() => {}
            () = reloads.next() => reloader.reload(),
        }
    }
}

/// Whether there is nothing for a browser.
fn only_tunnels(config: &Config) -> bool {
    let mut routes = config.sites.iter().flat_map(|site| &site.get_ref().routes);
    routes.all(|route| route.get_ref().tunnels.is_some())
}

/// The text of the first line.
fn what(config: &Config) -> String {
    let routes = config.sites.iter().flat_map(|site| &site.get_ref().routes);
    let mut routes = routes.map(toml::Spanned::get_ref);
    let (Some(route), None) = (routes.next(), routes.next()) else {
        let count = config.sites.len();
        let plural = if count == 1 { "" } else { "s" };
        return format!("serving {count} site{plural}");
    };
    if let Some(tunnels) = &route.tunnels {
        let proxied = if tunnels.ip_pool.is_empty() {
            "UDP and TCP"
        } else {
            "UDP, TCP and IP"
        };
        return format!("proxying {proxied}");
    }
    match &route.directory {
        Some(directory) => {
            let whole = directory.canonicalize();
            let shown = whole.as_ref().unwrap_or(directory);
            format!("serving {}", shown.display())
        }
        None => match route.upstream.as_ref().and_then(Upstreams::split) {
            Some((upstream, [])) => format!("forwarding to {}", upstream.as_str()),
            Some((_, others)) => format!("forwarding to {} upstreams", 1 + others.len()),
            None => "redirecting".to_owned(),
        },
    }
}

fn start_metrics(
    exporter: Option<Exporter>,
    server: &Server,
    tcp: Option<&RunningServer>,
    json: bool,
) -> Result<Option<RunningServer>, Failure> {
    let Some(exporter) = exporter else {
        return Ok(None);
    };
    if let Some(address) = exporter.address() {
        announce_metrics(address, json)?;
    }
    let connections = tcp.map(RunningServer::counter);
    let count = move || connections.as_ref().map_or(0, ConnectionCount::get);
    exporter.serve(server.endpoint().clone(), count).map(Some)
}

/// The certificate of the flags of another command.
pub(crate) fn identity(args: &IdentityArgs) -> Result<Identity, Failure> {
    if let (Some(cert), Some(key)) = (&args.cert, &args.key) {
        return Identity::from_files(cert, key);
    }
    let state_dir = match &args.state_dir {
        Some(directory) => directory.clone(),
        None => default_state_dir()?,
    };
    Identity::development(&state_dir, &args.names)
}
