//! File descriptors: raises the limit and divides it among uses.
//!
//! TCP connections, open files and requests to upstreams take one each. Together they are limited to
//! less than the process has, so that descriptors remain for accepting, logging and reloading.

use swiftwater_http::web::proxy::ProxyOptions;

use super::config::Config;

/// Reserved descriptors, or an eighth of the limit if that is less: listening sockets, logs,
/// certificates, directories.
const RESERVE: u64 = 128;

/// Default limit of open files.
const MOST_FILES: u64 = 65_536;

/// Assumed limit where there is none, or none is known.
const PLENTY: u64 = 1 << 20;

/// Division of the descriptors of the process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Descriptors {
    /// Files that may be open for responses.
    pub(super) files: usize,
    /// Connections over TCP.
    pub(super) connections: usize,
    /// Requests to all upstreams together.
    pub(super) upstream_requests: usize,
}

impl Descriptors {
    /// Raises the limit as far as permitted, and divides it; requests to an upstream get a part if one is
    /// configured or `may_forward` is true. Configured values that exceed it are logged at the level
    /// `warn`.
    pub(super) fn obtain(config: &Config, may_forward: bool) -> Self {
        let planned = Self::plan(config, may_forward, raise_limit());
        let wanted = config.limits.connections.get() as usize;
        if config.tcp && planned.connections < wanted {
            tracing::warn!(
                connections = planned.connections,
                wanted,
                "the limit of file descriptors (ulimit -Hn) permits fewer TCP connections"
            );
        }
        planned
    }

    fn plan(config: &Config, may_forward: bool, limit: u64) -> Self {
        let limit = limit.max(16);
        let usable = limit - RESERVE.min(limit / 8);
        let routes = config.sites.iter().flat_map(|site| &site.get_ref().routes);
        let upstreams = routes
            .filter(|route| route.get_ref().upstream.is_some())
            .count() as u64;
        let most = ProxyOptions::default().in_flight as u64;
        // A reload may add the first upstream.
        let upstreams = upstreams.max(u64::from(may_forward));
        let upstream_requests = (upstreams * most).min(usable / 4);
        let files = match config.limits.open_files {
            Some(files) => files.get().min(usable / 2),
            None => MOST_FILES.min(usable / 2),
        };
        let left = usable - files - upstream_requests;
        Self {
            files: files as usize,
            connections: config.limits.connections.get().min(left) as usize,
            upstream_requests: upstream_requests as usize,
        }
    }
}

/// Raises the soft limit of descriptors to the hard one, and returns it.
#[cfg(unix)]
fn raise_limit() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    if limit.current == limit.maximum || setrlimit(Resource::Nofile, raised).is_ok() {
        return limit.maximum.unwrap_or(PLENTY);
    }
    limit.current.unwrap_or(PLENTY)
}

#[cfg(not(unix))]
fn raise_limit() -> u64 {
    PLENTY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_stays_below_the_limit() {
        let forwarding = "[[site]]\n[[site.route]]\nupstream = \"http://127.0.0.1:1\"\n\
                          [[site.route]]\npath = \"/x\"\nupstream = \"http://127.0.0.1:2\"\n";
        let files = "[[site]]\n[[site.route]]\ndirectory = \".\"\n";
        for text in [forwarding, files] {
            let config: Config = toml::from_str(text).expect("a configuration");
            for limit in [0, 64, 1024, 4096, 65_536, 1 << 20, u64::MAX] {
                let planned = Descriptors::plan(&config, false, limit);
                let all = planned.files + planned.connections + planned.upstream_requests;
                let limit = limit.max(16);
                assert!(
                    all as u64 <= limit - RESERVE.min(limit / 8),
                    "{limit}: {planned:?}"
                );
                assert!(planned.files > 0 && planned.connections > 0);
            }
        }
    }
}
