//! Where paths of a connection start, and how they are used.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use swiftwater_quic::policy::{PathPreference, PathStatus};

use super::addresses::is_possible_pair;
use super::interfaces::InterfaceAddress;
use super::planner::locals;
use super::technology::{AccessTechnology, TechnologyOrder};

/// Where a path starts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LocalEnd {
    /// An address of this host.
    Address(IpAddr),
    /// An interface by its name, such as `wlan0`: the first of its addresses from which the server can be
    /// reached.
    Interface(String),
}

/// One path that is to be open while its local end exists.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PathRule {
    /// Where it starts.
    pub local: LocalEnd,
    /// Status and cost, as schedulers see them; a backup is announced to the server, a cost is not.
    pub preference: PathPreference,
    /// The server's address on this path; `None` takes the one that the connection was made to, or another
    /// known one of the family that is needed.
    pub remote: Option<SocketAddr>,
    /// What the local end is connected by, if it is known; for [`PathPolicy::ordered_by`].
    pub technology: Option<AccessTechnology>,
}

impl PathRule {
    /// A path from `local` that is used whenever the scheduler finds it best.
    pub fn new(local: LocalEnd) -> Self {
        Self {
            local,
            preference: PathPreference::default(),
            remote: None,
            technology: None,
        }
    }

    /// The same, with what the local end is connected by.
    #[must_use]
    pub fn over(mut self, technology: AccessTechnology) -> Self {
        self.technology = Some(technology);
        self
    }

    /// The same, for data only while no other path works.
    #[must_use]
    pub fn backup(mut self) -> Self {
        self.preference.status = PathStatus::Backup;
        self
    }

    /// The same, with what a byte costs, in units of the application's choice: schedulers that regard costs
    /// take the cheapest path that is fast enough.
    #[must_use]
    pub fn cost(mut self, cost: u32) -> Self {
        self.preference.cost = cost;
        self
    }

    /// The same, to another address of the server.
    #[must_use]
    pub fn to(mut self, remote: SocketAddr) -> Self {
        self.remote = Some(remote);
        self
    }
}

/// The families of IP addresses that paths may use.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum AddressFamilies {
    /// IPv4 and IPv6.
    #[default]
    Both,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

impl AddressFamilies {
    pub(super) fn permit(self, ip: IpAddr) -> bool {
        match self {
            Self::Both => true,
            Self::V4 => ip.is_ipv4(),
            Self::V6 => ip.is_ipv6(),
        }
    }
}

/// The paths that a client keeps open. The rules come in the order in which paths are opened; the first one
/// is that of the socket which the connection starts from, if it has that address.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PathPolicy {
    /// The paths.
    pub rules: Vec<PathRule>,
    /// The families of addresses to use; default both.
    pub families: AddressFamilies,
    /// Paths to have open at once, the first one included; default 4. The server may accept fewer.
    pub max_paths: usize,
    /// Time until a path that ended or did not work is opened again; it doubles at each failure in a row.
    /// Default 1 s.
    pub first_pause: Duration,
    /// Longest such time; default 60 s.
    pub longest_pause: Duration,
    /// A path that carried data for this long counts as one that works: the next pause is the first one.
    /// Default 30 s.
    pub works_after: Duration,
}

impl Default for PathPolicy {
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            families: AddressFamilies::default(),
            max_paths: 4,
            first_pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(60),
            works_after: Duration::from_secs(30),
        }
    }
}

impl PathPolicy {
    /// The defaults with these paths.
    pub fn new(rules: impl IntoIterator<Item = PathRule>) -> Self {
        Self {
            rules: rules.into_iter().collect(),
            ..Self::default()
        }
    }

    /// The same with the rules in the order in which their access technologies come in `order`, backups behind all
    /// others. Rules of one place stay in their order.
    #[must_use]
    pub fn ordered_by(mut self, order: &TechnologyOrder) -> Self {
        self.rules.sort_by_key(|rule| {
            let is_backup = rule.preference.status == PathStatus::Backup;
            (is_backup, order.place(rule.technology))
        });
        self
    }

    /// The address to bind for a connection to `remote`, so that its first path is that of the first rule which has
    /// an address now; port 0. `None` if no rule has one from which `remote` can be reached.
    pub fn first_local(
        &self,
        remote: SocketAddr,
        interfaces: &[InterfaceAddress],
    ) -> Option<SocketAddr> {
        let starts_at = |rule: &&PathRule| rule.remote.is_none_or(|to| to == remote);
        let rules = self.rules.iter().filter(starts_at);
        let mut locals = rules.flat_map(|rule| locals(rule, self, interfaces));
        locals.find(|local| is_possible_pair(*local, remote))
    }
}
