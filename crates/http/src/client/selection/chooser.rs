//! Decisions and outcomes: which arms an origin offers, what the selector is told, and its clock.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use swiftwater_select::{
    Agenda, Arm, Decision, Event, NetworkId, OriginHash, Outcome, RequestDescription, RequestId,
    Selector, Strategy, Transport,
};
use swiftwater_units::Instant;
use tokio::sync::Notify;

use super::arms::{self, ArmState};
use super::choice::SelectionSnapshot;
use super::error::SelectError;
use super::metrics;
use super::select::Select;
use super::state_file::StateFile;
use super::upkeep;
use crate::client::origin::Origin;
use crate::client::policy::{Policy, Way};
use crate::client::quic_failures::Network;
use crate::client::state::{State, lock};

/// Origins whose names are remembered beside the selector's hashes; all are forgotten beyond it.
const ORIGINS: usize = 4096;

/// The selection of a client.
pub(in crate::client) struct Selection {
    pub(super) arms: Vec<ArmState>,
    /// The state of the first arm of each transport; its race finds out about new origins.
    pub(super) main: Arc<State>,
    pub(super) core: Mutex<Core>,
    pub(super) file: Option<StateFile>,
    /// Signalled when something is due earlier than before, and when the selection is dropped.
    pub(super) wake: Arc<Notify>,
    kept_up: AtomicBool,
    hedged: AtomicU64,
    begun: tokio::time::Instant,
}

/// What changes with each request.
pub(super) struct Core {
    pub(super) selector: Selector,
    /// The present network.
    pub(super) network: Option<NetworkId>,
    /// Names of the origins that connections may have to be closed of.
    pub(super) names: HashMap<OriginHash, Origin>,
    /// Origins to which HTTP/3 was attempted because of a hint, or worked.
    http3: HashSet<Origin>,
    /// When the idle connections of arms that lost are looked at.
    pub(super) checks: Agenda<(NetworkId, OriginHash)>,
    /// Something was learned since the state was written.
    pub(super) changed: bool,
    /// When the state was written last.
    pub(super) saved: Instant,
}

/// A decision for one request.
pub(super) struct Turn {
    pub(super) decision: Decision,
    /// Position of the arm in the list.
    pub(super) arm: usize,
}

/// Where a request goes, as the selector names it.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) network: NetworkId,
    pub(super) origin: OriginHash,
}

/// What the race over a new origin ended with.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) struct Raced {
    pub(super) transport: Transport,
    /// The connection is new.
    pub(super) new: bool,
    /// The origin may speak HTTP/3.
    pub(super) hinted: bool,
}

impl Selection {
    /// The selection, and the state that requests with a policy of their own use.
    pub(in crate::client) fn new(
        select: &Select,
        state: State,
    ) -> Result<(Arc<Self>, Arc<State>), SelectError> {
        let mut selector = select.selector()?;
        let (arms, main) = arms::states(&selector.config().arms, state)?;
        let begun = tokio::time::Instant::now();
        let file = select.state_file.clone();
        let file =
            file.map(|path| StateFile::load(path, &mut selector, Instant::ZERO, since_epoch()));
        let core = Core {
            selector,
            network: None,
            names: HashMap::new(),
            http3: HashSet::new(),
            checks: Agenda::default(),
            changed: false,
            saved: Instant::ZERO,
        };
        let selection = Self {
            arms,
            main: Arc::clone(&main),
            core: Mutex::new(core),
            file,
            wake: Arc::new(Notify::new()),
            kept_up: AtomicBool::new(false),
            hedged: AtomicU64::new(0),
            begun,
        };
        Ok((Arc::new(selection), main))
    }

    /// Time since the client was built, on the selector's clock.
    pub(super) fn now(&self) -> Instant {
        Instant::ZERO + self.begun.elapsed()
    }

    /// The tokio time of a time on the selector's clock.
    pub(super) fn tokio_time(&self, at: Instant) -> tokio::time::Instant {
        self.begun + at.saturating_since(Instant::ZERO)
    }

