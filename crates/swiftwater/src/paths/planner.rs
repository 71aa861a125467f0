//! What is to be opened and abandoned, by a policy and what is so now.

use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::time::Duration;

use swiftwater_quic::policy::PathPreference;
use swiftwater_units::{Instant, PathId};

use super::addresses::is_possible_pair;
use super::interfaces::InterfaceAddress;
use super::policy::{LocalEnd, PathPolicy, PathRule};

/// Doublings of the pause after which it no longer grows, whatever the longest one is.
const MAX_DOUBLINGS: u32 = 20;

/// Something to do about the paths of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PathAction {
    /// Open a path for a rule of the policy, and report the outcome:
    /// [`on_opening`](PathPlanner::on_opening) or [`on_refused`](PathPlanner::on_refused).
    Open {
        /// Place of the rule in [`PathPolicy::rules`].
        rule: usize,
        /// Address to bind, port 0.
        local: SocketAddr,
        /// The server's address.
        remote: SocketAddr,
    },
    /// Abandon a path: its local address is gone.
    Abandon {
        /// The path.
        path: PathId,
    },
    /// Set status and cost of a path.
    Prefer {
        /// The path.
        path: PathId,
        /// What the policy prefers.
        preference: PathPreference,
    },
}

/// The paths of one connection, rule by rule.
#[derive(Clone, Debug)]
pub struct PathPlanner {
    policy: PathPolicy,
    /// Addresses of the server, the one that the connection was made to first.
    remotes: Vec<SocketAddr>,
    rules: Vec<RuleState>,
    /// The connection takes another path, as far as is known.
    is_available: bool,
}

/// What became of a rule so far.
#[derive(Clone, Debug, Default)]
struct RuleState {
    /// The path that was opened for it, and the local address.
    path: Option<(PathId, IpAddr)>,
    /// Since when that path carries data.
    works_since: Option<Instant>,
    is_preferred: bool,
    /// Paths in a row that ended or could not be opened.
    failures: u32,
    /// No path is opened before then.
    not_before: Option<Instant>,
}

impl PathPlanner {
    /// For a connection to a server with these addresses, the one that it was made to first.
    pub fn new(policy: PathPolicy, remotes: Vec<SocketAddr>) -> Self {
        Self {
            rules: vec![RuleState::default(); policy.rules.len()],
            policy,
            remotes,
            is_available: true,
        }
    }

    /// The connection has a path already: the first rule for its local address is fulfilled. Returns the place
    /// of that rule.
    pub fn adopt(
        &mut self,
        now: Instant,
        path: PathId,
        local: IpAddr,
        interfaces: &[InterfaceAddress],
    ) -> Option<usize> {
        let is_of = |rule: &PathRule| match &rule.local {
            LocalEnd::Address(ip) => *ip == local,
            LocalEnd::Interface(name) => {
                let mut addresses = interfaces.iter();
                addresses.any(|address| address.interface == *name && address.ip == local)
            }
        };
        let mut rules = self.policy.rules.iter().zip(&self.rules);
        let at = rules.position(|(rule, state)| state.path.is_none() && is_of(rule))?;
        let state = &mut self.rules[at];
        state.path = Some((path, local));
        state.works_since = Some(now);
        Some(at)
    }

    /// What is to be done now: `interfaces` are the addresses of this host, `open` the paths of the connection
    /// that are open. Each action is returned once.
    pub fn plan(
        &mut self,
        now: Instant,
        interfaces: &[InterfaceAddress],
        open: &[PathId],
    ) -> Vec<PathAction> {
        let mut actions = Vec::new();
        let mut left = open.len();
        for (rule, state) in self.policy.rules.iter().zip(&mut self.rules) {
            let locals = locals(rule, &self.policy, interfaces);
            if locals.is_empty() {
                // It starts afresh when its address comes back.
                (state.failures, state.not_before) = (0, None);
            }
            let Some((path, local)) = state.path else {
                continue;
            };
            if !open.contains(&path) {
                state.on_ended(now, &self.policy);
            } else if !locals.iter().any(|address| address.ip() == local) {
                if left > 1 {
                    left -= 1;
                    *state = RuleState::default();
                    actions.push(PathAction::Abandon { path });
                }
            } else if !std::mem::replace(&mut state.is_preferred, true)
                && rule.preference != PathPreference::default()
            {
                let preference = rule.preference;
                actions.push(PathAction::Prefer { path, preference });
            }
        }
        self.open_more(now, interfaces, left, &mut actions);
        actions
    }

