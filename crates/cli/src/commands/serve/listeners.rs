//! The sockets of the server, and the configuration of each protocol.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use swiftwater::tls::ClientAuthorities;
use swiftwater::units::ByteCount;
use swiftwater::{EarlyData, RetryPolicy, Server, ServerBuilder};
use swiftwater_http::h3;
use swiftwater_http::tcp::{
    Certificates, MinTls, RunningServer, TcpLimits, TcpServer, server_config_from,
    server_config_with_clients,
};
use swiftwater_http::udp::{ALPN_HTTP3, H3Server};
use swiftwater_http::web::response_budget::ResponseBudget;
use swiftwater_http::web::timed_body::Pace;
use swiftwater_tunnel::transport::fit_initial_packets;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::args::{ServeArgs, TlsVersion, ZeroRtt};
use super::certificates::Challenges;
use super::config::{self, Config};
use super::connection_log::End;
use super::content::with_alt_svc;
use super::inherited_sockets::InheritedSockets;
use super::live::Live;
use super::metrics::count_tcp;
use crate::exit::{Exit, Failure, plain_io_error};
use crate::hq;
use crate::identity::Identity;
use crate::multipath::MultipathArgs;
use crate::transport::{listen, server};
use crate::web_content::Content;

/// Attempts with an OS-chosen port: one that is free for UDP may be in use for TCP.
const PORT_ATTEMPTS: usize = 20;

/// Time before the average rate of a request's content is checked.
const BODY_GRACE: Duration = Duration::from_secs(10);

/// The QUIC server, to be bound.
pub(super) fn builder(
    args: &ServeArgs,
    config: &Config,
    identity: &Identity,
    certificates: &Arc<Certificates>,
) -> ServerBuilder {
    let protocols: &[&[u8]] = if config.hq {
        &[ALPN_HTTP3, hq::ALPN]
    } else {
        &[ALPN_HTTP3]
    };
    let limits = &config.limits;
    let mut builder = server(identity, protocols, &config.tuning(&args.tuning))
        .certificate_resolver(Arc::clone(certificates) as _)
        .max_connections(limits.connections.get() as usize)
        .share_by_address(limits.share_by_address)
        .token_memory(ByteCount::new(limits.token_memory.get()))
        .transport(|transport| {
            transport.handshake_timeout = limits.handshake_timeout.0;
            transport.max_concurrent_bidi_streams = limits.requests.get();
            if let Some(timeout) = limits.idle_timeout {
                transport.max_idle_timeout = Some(timeout.0);
            }
            if has_tunnels(config) {
                fit_initial_packets(transport);
            }
        })
        .workers(config.workers);
    let paths = MultipathArgs {
        multipath: config.transport.multipath,
        max_paths: (config.transport.max_paths)
            .filter(|_| config.transport.multipath)
            .and_then(|count| u8::try_from(count.get()).ok()),
        scheduler: (config.transport.scheduler.clone()).filter(|_| config.transport.multipath),
        feedback: (config.transport.feedback.clone()).filter(|_| config.transport.multipath),
        multipath_version: (config.transport.multipath_version)
            .filter(|_| config.transport.multipath),
    };
    builder = paths.apply(builder);
    if config.transport.has_tecc() {
        builder = builder.tecc();
    }
    for &address in &config.also_listen {
        builder = builder.also_listen(address);
    }
    for &address in &config.preferred_addresses {
        builder = builder.preferred_address(address);
    }
    if config.transport.retry {
        builder = builder.retry(RetryPolicy::Always);
    }
    builder.early_data(match config.transport.zero_rtt {
        ZeroRtt::Accept => EarlyData::Accept,
        ZeroRtt::Reject => EarlyData::Reject,
    })
}

fn has_tunnels(config: &Config) -> bool {
    let mut routes = config.sites.iter().flat_map(|site| &site.get_ref().routes);
    routes.any(|route| route.get_ref().tunnels.is_some())
}

/// Binds UDP, and TCP on the same port.
pub(crate) async fn bind(
    builder: &ServerBuilder,
    address: SocketAddr,
    no_tcp: bool,
    sockets: &mut InheritedSockets,
) -> Result<(Server, Option<TcpListener>), Failure> {
    let mut attempts = 1;
    loop {
        let server = listen(builder, address)?;
        if no_tcp {
            return Ok((server, None));
        }
        let bound = server.local_addr();
        match sockets.listen(bound).await {
            Ok(listener) => return Ok((server, Some(listener))),
            Err(_) if address.port() == 0 && attempts < PORT_ATTEMPTS => attempts += 1,
            Err(error) => {
                let why = plain_io_error(&error);
                return Err(Failure::new(
                    Exit::Listen,
                    format_args!("cannot listen on TCP {bound}: {why} (--no-tcp does without)"),
                ));
            }
        }
    }
}

