//! Flags override the configuration of the file.

use toml::Spanned;

use super::tunnels::Tunnels;
use super::values::{Count, Fields, Period, RoutePath};
use super::{CertificateFiles, Config, Route, Site, read};
use crate::commands::serve::args::ServeArgs;
use crate::exit::{Exit, Failure};
use crate::transport::Tuning;

/// The configuration of a command line: its file, changed by its flags.
pub fn effective(args: &ServeArgs) -> Result<Config, Failure> {
    let mut config = match &args.config {
        Some(file) => read(file).map_err(|error| Failure::new(Exit::LocalFile, error))?,
        None => Config::default(),
    };
    apply(&mut config, args);
    let acme = config.acme.as_ref();
    if let Some(problem) = acme.and_then(|acme| acme.get_ref().problem(&config)) {
        return Err(Failure::new(Exit::Usage, format_args!("ACME: {problem}")));
    }
    let problem = config.client_problem();
    if let Some(problem) = problem.or_else(|| config.transport.tecc_problem()) {
        return Err(Failure::new(Exit::Usage, problem));
    }
    let routes = config.sites.iter().flat_map(|site| &site.get_ref().routes);
    let mut tunnels = routes.filter_map(|route| route.get_ref().tunnels.as_ref());
    if let Some(problem) = tunnels.find_map(Tunnels::problem) {
        return Err(Failure::new(Exit::Usage, problem));
    }
    if config.sites.is_empty() {
        return Err(Failure::new(
            Exit::Usage,
            "there is nothing to serve: give DIR, --upstream URL or a [[site]] in --config FILE",
        ));
    }
    Ok(config)
}

fn set<T>(value: &mut T, flag: Option<T>) {
    if let Some(flag) = flag {
        *value = flag;
    }
}

fn apply(config: &mut Config, args: &ServeArgs) {
    set(&mut config.listen, args.listen);
    config.tcp &= !args.no_tcp;
    config.hq |= args.hq;
    if !args.preferred_address.is_empty() {
        config
            .preferred_addresses
            .clone_from(&args.preferred_address);
    }
    if !args.also_listen.is_empty() {
        config.also_listen.clone_from(&args.also_listen);
    }
    set(&mut config.workers, args.workers);
    set(&mut config.grace, args.grace.map(Period));
    config.compression &= !args.no_compression;
    let identity = &args.identity;
    if let (Some(cert), Some(key)) = (&identity.cert, &identity.key) {
        let (cert, key) = (cert.clone(), key.clone());
        config.certificates = vec![CertificateFiles { cert, key }];
    }
    if !identity.names.is_empty() {
        config.tls.names.clone_from(&identity.names);
    }
    if identity.state_dir.is_some() {
        config.tls.state_dir.clone_from(&identity.state_dir);
    }
    if let Some(acme) = args.acme.config() {
        config.acme = Some(Spanned::new(0..0, acme));
    }
    set(&mut config.tls.min_version, args.min_tls);
    if args.client_ca.is_some() {
        config.tls.client_ca.clone_from(&args.client_ca);
    }
    if args.client_crl.is_some() {
        config.tls.client_crl.clone_from(&args.client_crl);
    }
    apply_limits(config, args);
    let log = &mut config.log;
    if args.access_log.is_some() {
        log.access.clone_from(&args.access_log);
    }
    set(&mut log.format, args.log_format);
    if args.metrics.is_some() {
        config.metrics.listen = args.metrics;
    }
    if args.http_redirect.is_some() {
        config.http.listen = args.http_redirect;
    }
    apply_transport(config, args);
    if let Some(site) = site(args) {
        config.sites = vec![Spanned::new(0..0, site)];
    }
}

fn apply_limits(config: &mut Config, args: &ServeArgs) {
    let (limits, flags) = (&mut config.limits, &args.limits);
    set(&mut limits.connections, flags.max_connections);
    if flags.max_open_files.is_some() {
        limits.open_files = flags.max_open_files;
    }
    set(&mut limits.file_cache, flags.file_cache);
    set(
        &mut limits.file_cache_time,
        flags.file_cache_time.map(Period),
    );
    set(&mut limits.requests, flags.max_requests);
    set(&mut limits.header_size, flags.max_header_size);
    set(&mut limits.header_count, flags.max_header_count);
    set(
        &mut limits.handshake_timeout,
        flags.handshake_timeout.map(Period),
    );
    set(&mut limits.header_timeout, flags.header_timeout.map(Period));
    set(&mut limits.body_timeout, flags.body_timeout.map(Period));
    set(&mut limits.send_timeout, flags.send_timeout.map(Period));
    if let Some(timeout) = flags.idle_timeout {
        limits.idle_timeout = Some(Period(timeout));
    }
}

