//! Copies for redundant transmission: every new datum also leaves on every other path.
//!
//! The latency of each datum is that of the path on which it arrives first, for the price of sending
//! everything as often as there are paths (RAVEN, `MobiCom` 2018, and MPTCP's redundant scheduler). Half of a
//! pair: the scheduler of the same name ([`RedundantScheduler`](crate::schedulers::RedundantScheduler)) lets
//! copies leave as soon as their path has room; see [`Policies::redundant`](crate::Policies::redundant).
//!
//! A path gets the oldest data in flight elsewhere that it hasn't carried yet, as much as its window has room
//! for. What was acknowledged before its turn it never carries, so that a slow path skips what it can't keep
//! up with. Standby paths and paths with two probe timeouts in a row get no copies. Retransmissions
//! aren't copied.

use std::collections::BTreeMap;
use std::time::Duration;

use swiftwater_quic::policy::{
    Hints, Occasion, OutstandingRange, PathChoice, PathView, Reinjection, Reinjector, Rejection,
};
use swiftwater_tunable::tunable;
use swiftwater_units::{ByteCount, Instant, PathId, StreamId};

use crate::reinjector_factory::ReinjectorFactory;

/// Probe timeouts in a row from which a path gets no copies.
const FAILING_PTO: u32 = 2;
/// Longest time from the sending of new data until copies are asked for.
const DELAY: Duration = Duration::from_millis(1);

/// Parameters of [`RedundantCopies`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RedundantCopiesConfig {
    /// Most copies of a datum, 1 to 7; default 7. On fewer than all paths they go where the RTT is least.
    pub max_copies: u32,
}

impl Default for RedundantCopiesConfig {
    fn default() -> Self {
        Self { max_copies: 7 }
    }
}

tunable!(RedundantCopiesConfig {
    "max-copies" => max_copies in 1_u32..=7, "most copies of a datum";
});

impl ReinjectorFactory for RedundantCopiesConfig {
    fn reinjector(&self) -> Box<dyn Reinjector> {
        Box::new(RedundantCopies::new(*self))
    }
}

/// The copies asked for of data in flight.
#[derive(Clone, Debug, Default)]
struct Asked {
    paths: Vec<PathId>,
    /// Copies that have left.
    sent: u32,
    /// The walk over what is in flight that met it last.
    seen_in: u64,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct RedundantCopies {
    config: RedundantCopiesConfig,
    /// By stream and offset.
    asked: BTreeMap<(StreamId, u64), Asked>,
    walks: u64,
    /// Data in flight for the first time, of the last walk.
    originals: Vec<OutstandingRange>,
    /// When to be asked for copies of new data.
    due: Option<Instant>,
    /// Some path had no room for all copies.
    is_behind: bool,
}

impl RedundantCopies {
    /// Nothing is in flight yet.
    pub fn new(config: RedundantCopiesConfig) -> Self {
        Self {
            config,
            asked: BTreeMap::new(),
            walks: 0,
            originals: Vec::new(),
            due: None,
            is_behind: false,
        }
    }

    /// Takes down what is in flight for the first time.
    fn walk(&mut self, outstanding: &mut dyn Iterator<Item = OutstandingRange>) {
        self.walks += 1;
        self.originals.clear();
        for range in outstanding.filter(|range| !range.retransmission) {
            let asked = self.asked.entry(key(&range)).or_default();
            asked.sent = range.copies;
            asked.seen_in = self.walks;
            self.originals.push(range);
        }
        let walk = self.walks;
        self.asked.retain(|_, asked| asked.seen_in == walk);
        self.originals.sort_by_key(|range| range.sent_at);
    }

    /// Bytes asked for on path `id` that haven't left.
    fn waiting(&self, id: PathId) -> u64 {
        let waits = |range: &&OutstandingRange| {
            self.asked.get(&key(range)).is_some_and(|asked| {
                asked.paths.contains(&id) && (asked.sent as usize) < asked.paths.len()
            })
        };
        let waiting = self.originals.iter().filter(waits);
        waiting.map(|range| u64::from(range.len)).sum()
    }

    /// Asks for the copies that `target` has room for.
    fn ask(&mut self, target: &PathView, out: &mut Vec<Reinjection>) {
        let room = target.window_room();
        let mut room = room.get().saturating_sub(self.waiting(target.id));
        for range in self
            .originals
            .iter()
            .filter(|range| range.path != target.id)
        {
            let Some(asked) = self.asked.get_mut(&key(range)) else {
                continue;
            };
            let is_full = asked.paths.len() >= self.config.max_copies as usize;
            if is_full || asked.paths.contains(&target.id) {
                continue;
            }
            let Some(left) = room.checked_sub(range.len.into()) else {
                self.is_behind = true;
                return;
            };
            room = left;
            asked.paths.push(target.id);
            out.push(range.reinjection().target(PathChoice::On(target.id)));
        }
    }
}

fn key(range: &OutstandingRange) -> (StreamId, u64) {
    (range.stream, range.offset)
}

impl Reinjector for RedundantCopies {
    fn can_use_spare_room(&self) -> bool {
        self.due.is_some() || self.is_behind
    }

    fn is_asked_on(&self, occasion: Occasion) -> bool {
        matches!(occasion, Occasion::Ack | Occasion::PathUp(_))
    }

    fn on_new_data(&mut self, now: Instant, _size: ByteCount) {
        self.due.get_or_insert(now + DELAY);
    }

    fn on_rejected(&mut self, _now: Instant, rejections: &[Rejection]) {
        for copy in rejections.iter().map(|rejection| rejection.copy) {
            let PathChoice::On(path) = copy.target else {
                continue;
            };
            if let Some(asked) = self.asked.get_mut(&(copy.stream, copy.offset)) {
                asked.paths.retain(|known| *known != path);
            }
        }
    }

    fn reinject(
        &mut self,
        _now: Instant,
        _occasion: Occasion,
        outstanding: &mut dyn Iterator<Item = OutstandingRange>,
        paths: &[PathView],
        _hints: &Hints,
        out: &mut Vec<Reinjection>,
    ) {
        (self.due, self.is_behind) = (None, false);
        self.walk(outstanding);
        let mut targets: Vec<_> = paths
            .iter()
            .filter(|path| path.is_usable() && !path.is_backup() && path.pto_count < FAILING_PTO)
            .collect();
        targets.sort_by_key(|path| (path.smoothed_rtt, path.id));
        for target in targets {
            self.ask(target, out);
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.due
    }
}
