//! Configuration of a proxy.

use std::num::NonZeroU64;
use std::time::Duration;

use super::access::Access;
use super::origin::Origin;
use super::usage::TunnelUsage;
use crate::forwarding::Transform;
use crate::policy::{ReflectionLimit, TargetPolicy};
use crate::tecc::RepairLimits;

/// Who may use a proxy, which targets it reaches, and its limits.
#[derive(Clone, Debug)]
pub struct ProxyConfig {
    /// Who may use it.
    pub access: Access,
    /// Pages of the web that may use it: requests of others, which browsers mark with `Origin`, are refused. Default: none.
    pub allowed_origins: Vec<Origin>,
    /// Which targets it reaches.
    pub policy: TargetPolicy,
    /// What is sent to a target before it answers.
    pub reflection: ReflectionLimit,
    /// Repair of losses on the way to clients that ask for it; `None` for none. Default: yes.
    pub repair: Option<RepairLimits>,
    /// The transforms with which QUIC packets are forwarded beside the connection of clients that ask for it
    /// ([`forwarding`](crate::forwarding)); none without forwarding. Default: all.
    pub forwarding: Vec<Transform>,
    /// Limits on resources.
    pub limits: Limits,
    /// What is used of them; that of another proxy if this one replaces it. Clones share it.
    pub usage: TunnelUsage,
}

impl ProxyConfig {
    /// A proxy for those with `access`, with the default policy and limits.
    pub fn new(access: Access) -> Self {
        Self {
            access,
            allowed_origins: Vec::new(),
            policy: TargetPolicy::default(),
            reflection: ReflectionLimit::default(),
            repair: Some(RepairLimits::default()),
            forwarding: Transform::ALL.to_vec(),
            limits: Limits::default(),
            usage: TunnelUsage::default(),
        }
    }
}

/// What the tunnels of one user may pass together, in each direction; a burst may have what is earned in 250 ms. UDP and
/// IP packets beyond it are dropped, streams of TCP wait.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct UserLimit {
    /// Bytes each second, of UDP payload, IP packets and streams; `None`, the default, for no limit.
    pub bytes: Option<NonZeroU64>,
    /// UDP datagrams and IP packets each second; `None`, the default, for no limit.
    pub packets: Option<NonZeroU64>,
}

/// Limits on resources.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Tunnels at once; those for UDP and TCP have a socket each. Default 4096.
    pub tunnels: usize,
    /// Tunnels of one user at once; without authentication all clients are one user. Default 128.
    pub tunnels_per_user: usize,
    /// What one user may pass; without authentication all clients are one user. Default: no limit.
    pub user: UserLimit,
    /// New tunnels for UDP and TCP to one address each second, of all users together; `None`, the default, for no limit.
    pub new_per_target: Option<NonZeroU64>,
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
            user: UserLimit::default(),
            new_per_target: None,
            idle_timeout: Duration::from_secs(120),
            resolution: Duration::from_secs(5),
            connecting: Duration::from_secs(10),
        }
    }
}
