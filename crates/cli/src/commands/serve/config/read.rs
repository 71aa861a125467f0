//! Reads and validates a configuration file. Errors name the file and the line.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use thiserror::Error;
use toml::Spanned;

use super::tunnels::Tunnels;
use super::values::Upstreams;
use super::{Config, OFF, Route};
use crate::exit::plain_io_error;
use crate::files::read_limited;

/// The largest file that is read, bytes.
const MAX_FILE: u64 = 4 << 20;

/// Why a file can't be used as configuration.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum ConfigError {
    /// It can't be read.
    #[error("{}: {why}", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The error of the system.
        why: String,
    },
    /// It is invalid.
    #[error("{}:{line}: {expected}", .file.display())]
    Wrong {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The error, or what was expected.
        expected: String,
    },
}

/// An error at a position of the text.
struct Fault {
    span: Range<usize>,
    expected: String,
}

impl Fault {
    fn at<T>(place: &Spanned<T>, expected: impl fmt::Display) -> Self {
        Self {
            span: place.span(),
            expected: expected.to_string(),
        }
    }
}

/// Reads a file. Relative paths in it are relative to its directory.
pub fn read(file: &Path) -> Result<Config, ConfigError> {
    let unreadable = |why: String| ConfigError::Unreadable {
        file: file.to_owned(),
        why,
    };
    let bytes = read_limited(file, MAX_FILE).map_err(|error| unreadable(plain_io_error(&error)))?;
    let text = String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8".to_owned()))?;
    parse(&text, file)
}

/// The same for a text that came from `file`.
pub fn parse(text: &str, file: &Path) -> Result<Config, ConfigError> {
    let wrong = |fault: Fault| ConfigError::Wrong {
        file: file.to_owned(),
        line: line_of(text, fault.span.start),
        // Messages of the parser may have several lines.
        expected: fault.expected.replace('\n', ", "),
    };
    let mut config: Config = toml::from_str(text).map_err(|error| {
        wrong(Fault {
            span: error.span().unwrap_or_default(),
            expected: error.message().to_owned(),
        })
    })?;
    check(&config).map_err(wrong)?;
    let directory = file.parent().unwrap_or_else(|| Path::new(""));
    resolve(&mut config, directory);
    Ok(config)
}

/// The line of the byte at `offset`, from 1.
fn line_of(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().iter().take(offset);
    1 + before.filter(|&&byte| byte == b'\n').count()
}

/// Errors that concern more than one value.
fn check(config: &Config) -> Result<(), Fault> {
    if let Some(acme) = &config.acme
        && let Some(problem) = acme.get_ref().problem(config)
    {
        return Err(Fault::at(acme, problem));
    }
    if let Some(tecc) = &config.transport.tecc
        && let Some(problem) = config.transport.tecc_problem()
    {
        return Err(Fault::at(tecc, problem));
    }
    if let Some(problem) = config.client_problem() {
        let span = config.sites.first().map(Spanned::span);
        return Err(Fault {
            span: span.unwrap_or_default(),
            expected: problem.to_owned(),
        });
    }
    let mut hosts = BTreeSet::new();
    let mut has_default = false;
    for site in &config.sites {
        let names = &site.get_ref().hosts;
        if names.is_empty() && std::mem::replace(&mut has_default, true) {
            return Err(Fault::at(
                site,
                "another site has no hosts already: one at most may serve all other hosts",
            ));
        }
        for name in names {
            if !hosts.insert(name.clone()) {
                let text = format!("host {} belongs to another site already", name.as_str());
                return Err(Fault::at(site, text));
            }
        }
        if site.get_ref().routes.is_empty() {
            return Err(Fault::at(site, "a site needs at least one [[site.route]]"));
        }
        check_routes(&site.get_ref().routes)?;
    }
    Ok(())
}