fn apply_transport(config: &mut Config, args: &ServeArgs) {
    let (transport, flags) = (&mut config.transport, &args.tuning);
    let basics = &flags.basics;
    if let Some(profile) = basics.profile {
        transport.profile = Some(profile.name().to_owned());
    }
    if basics.cc.is_some() {
        transport.cc.clone_from(&basics.cc);
    }
    if flags.recovery.is_some() {
        transport.recovery.clone_from(&flags.recovery);
    }
    if args.tecc {
        transport.tecc = Some(Spanned::new(0..0, true));
    }
    let paths = &args.multipath;
    transport.multipath |= paths.is_used();
    if let Some(paths) = paths.max_paths {
        transport.max_paths = Some(Count::clamped(paths.into()));
    }
    transport.multipath_version = paths.multipath_version.or(transport.multipath_version);
    if paths.scheduler.is_some() {
        transport.scheduler.clone_from(&paths.scheduler);
    }
    if paths.feedback.is_some() {
        transport.feedback.clone_from(&paths.feedback);
    }
    if let Some(packets) = basics.initial_window {
        transport.initial_window = Some(Count::clamped(packets));
    }
    if let Some(size) = basics.max_datagram_size {
        transport.max_datagram_size = Some(Count::clamped(size.into()));
    }
    if basics.qlog.is_some() {
        transport.qlog.clone_from(&basics.qlog);
    }
    set(&mut transport.zero_rtt, args.zero_rtt);
    transport.retry |= args.retry;
    if args.secrets.is_some() {
        transport.secrets.clone_from(&args.secrets);
    }
}

/// The one site that flags can define.
fn site(args: &ServeArgs) -> Option<Site> {
    let tunnels = args.tunnels.tunnels(args.client_ca.is_some());
    if args.directory.is_none() && args.upstream.is_none() && tunnels.is_none() {
        return None;
    }
    let client_certificate = args.client_ca.is_some() && tunnels.is_none();
    let route = Route {
        path: RoutePath::root(),
        directory: args.directory.clone(),
        upstream: args.upstream.clone().map(Into::into),
        redirect: None,
        status: None,
        tunnels,
        listing: args.listing,
        spa: args.spa.clone(),
        hidden: false,
        precompressed: false,
        follow_symlinks: false,
        cache_control: None,
        strip_path: false,
        preserve_host: false,
        upstream_host: None,
        upstream_name: None,
        upstream_ca: None,
        upstream_cert: None,
        upstream_key: None,
        trust_forwarded: false,
        connect_timeout: None,
        head_timeout: None,
        body_timeout: None,
        websocket: None,
        websocket_timeout: None,
        health_path: None,
        health_interval: None,
        headers: Fields::default(),
    };
    Some(Site {
        hosts: Vec::new(),
        client_certificate,
        headers: Fields::default(),
        routes: vec![Spanned::new(0..0, route)],
    })
}

impl Config {
    /// The QUIC settings: `flags`, completed by the configuration.
    pub(in crate::commands::serve) fn tuning(&self, flags: &Tuning) -> Tuning {
        let mut tuning = flags.clone();
        let (transport, basics) = (&self.transport, &mut tuning.basics);
        // Checked when it was read.
        let profile = transport.profile.as_deref();
        basics.profile = profile.and_then(|name| name.parse().ok());
        basics.cc.clone_from(&transport.cc);
        basics.initial_window = transport.initial_window.map(Count::get);
        let size = transport.max_datagram_size;
        basics.max_datagram_size = size.and_then(|size| size.get().try_into().ok());
        basics.qlog.clone_from(&transport.qlog);
        tuning.recovery.clone_from(&transport.recovery);
        tuning
    }
}