/// Minimum rate of request content.
fn pace(limits: &config::Limits) -> Pace {
    Pace {
        gap: limits.body_timeout.0,
        minimum_rate: limits.body_rate,
        grace: BODY_GRACE,
    }
}

/// HTTP/3.
pub(super) fn http3(limits: &config::Limits, budget: &ResponseBudget) -> H3Server {
    let of_heads = h3::Limits {
        max_field_section_size: limits.header_size.get(),
        max_encoded_section: limits.header_size.get(),
        max_fields: limits.header_count.get() as usize,
        head_timeout: Some(limits.header_timeout.0),
        ..h3::Limits::default()
    };
    let config = h3::Config {
        limits: of_heads,
        ..h3::Config::default()
    };
    let server = H3Server::new(config)
        .body_pace(pace(limits))
        .send_timeout(limits.send_timeout.0)
        .response_budget(budget.clone());
    match limits.idle_timeout {
        Some(timeout) => server.idle_timeout(timeout.0),
        None => server,
    }
}

fn tcp_limits(limits: &config::Limits, connections: usize, budget: &ResponseBudget) -> TcpLimits {
    let default = TcpLimits::default();
    TcpLimits {
        connections,
        share_by_address: limits.share_by_address,
        handshake_timeout: limits.handshake_timeout.0,
        header_size: limits.header_size.get() as u32,
        header_count: limits.header_count.get() as usize,
        header_timeout: limits.header_timeout.0,
        body_pace: pace(limits),
        idle_timeout: limits
            .idle_timeout
            .map_or(default.idle_timeout, |time| time.0),
        send_timeout: limits.send_timeout.0,
        concurrent_streams: limits.requests.get() as u32,
        response_budget: budget.clone(),
        ..default
    }
}

/// HTTP without TLS, if the configuration has an address for it, with `content`.
pub(super) async fn serve_redirections(
    config: &Config,
    connections: usize,
    budget: &ResponseBudget,
    content: Content,
    sockets: &mut InheritedSockets,
) -> Result<Option<RunningServer>, Failure> {
    let Some(address) = config.http.listen else {
        return Ok(None);
    };
    let listener = sockets.listen(address).await.map_err(|error| {
        let why = plain_io_error(&error);
        Failure::new(
            Exit::Listen,
            format_args!("cannot listen on TCP {address}: {why}"),
        )
    })?;
    let server = TcpServer::plain().limits(tcp_limits(&config.limits, connections, budget));
    Ok(Some(server.serve(listener, content)?))
}

/// HTTP/2 and HTTP/1.1 on `listener`, with a limit of concurrent connections; HTTP/3 on UDP port `port` is advertised
/// to clients.
pub(super) fn serve_tcp(
    config: &Config,
    connections: usize,
    budget: &ResponseBudget,
    (certificates, clients, challenges): (
        &Arc<Certificates>,
        Option<&Arc<ClientAuthorities>>,
        &Challenges,
    ),
    listener: TcpListener,
    content: Content,
    live: watch::Receiver<Live>,
) -> Result<RunningServer, Failure> {
    let oldest = match config.tls.min_version {
        TlsVersion::Tls12 => MinTls::Tls12,
        TlsVersion::Tls13 => MinTls::Tls13,
    };
    let shown = Arc::clone(certificates) as _;
    let tls = match clients {
        Some(clients) => server_config_with_clients(shown, oldest, Arc::clone(clients) as _),
        None => server_config_from(shown, oldest),
    };
    let mut tls = tls.map_err(|error| Failure::new(Exit::Certificate, error))?;
    if config.acme.is_some() {
        challenges.tls.apply(&mut tls);
    }
    let port = listener.local_addr()?.port();
    let server = TcpServer::tls(Arc::new(tls))
        .limits(tcp_limits(&config.limits, connections, budget))
        .observe(move |end| {
            let shown = End::of_tcp(end);
            count_tcp(end, &shown);
            live.borrow().reports.connection(&shown);
        });
    Ok(server.serve(listener, with_alt_svc(content, port))?)
}
