//! A byte budget that keeps the cost of copies at or below that of AutoRec, estimated by running AutoRec
//! on the same events.
//!
//! The AutoRec instance has the same tolerances; its replicas are counted instead of sent. Each time
//! that it grants a lost data range K replicas the budget grows by their bytes in advance, and when the
//! repair of the data range ends it is corrected to what AutoRec would really have sent. Copies are charged
//! to the budget. So in the long run the cost is AutoRec's at most, while
//! what was saved on one data range may go to another (with a surplus step, a large rest gives a data range
//! more copies). A thousandth of the new data is granted in any case, so that a rare loss can have a copy whatever
//! AutoRec decides.

use std::collections::BTreeMap;

use swiftwater_quic::policy::{
    DataRange, Hints, Occasion, PacketOutcome, PathView, Reinjection, Reinjector, Repair,
};
use swiftwater_units::{ByteCount, Instant};

use super::config::{AutoRecPlusConfig, Ceiling};
use crate::autorec::{AutoRec, AutoRecConfig, Tolerances};

/// Bytes that a copy takes at most, about.
const PACKET: i64 = 1200;

/// Budget of a new connection, bytes, a few packets' worth: the first losses come before AutoRec
/// has decided anything.
const ADVANCE: i64 = 8 * PACKET;

/// Bytes of the budget that are reserved for first copies.
const RESERVE: i64 = 6 * PACKET;

/// Largest budget, bytes.
const MOST: i64 = 128 * PACKET;

/// Share of AutoRec's estimated replicas that is granted. In the estimate none of them waits for the window or
/// the pacer, so that a few more leave than would.
const SENT_SHARE: f64 = 0.96;

/// New bytes for which one byte of copies is granted in any case.
const NEW_PER_GRANTED: u64 = 1000;

/// Weight of a data range in the mean level.
const LEVEL_GAIN: f64 = 1.0 / 32.0;

/// Replica bytes that AutoRec granted a data range, and that it is estimated to have sent.
#[derive(Clone, Copy, Debug, Default)]
struct ReplicaAccount {
    granted: i64,
    sent: i64,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct AutoRecBudget {
    shadow: AutoRec,
    /// The path as it was last, from which the shadow's guard judges.
    path: Option<PathView>,
    /// When the shadow has something to do.
    due: Option<Instant>,
    accounts: BTreeMap<DataRange, ReplicaAccount>,
    available: i64,
    /// New bytes for which nothing was granted yet.
    new_bytes: u64,
    /// Replicas per lost data range that AutoRec sends on average.
    mean_level: Option<f64>,
    /// Packets of unused budget for one more copy per data range.
    surplus_step: Option<u32>,
    asked: Vec<Reinjection>,
}

/// AutoRec as the ceiling has it, under the tolerances of `config`; `None` without a ceiling.
fn shadow(config: &AutoRecPlusConfig) -> Option<AutoRec> {
    let base = match config.ceiling {
        Ceiling::Paper => AutoRecConfig::paper(),
        Ceiling::Shipped => AutoRecConfig {
            guard: config.guard,
            ..AutoRecConfig::default()
        },
        Ceiling::Off => return None,
    };
    Some(AutoRec::new(AutoRecConfig {
        tolerances: Tolerances {
            alpha: config.alpha,
            beta: config.beta,
            gamma: config.gamma,
        },
        max_level: config.max_level,
        ..base
    }))
}

impl AutoRecBudget {
    /// `None` if the configuration has no ceiling.
    pub(super) fn new(config: &AutoRecPlusConfig) -> Option<Self> {
        Some(Self {
            shadow: shadow(config)?,
            path: None,
            due: None,
            accounts: BTreeMap::new(),
            available: ADVANCE,
            new_bytes: 0,
            mean_level: None,
            surplus_step: config.surplus_step,
            asked: Vec::new(),
        })
    }

    /// The budget under a changed configuration: what is available stays, and so does what is under
    /// repair.
    pub(super) fn apply(self, config: &AutoRecPlusConfig) -> Option<Self> {
        let shadow = shadow(config)?;
        Some(Self {
            shadow,
            due: None,
            surplus_step: config.surplus_step,
            ..self
        })
    }

    pub(super) fn on_outcomes(
        &mut self,
        now: Instant,
        outcomes: &[PacketOutcome],
        path: &PathView,
    ) {
        self.advance(now);
        self.path = Some(*path);
        self.shadow.on_outcomes(now, outcomes, path);
        self.schedule();
    }

    pub(super) fn on_new_data(&mut self, now: Instant, size: ByteCount) {
        self.new_bytes += size.get();
        if self.new_bytes >= NEW_PER_GRANTED {
            let granted = self.new_bytes / NEW_PER_GRANTED;
            self.pay(i64::try_from(granted).unwrap_or(MOST));
            self.new_bytes %= NEW_PER_GRANTED;
        }
        self.shadow.on_new_data(now, size);
        self.schedule();
    }

