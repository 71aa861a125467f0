//! What the tunnels of each route use of its limits, kept over reloads of the configuration: tunnels outlive those.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use swiftwater_tunnel::proxy::TunnelUsage;

use super::config;

/// The hosts of the site, and the path of the route.
type Key = (Vec<String>, String);

/// The usages by route. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct TunnelUsages(Arc<Mutex<BTreeMap<Key, TunnelUsage>>>);

impl TunnelUsages {
    /// That of a route.
    pub(super) fn of(&self, site: &config::Site, route: &config::Route) -> TunnelUsage {
        let hosts = site.hosts.iter().map(|host| host.as_str().to_owned());
        let key = (hosts.collect(), route.path.as_str().to_owned());
        let mut usages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        usages.entry(key).or_default().clone()
    }
}