    /// Notes the network, and names the place of a request to `origin`.
    pub(super) fn place(self: &Arc<Self>, origin: &Origin) -> Place {
        if !self.kept_up.swap(true, Ordering::Relaxed) {
            upkeep::start(self);
        }
        let network = id(&(self.main.network)());
        let hash = OriginHash::of(&origin.to_string());
        let now = self.now();
        let mut core = lock(&self.core);
        let before = core.network.replace(network);
        if before.is_some_and(|before| before != network) {
            core.selector.on_network_change(now, network);
        }
        if core.names.len() >= ORIGINS && !core.names.contains_key(&hash) {
            core.names.clear();
            core.http3.clear();
        }
        core.names.insert(hash, origin.clone());
        Place {
            network,
            origin: hash,
        }
    }

    /// True if the race must find out what connects first: the selector doesn't know the origin on this
    /// network, and QUIC is not ruled out.
    pub(super) fn is_new(&self, place: Place, origin: &Origin) -> bool {
        let core = lock(&self.core);
        let fixed = matches!(core.selector.config().strategy, Strategy::Fixed(_));
        let known = core.selector.current(place.network, place.origin).is_some();
        !fixed && !known && self.may_use_quic(origin)
    }

    /// How a connection to a new origin is opened.
    pub(super) fn way_to_new(&self) -> Way {
        if lock(&self.core).selector.config().strategy.compares() {
            Way::Compared
        } else {
            Way::Policy(Policy::Race)
        }
    }

    fn may_use_quic(&self, origin: &Origin) -> bool {
        let main = &self.main;
        let has_arm = self.arms.iter().any(ArmState::is_quic);
        has_arm && origin.is_https() && main.quic.is_some() && main.proxies.of(origin).is_none()
    }

    /// The first arm of a transport.
    pub(super) fn first(&self, transport: Transport) -> Option<usize> {
        let mut arms = self.arms.iter();
        arms.position(|arm| arm.arm.transport() == transport)
    }

    /// The decision for a request that the race found a connection for.
    pub(super) fn decide_raced(
        &self,
        place: Place,
        origin: &Origin,
        replay_safe: bool,
        raced: Raced,
    ) -> Turn {
        // Every transport that can win has an arm.
        let arm = self.first(raced.transport).unwrap_or_default();
        let now = self.now();
        let mut core = lock(&self.core);
        if raced.hinted {
            core.http3.insert(origin.clone());
        }
        // Without this, the strategy `race` would ask for a race again as long as the connection is open.
        let races = core.selector.config().strategy == Strategy::Race;
        if raced.new || races {
            let name = &self.arms[arm].arm;
            core.selector
                .on_connection(now, place.network, place.origin, name);
        }
        let request = RequestDescription {
            network: place.network,
            origin: place.origin,
            replay_safe,
            available: 1 << arm,
        };
        let name = &self.arms[arm].arm;
        let decision = core.selector.decide_connected(now, &request, name);
        metrics::decided(&decision);
        self.after(&mut core);
        Turn { decision, arm }
    }

    /// The decision for a request to an origin that is known; `None` if the race decides.
    pub(super) fn decide(&self, place: Place, origin: &Origin, replay_safe: bool) -> Option<Turn> {
        let now = self.now();
        let mut core = lock(&self.core);
        let available = self.available(&mut core, now, place, origin);
        let request = RequestDescription {
            network: place.network,
            origin: place.origin,
            replay_safe,
            available,
        };
        if core.selector.needs_race(now, &request) {
            return None;
        }
        let decision = core.selector.decide(now, &request);
        metrics::decided(&decision);
        self.after(&mut core);
        drop(core);
        let arm = self.position(&decision.arm).unwrap_or_default();
        Some(Turn { decision, arm })
    }

    /// True if the arm can be used for `origin` now; a fixed arm may be decided on although it can't.
    pub(super) fn is_usable(&self, arm: usize, place: Place, origin: &Origin) -> bool {
        let now = self.now();
        let available = self.available(&mut lock(&self.core), now, place, origin);
        available >> arm & 1 == 1
    }