    pub(super) fn on_unsent_data(&mut self, now: Instant, waiting: ByteCount) {
        self.shadow.on_unsent_data(now, waiting);
    }

    fn schedule(&mut self) {
        self.due = self.shadow.next_deadline();
    }

    /// What happened to data under repair, real copies excepted: AutoRec's are its own.
    pub(super) fn on_repair(&mut self, now: Instant, event: &Repair) {
        self.advance(now);
        match *event {
            Repair::ReplicaSent { .. } => {}
            Repair::Retransmitted {
                range, round: 1, ..
            } => {
                self.shadow.on_repair(now, event);
                let level = self.shadow.report().redundancy_level;
                let granted = i64::from(level) * i64::from(range.len);
                let account = self.accounts.entry(range).or_default();
                account.granted += granted;
                self.pay(granted);
            }
            Repair::Split { range, at } => {
                self.shadow.on_repair(now, event);
                // The first part keeps the account; what both come to is the same.
                if let Some(account) = self.accounts.remove(&range) {
                    self.accounts
                        .insert(DataRange { len: at, ..range }, account);
                }
            }
            Repair::Recovered { range, .. } | Repair::Abandoned { range } => {
                self.shadow.on_repair(now, event);
                self.settle(range);
            }
            Repair::Retransmitted { .. } => self.shadow.on_repair(now, event),
        }
        self.schedule();
    }

    fn settle(&mut self, range: DataRange) {
        let Some(account) = self.accounts.remove(&range) else {
            return;
        };
        let sent = account.sent as f64 * SENT_SHARE;
        self.pay(sent as i64 - account.granted);
        let level = account.sent as f64 / f64::from(range.len.max(1));
        self.mean_level = Some(match self.mean_level {
            None => level,
            Some(mean) => mean + LEVEL_GAIN * (level - mean),
        });
    }

    /// There is room and nothing to send: AutoRec's off-mode.
    pub(super) fn on_spare_room(&mut self, now: Instant) {
        self.advance(now);
        // One at a time, as the pacer would have it.
        if self.shadow.can_use_spare_room() {
            self.ask(now, Occasion::SpareRoom);
        }
    }

    /// True if AutoRec would use spare room.
    pub(super) fn can_use_spare_room(&self) -> bool {
        self.shadow.can_use_spare_room()
    }

    /// Lets AutoRec do what was due until now.
    fn advance(&mut self, now: Instant) {
        while let Some(due) = self.due.filter(|due| *due <= now) {
            // A replica that was held for the least gap: nothing was sent meanwhile, so that there is
            // room for it.
            let any = self.ask(due, Occasion::Timer) || self.ask(due, Occasion::SpareRoom);
            if !any && self.due == Some(due) {
                break;
            }
        }
    }

    /// Asks AutoRec on an occasion and counts what it asks for as sent; false if it asks for nothing.
    fn ask(&mut self, at: Instant, occasion: Occasion) -> bool {
        let mut asked = std::mem::take(&mut self.asked);
        let none = &mut std::iter::empty();
        let hints = Hints::default();
        let paths = self.path.as_slice();
        self.shadow
            .reinject(at, occasion, none, paths, &hints, &mut asked);
        let any = !asked.is_empty();
        for copy in asked.drain(..) {
            let range = copy.data_range();
            self.accounts.entry(range).or_default().sent += i64::from(copy.len);
            self.shadow.on_repair(at, &Repair::ReplicaSent { range });
        }
        self.asked = asked;
        self.schedule();
        any
    }

    fn pay(&mut self, bytes: i64) {
        self.available = (self.available + bytes).min(MOST);
    }

    /// Most copies per lost data range: as many as AutoRec sends on average, more by the surplus step, and
    /// one as long as the budget has room for one.
    pub(super) fn level(&self) -> usize {
        let mean = self
            .mean_level
            .unwrap_or_else(|| f64::from(self.shadow.report().redundancy_level));
        let surplus = (self.available - RESERVE).max(0) as f64 / PACKET as f64;
        let more = self
            .surplus_step
            .map_or(0.0, |step| surplus / f64::from(step.max(1)));
        let least = if self.available >= PACKET { 1.0 } else { 0.0 };
        libm::round(mean + more).max(least) as usize
    }

    /// True if the budget has room for a copy of `bytes`; `pending` bytes are charged to it already. Copies after a
    /// data range's first leave the reserve alone.
    pub(super) fn has_room_for(&self, bytes: u32, pending: u64, is_first: bool) -> bool {
        let reserve = if is_first { 0 } else { RESERVE };
        let pending = i64::try_from(pending).unwrap_or(i64::MAX);
        self.available.saturating_sub(pending) >= i64::from(bytes) + reserve
    }

    pub(super) fn on_replica(&mut self, bytes: u32) {
        self.available -= i64::from(bytes);
    }
}
