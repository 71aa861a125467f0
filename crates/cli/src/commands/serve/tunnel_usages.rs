//! What the tunnels of each route use of its limits, kept over reloads of the configuration: tunnels outlive those.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use swiftwater_tunnel::proxy::TunnelUsage;

use super::config;

/// The first host of the site, and the path of the route.
type Key = (Option<String>, String);

/// The usages by route, with lookups of names in common. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct TunnelUsages {
    by_route: Arc<Mutex<BTreeMap<Key, TunnelUsage>>>,
    /// Of no route.
    first: TunnelUsage,
}

impl TunnelUsages {
    /// That of a route.
    pub(super) fn of(&self, site: &config::Site, route: &config::Route) -> TunnelUsage {
        let host = site.hosts.first().map(|host| host.as_str().to_owned());
        let key = (host, route.path.as_str().to_owned());
        let mut usages = self.by_route.lock().unwrap_or_else(PoisonError::into_inner);
        let usage = usages.entry(key);
        usage
            .or_insert_with(|| self.first.with_its_lookups())
            .clone()
    }
}