    /// The arms that can be used for `origin`, bit by bit.
    fn available(&self, core: &mut Core, now: Instant, place: Place, origin: &Origin) -> u32 {
        let connected = |arm: &ArmState| arm.is_quic() && arm.state.pool.has_http3(origin);
        let is_connected = self.arms.iter().any(connected);
        let tokio_now = tokio::time::Instant::now();
        let hinted = is_connected
            || self.main.assume_http3
            || core.http3.contains(origin)
            || lock(&self.main.alternatives)
                .get(origin, || tokio_now)
                .is_some();
        let mut quic = self.may_use_quic(origin) && hinted;
        if quic && !is_connected && self.main.is_broken(origin) {
            if matches!(core.selector.config().strategy, Strategy::Fixed(_)) {
                quic = false;
            } else if !core
                .selector
                .is_quic_blocked(now, place.network, place.origin)
            {
                core.selector
                    .on_quic_blocked(now, place.network, place.origin);
            }
        }
        let tcp = !origin.is_https() || self.main.tls.is_some();
        let usable = |arm: &ArmState| match arm.arm.transport() {
            Transport::Tcp => tcp,
            Transport::Quic => quic && !arm.is_pending(origin),
        };
        let arms = self.arms.iter().enumerate();
        arms.filter(|(_, arm)| usable(arm))
            .fold(0, |bits, (position, _)| bits | 1 << position)
    }

    pub(super) fn position(&self, arm: &Arm) -> Option<usize> {
        self.arms.iter().position(|known| known.arm == *arm)
    }

    /// A connection of an arm was established.
    pub(super) fn connected(&self, place: Place, arm: usize) {
        let now = self.now();
        let mut core = lock(&self.core);
        let arm = &self.arms[arm].arm;
        core.selector
            .on_connection(now, place.network, place.origin, arm);
        self.check_later(&mut core, place);
        self.after(&mut core);
    }

    /// Takes the outcome of a request in.
    pub(super) fn ended(&self, id: RequestId, outcome: &Outcome) {
        let now = self.now();
        let mut core = lock(&self.core);
        core.selector.on_outcome(now, id, outcome);
        core.changed = true;
        self.after(&mut core);
    }

    /// Takes the selector's events and lets the upkeep look at what is due.
    fn after(&self, core: &mut Core) {
        self.drain(core);
        self.wake.notify_one();
    }

    /// Takes the selector's events.
    pub(super) fn drain(&self, core: &mut Core) {
        while let Some(event) = core.selector.poll_event() {
            self.note(core, &event);
        }
    }

    fn note(&self, core: &mut Core, event: &Event) {
        let name = core.names.get(&event.origin).map(ToString::to_string);
        let origin = name.unwrap_or_else(|| event.origin.to_string());
        tracing::debug!(%origin, event = event.kind.name(), "selection: {event}");
        metrics::happened(&event.kind);
        let (network, origin) = (event.network, event.origin);
        self.check_later(core, Place { network, origin });
        core.changed = true;
    }

    /// Lets the idle connections to an origin be looked at once they are not worth keeping.
    fn check_later(&self, core: &mut Core, place: Place) {
        let warm = core.selector.config().parameters.warm;
        let key = (place.network, place.origin);
        core.checks.set(key, Some(self.now() + warm));
    }

    /// Counts a request that is sent over a second arm.
    pub(super) fn hedging(&self) {
        metrics::hedged();
        self.hedged.fetch_add(1, Ordering::Relaxed);
    }

    /// Counters.
    pub(in crate::client) fn snapshot(&self) -> SelectionSnapshot {
        let core = lock(&self.core);
        let config = core.selector.config();
        let (networks, origins, _) = core.selector.remembered();
        SelectionSnapshot {
            strategy: config.strategy.to_string(),
            arms: config.arms.clone(),
            stats: core.selector.stats(),
            hedged: self.hedged.load(Ordering::Relaxed),
            state_problem: self.file.as_ref().and_then(|file| file.problem.clone()),
            networks,
            origins,
        }
    }

    /// The arm selected for `origin` on the present network.
    pub(in crate::client) fn current(&self, origin: &Origin) -> Option<Arm> {
        let network = id(&(self.main.network)());
        let hash = OriginHash::of(&origin.to_string());
        lock(&self.core).selector.current(network, hash)
    }

    /// The states with connections of their own, beside the main one.
    pub(in crate::client) fn others(&self) -> impl Iterator<Item = &Arc<State>> {
        let states = self.arms.iter().map(|arm| &arm.state);
        states.filter(|state| !Arc::ptr_eq(state, &self.main))
    }
}

/// The number of a network.
fn id(network: &Network) -> NetworkId {
    NetworkId::of(&format!("{network:?}"))
}

/// Time since the Unix epoch.
pub(super) fn since_epoch() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default()
}
