//! A byte budget that keeps the cost of copies at or below that of AutoRec, estimated by running AutoRec
//! on the same events.
//!
//! The AutoRec instance has the same tolerances; its replicas are counted instead of sent. Each time
//! that it grants a lost data range K replicas the budget grows by their bytes in advance, and when the
//! repair of the data range ends it is corrected to what AutoRec would really have sent. Copies are charged
//! to the budget. So in the long run the cost is AutoRec's at most, while
//! what was saved on one data range may go to another.

use std::collections::BTreeMap;

use swiftwater_quic::policy::{
    DataRange, Hints, Occasion, PacketOutcome, PathView, Reinjection, Reinjector, Repair,
};
use swiftwater_units::{ByteCount, Instant};

use super::config::AutoRecPlusConfig;
use crate::autorec::{AutoRec, AutoRecConfig, Tolerances};

/// Budget of a new connection, bytes, a few packets' worth: the first losses come before AutoRec
/// has decided anything.
const ADVANCE: i64 = 8 * 1200;

/// Bytes of the budget that are reserved for first copies.
const RESERVE: i64 = 6 * 1200;

/// Largest budget, bytes.
const MOST: i64 = 128 * 1200;

/// Share of AutoRec's estimated replicas that is granted. In the estimate none of them waits for the window or
/// the pacer, so that a few more leave than would.
const SENT_SHARE: f64 = 0.96;

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
    accounts: BTreeMap<DataRange, ReplicaAccount>,
    available: i64,
    /// Replicas per lost data range that AutoRec sends on average.
    mean_level: Option<f64>,
    asked: Vec<Reinjection>,
}

impl AutoRecBudget {
    pub(super) fn new(config: &AutoRecPlusConfig) -> Self {
        let shadow = AutoRecConfig {
            tolerances: Tolerances {
                alpha: config.alpha,
                beta: config.beta,
                gamma: config.gamma,
            },
            max_level: config.max_level,
            ..AutoRecConfig::paper()
        };
        Self {
            shadow: AutoRec::new(shadow),
            accounts: BTreeMap::new(),
            available: ADVANCE,
            mean_level: None,
            asked: Vec::new(),
        }
    }

    /// The tolerances have changed.
    pub(super) fn apply(&mut self, config: &AutoRecPlusConfig) {
        // The budget and what is under repair stay.
        let next = Self::new(config);
        self.shadow = next.shadow;
    }

    pub(super) fn on_outcomes(
        &mut self,
        now: Instant,
        outcomes: &[PacketOutcome],
        path: &PathView,
    ) {
        self.advance(now);
        self.shadow.on_outcomes(now, outcomes, path);
    }

    pub(super) fn on_new_data(&mut self, now: Instant, size: ByteCount) {
        self.shadow.on_new_data(now, size);
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
        while let Some(due) = self.shadow.next_deadline().filter(|due| *due <= now) {
            if !self.ask(due, Occasion::Timer) {
                break;
            }
        }
    }

    /// Asks AutoRec on an occasion and counts what it asks for as sent; false if it asks for nothing.
    fn ask(&mut self, at: Instant, occasion: Occasion) -> bool {
        let mut asked = std::mem::take(&mut self.asked);
        let none = &mut std::iter::empty();
        let hints = Hints::default();
        self.shadow
            .reinject(at, occasion, none, &[], &hints, &mut asked);
        let any = !asked.is_empty();
        for copy in asked.drain(..) {
            let range = copy.data_range();
            self.accounts.entry(range).or_default().sent += i64::from(copy.len);
            self.shadow.on_repair(at, &Repair::ReplicaSent { range });
        }
        self.asked = asked;
        any
    }

    fn pay(&mut self, bytes: i64) {
        self.available = (self.available + bytes).min(MOST);
    }

    /// Replicas per lost data range that AutoRec sends, to the nearest; a first copy as long as the budget
    /// has room for one.
    pub(super) fn level(&self) -> usize {
        let level = f64::from(self.shadow.report().redundancy_level);
        let mean = self.mean_level.unwrap_or(level);
        let least = if self.available > RESERVE { 1.0 } else { 0.0 };
        libm::round(mean).max(least) as usize
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