fn check_routes(routes: &[Spanned<Route>]) -> Result<(), Fault> {
    let mut paths = BTreeSet::new();
    for place in routes {
        let route = place.get_ref();
        if !paths.insert(&route.path) {
            let text = format!("another route of the site has path {}", route.path.as_str());
            return Err(Fault::at(place, text));
        }
        let of_directories = route.listing
            || route.hidden
            || route.precompressed
            || route.follow_symlinks
            || route.spa.is_some()
            || route.cache_control.is_some();
        let of_upstreams = route.strip_path
            || route.preserve_host
            || route.upstream_host.is_some()
            || is_for_tls(route)
            || route.trust_forwarded
            || route.connect_timeout.is_some()
            || route.head_timeout.is_some()
            || route.body_timeout.is_some()
            || route.websocket.is_some()
            || route.websocket_timeout.is_some()
            || route.health_path.is_some()
            || route.health_interval.is_some();
        let kinds = [
            route.directory.is_some(),
            route.upstream.is_some(),
            route.redirect.is_some(),
            route.tunnels.is_some(),
        ];
        let tunnels = route.tunnels.as_ref().and_then(Tunnels::problem);
        let problem = match kinds {
            [false, ..] if of_directories => {
                "listing, spa, hidden, precompressed, follow_symlinks and cache_control are for a \
                 directory"
            }
            [_, false, ..] if of_upstreams => {
                "strip_path, preserve_host, upstream_host, upstream_name, upstream_ca, upstream_cert, upstream_key, \
                 trust_forwarded, connect_timeout, head_timeout, body_timeout, websocket, websocket_timeout, \
                 health_path and health_interval are for an upstream"
            }
            [_, _, false, _] if route.status.is_some() => "status is for a redirection",
            [false, true, false, false] if route.preserve_host && route.upstream_host.is_some() => {
                "either preserve_host or upstream_host"
            }
            [false, true, false, false] if is_for_tls(route) && !has_secure_upstream(route) => {
                "upstream_name, upstream_ca, upstream_cert and upstream_key are for an upstream with https://"
            }
            [false, true, false, false]
                if route.upstream_cert.is_some() != route.upstream_key.is_some() =>
            {
                "upstream_cert and upstream_key go together"
            }
            [false, true, false, false]
                if route.health_interval.is_some() && route.health_path.is_none() =>
            {
                "health_interval needs a health_path"
            }
            [false, true, false, false]
                if route.health_interval.is_some_and(|it| it.0.is_zero()) =>
            {
                "health_interval must be longer than nothing"
            }
            kinds if kinds.iter().filter(|&&it| it).count() != 1 => {
                "a route needs either a directory, an upstream, a redirect or tunnels"
            }
            _ => match tunnels {
                Some(ref problem) => problem,
                None => continue,
            },
        };
        return Err(Fault::at(place, problem));
    }
    Ok(())
}

fn is_for_tls(route: &Route) -> bool {
    route.upstream_name.is_some()
        || route.upstream_ca.is_some()
        || route.upstream_cert.is_some()
        || route.upstream_key.is_some()
}

fn has_secure_upstream(route: &Route) -> bool {
    let upstreams = route.upstream.as_ref().and_then(Upstreams::split);
    upstreams.is_some_and(|(first, others)| {
        let mut all = std::iter::once(first).chain(others);
        all.any(|url| url.upstream().is_secure())
    })
}

/// Makes paths relative to `directory`.
fn resolve(config: &mut Config, directory: &Path) {
    let place = |path: &mut PathBuf| *path = directory.join(&*path);
    for files in &mut config.certificates {
        place(&mut files.cert);
        place(&mut files.key);
    }
    if let Some(acme) = &mut config.acme {
        let acme = acme.get_mut();
        acme.ca.iter_mut().for_each(place);
        acme.external_key.iter_mut().for_each(place);
    }
    let Config {
        tls,
        log,
        transport,
        sites,
        ..
    } = config;
    let is_file = |path: &&mut PathBuf| path.as_os_str() != "-" && path.as_os_str() != OFF;
    let access = log.access.as_mut().filter(is_file);
    let single = [
        tls.state_dir.as_mut(),
        tls.client_ca.as_mut(),
        tls.client_crl.as_mut(),
        access,
        transport.qlog.as_mut(),
        transport.secrets.as_mut(),
    ];
    single.into_iter().flatten().for_each(place);
    for site in sites {
        for route in &mut site.get_mut().routes {
            let route = route.get_mut();
            route.directory.iter_mut().for_each(place);
            if let Some(tunnels) = &mut route.tunnels {
                let of_users = [&mut tunnels.tokens, &mut tunnels.subjects];
                of_users.into_iter().flatten().for_each(place);
            }
            let of_upstream = [
                &mut route.upstream_ca,
                &mut route.upstream_cert,
                &mut route.upstream_key,
            ];
            of_upstream.into_iter().flatten().for_each(place);
        }
    }
}