    fn open_more(
        &mut self,
        now: Instant,
        interfaces: &[InterfaceAddress],
        mut open: usize,
        actions: &mut Vec<PathAction>,
    ) {
        for (at, (rule, state)) in self.policy.rules.iter().zip(&self.rules).enumerate() {
            if !self.is_available || open >= self.policy.max_paths {
                return;
            }
            if state.path.is_some() || state.not_before.is_some_and(|then| then > now) {
                continue;
            }
            let remotes = rule
                .remote
                .as_ref()
                .map_or(&self.remotes[..], std::slice::from_ref);
            let locals = locals(rule, &self.policy, interfaces);
            // The server's addresses in their order, not those of the interface in theirs.
            let mut pairs =
                (remotes.iter()).flat_map(|remote| locals.iter().map(move |local| (local, remote)));
            if let Some((&local, &remote)) =
                pairs.find(|(local, remote)| is_possible_pair(**local, **remote))
            {
                open += 1;
                actions.push(PathAction::Open {
                    rule: at,
                    local,
                    remote,
                });
            }
        }
    }

    /// The path for a rule is being opened, from `local`.
    pub fn on_opening(&mut self, rule: usize, path: PathId, local: IpAddr) {
        if let Some(state) = self.rules.get_mut(rule) {
            state.path = Some((path, local));
            state.works_since = None;
            state.is_preferred = false;
        }
    }

    /// The path for a rule could not be opened: it is tried again after a pause.
    pub fn on_refused(&mut self, now: Instant, rule: usize) {
        if let Some(state) = self.rules.get_mut(rule) {
            state.pause(now, &self.policy);
        }
    }

    /// Whether the connection takes another path now, as its errors and events say.
    pub fn set_available(&mut self, is_available: bool) {
        self.is_available = is_available;
    }

    /// A path carries data.
    pub fn on_opened(&mut self, now: Instant, path: PathId) {
        if let Some(state) = self.state_of(path) {
            state.works_since.get_or_insert(now);
        }
    }

    /// A path has ended: it is opened again after a pause.
    pub fn on_ended(&mut self, now: Instant, path: PathId) {
        let policy = self.policy.clone();
        if let Some(state) = self.state_of(path) {
            state.on_ended(now, &policy);
        }
    }

    fn state_of(&mut self, path: PathId) -> Option<&mut RuleState> {
        let is_of = |state: &&mut RuleState| state.path.is_some_and(|(id, _)| id == path);
        self.rules.iter_mut().find(is_of)
    }

    /// When [`PathPlanner::plan`] may have something to do without any other event: the end of a pause.
    pub fn next_attempt(&self) -> Option<Instant> {
        let waiting = self.rules.iter().filter(|state| state.path.is_none());
        waiting.filter_map(|state| state.not_before).min()
    }
}

impl RuleState {
    fn on_ended(&mut self, now: Instant, policy: &PathPolicy) {
        let lasted = (self.works_since).map(|since| now.saturating_since(since));
        if lasted.is_some_and(|lasted| lasted >= policy.works_after) {
            self.failures = 0;
        }
        self.path = None;
        self.works_since = None;
        self.is_preferred = false;
        self.pause(now, policy);
    }

    fn pause(&mut self, now: Instant, policy: &PathPolicy) {
        let doublings = self.failures.min(MAX_DOUBLINGS);
        let pause = policy.first_pause.saturating_mul(1 << doublings);
        self.failures = self.failures.saturating_add(1);
        self.not_before = Some(now + Duration::min(pause, policy.longest_pause));
    }
}

/// The addresses from which a path of `rule` may start now.
pub(super) fn locals(
    rule: &PathRule,
    policy: &PathPolicy,
    interfaces: &[InterfaceAddress],
) -> Vec<SocketAddr> {
    let is_of = |address: &&InterfaceAddress| match &rule.local {
        LocalEnd::Address(ip) => address.has(*ip),
        LocalEnd::Interface(name) => address.interface == *name,
    };
    let permitted = interfaces.iter().filter(is_of);
    let mut all: Vec<_> = permitted
        .map(|address| match rule.local {
            LocalEnd::Address(ip) => with_scope(ip, address.scope_id),
            LocalEnd::Interface(_) => with_scope(address.ip, address.scope_id),
        })
        .filter(|address| policy.families.permit(address.ip()))
        .collect();
    all.dedup();
    all
}

fn with_scope(ip: IpAddr, scope_id: u32) -> SocketAddr {
    match ip {
        IpAddr::V4(_) => SocketAddr::new(ip, 0),
        IpAddr::V6(v6) => SocketAddrV6::new(v6, 0, 0, scope_id).into(),
    }
}
