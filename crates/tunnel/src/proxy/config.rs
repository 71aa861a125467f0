//! Configuration of a proxy.

use std::time::Duration;

use super::access::Access;
use crate::policy::{ReflectionLimit, TargetPolicy};
use crate::tecc::RepairLimits;

/// Who may use a proxy, which targets it reaches, and its limits.
#[derive(Clone, Debug)]
pub struct ProxyConfig {
    /// Who may use it.
    pub access: Access,
    /// Which targets it reaches.
    pub policy: TargetPolicy,
    /// What is sent to a target before it answers.
    pub reflection: ReflectionLimit,
    /// Repair of losses on the way to clients that ask for it; `None` for none. Default: yes.
    pub repair: Option<RepairLimits>,
    /// Limits on resources.
    pub limits: Limits,
}

impl ProxyConfig {
    /// A proxy for those with `access`, with the default policy and limits.
    pub fn new(access: Access) -> Self {
        Self {
            access,
            policy: TargetPolicy::default(),
            reflection: ReflectionLimit::default(),
            repair: Some(RepairLimits::default()),
            limits: Limits::default(),
        }
    }
}

/// Limits on resources.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Tunnels at once, for UDP and TCP, each with a socket. Default 4096.
    pub tunnels: usize,
    /// Tunnels of one user at once; without authentication all clients are one user. Default 128.
    pub tunnels_per_user: usize,
    /// How long a tunnel for UDP lasts without a datagram in either direction; less than two minutes ends tunnels that
    /// are in use (RFC 9298, section 3.1). Default two minutes.
    pub idle_timeout: Duration,
    /// How long the resolution of a name may take. Default 5 s.
    pub resolution: Duration,
    /// How long a TCP connection to one address may take. Default 10 s.
    pub connecting: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            tunnels: 4096,
            tunnels_per_user: 128,
            idle_timeout: Duration::from_secs(120),
            resolution: Duration::from_secs(5),
            connecting: Duration::from_secs(10),
        }
    }
}
