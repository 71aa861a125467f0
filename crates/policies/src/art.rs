//! ART: adaptive redundancy of retransmissions (Li et al., ICNP 2023; code at litonglab/quic-art).
//!
//! Whenever a loss is retransmitted, further copies follow. How many depends on the retransmission
//! round of the datum: each round has a level, raised when the last copies got through so badly that
//! less than one of that many would arrive, lowered when two or more would. The copies after the
//! first leave at random times within one least round-trip time of the detection.
//!
//! The level of a round is the connection's, not the datum's, as in the released code. Settled here:
//! a probe timeout is no loss; the copies of a round that haven't left when the next one begins are
//! dropped; the newest copy of a datum is watched for loss, as with AutoRec. The bound on the spread
//! that the talk names (a burst of loss) is not in the code and not here.
//!
//! Which fates count is not clear. The released code remembers those of copies only; then, at
//! moderate loss, seldom one of the last ten is lost, and most losses get no copy at all. What
//! AutoRec's authors report of ART (about one copy per loss at 5 %) follows when every packet counts,
//! the loss under repair among them. The stronger rival is the default, see [`Feedback`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use swiftwater_quic::policy::{
    ConfigureError, Datum, Hints, Occasion, OutstandingRange, PacketFate, PacketOutcome, PathView,
    Reinjection, Reinjector, ReinjectorReport, Repair, RepairCause,
};
use swiftwater_tunable::{ParameterValue, Tunable, tunable};
use swiftwater_units::{Instant, StreamId};

use crate::reinjectors::ReinjectorFactory;

/// Retransmission rounds with a level of their own; later ones share the last.
const ROUNDS: u32 = 20;

/// Which fates are remembered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Feedback {
    /// Those of packets that repeat data, as in the released code.
    Copies,
    /// Those of all packets: the loss that is being repaired is among them.
    Packets,
}

impl ParameterValue for Feedback {
    fn read(text: &str) -> Option<Self> {
        match text {
            "copies" => Some(Self::Copies),
            "packets" => Some(Self::Packets),
            _ => None,
        }
    }

    fn write(&self) -> String {
        match self {
            Self::Copies => "copies",
            Self::Packets => "packets",
        }
        .to_owned()
    }

    fn accepts() -> String {
        "copies or packets".to_owned()
    }
}

/// Parameters of [`Art`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ArtConfig {
    /// Fates that are remembered, 1 to 64; default 10.
    pub history: u32,
    /// Which ones; default those of all packets.
    pub feedback: Feedback,
    /// Most copies of a round, its retransmission included, 1 to 100; default 39, the level that
    /// round 20 starts from. The released code has no bound.
    pub max_copies: u32,
    /// Seed of the random times. Connections differ by the first datum that they lose and when.
    pub seed: u64,
}

impl Default for ArtConfig {
    fn default() -> Self {
        Self {
            history: 10,
            feedback: Feedback::Packets,
            max_copies: 2 * ROUNDS - 1,
            seed: 1,
        }
    }
}

tunable!(ArtConfig {
    "history" => history in 1..=64, "fates that are remembered";
    "feedback" => feedback, "packets whose fates are remembered";
    "max-copies" => max_copies in 1..=100, "most copies of a round, its retransmission included";
    "seed" => seed, "seed of the random times";
});

impl ReinjectorFactory for ArtConfig {
    fn reinjector(&self) -> Box<dyn Reinjector> {
        Box::new(Art::new(self.clone()))
    }
}

type Key = (StreamId, u64);

/// A copy that will leave.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Due {
    at: Instant,
    ticket: u64,
    datum: Datum,
}

/// ART on a connection.
#[derive(Clone, Debug)]
pub struct Art {
    config: ArtConfig,
    /// Copies per round, the retransmission included.
    levels: Vec<u32>,
    /// Fates of the last packets that count; true is lost.
    fates: VecDeque<bool>,
    /// Copies in the order in which they leave.
    line: BTreeSet<Due>,
    /// The same by datum.
    pending: BTreeMap<Key, Vec<Due>>,
    tickets: u64,
    min_rtt: Duration,
    rng: Option<ChaCha8Rng>,
    changes: u64,
}

impl Art {
    /// A re-injector for a new connection.
    pub fn new(config: ArtConfig) -> Self {
        let levels = (1..=ROUNDS)
            .map(|round| (2 * round - 1).min(config.max_copies))
            .collect();
        Self {
            config,
            levels,
            fates: VecDeque::new(),
            line: BTreeSet::new(),
            pending: BTreeMap::new(),
            tickets: 0,
            min_rtt: Duration::ZERO,
            rng: None,
            changes: 0,
        }
    }

    /// Copies of round `round` (1 is the first retransmission), the retransmission included.
    pub fn copies(&self, round: u32) -> u32 {
        self.levels[(round.clamp(1, ROUNDS) - 1) as usize]
    }

    /// Share of the remembered packets that were lost, 0 to 1; 0 before the first.
    pub fn remembered_loss_rate(&self) -> f64 {
        let lost = self.fates.iter().filter(|&&lost| lost).count();
        lost as f64 / self.fates.len().max(1) as f64
    }

    fn remember(&mut self, lost: bool) {
        self.fates.push_back(lost);
        self.trim();
    }

    fn trim(&mut self) {
        while self.fates.len() > self.config.history as usize {
            self.fates.pop_front();
        }
    }

    /// A loss in `round`: adapts its level and says how many copies it gets.
    fn adapt(&mut self, round: u32) -> u32 {
        // In whole numbers: r (1 - p) = r * arrived/held, where E < 1 and E >= 2 are the tests.
        let (arrived, held) = if self.fates.is_empty() {
            (1, 1)
        } else {
            let arrived = self.fates.iter().filter(|&&lost| !lost).count() as u32;
            (arrived, self.fates.len() as u32)
        };
        let level = &mut self.levels[(round.clamp(1, ROUNDS) - 1) as usize];
        let before = *level;
        let expected = *level * arrived;
        if expected < held {
            *level += 1;
        } else if expected >= 2 * held {
            *level -= 1;
        }
        *level = (*level).clamp(1, self.config.max_copies);
        self.changes += u64::from(*level != before);
        *level
    }

    /// Plans `count` copies at random times from now until `until`.
    fn plan(&mut self, datum: Datum, count: u32, now: Instant, until: Instant) {
        let window = until.saturating_since(now).as_nanos();
        let seed = self.config.seed;
        let rng = self.rng.get_or_insert_with(|| {
            let mut key = [0; 32];
            key[..8].copy_from_slice(&seed.to_le_bytes());
            key[8..16].copy_from_slice(&now.as_nanos().to_le_bytes());
            key[16..24].copy_from_slice(&datum.stream.get().to_le_bytes());
            key[24..].copy_from_slice(&datum.offset.to_le_bytes());
            ChaCha8Rng::from_seed(key)
        });
        let copies = self.pending.entry(key(&datum)).or_default();
        for _ in 0..count {
            let share = (window * u128::from(rng.next_u64())) >> 64;
            let due = Due {
                at: now + Duration::from_nanos(u64::try_from(share).unwrap_or(u64::MAX)),
                ticket: self.tickets,
                datum,
            };
            self.tickets += 1;
            self.line.insert(due);
            copies.push(due);
        }
        if copies.is_empty() {
            self.pending.remove(&key(&datum));
        }
    }

    /// Takes all copies of a datum out of the line.
    fn cancel(&mut self, datum: &Datum) -> Vec<Due> {
        let copies = self.pending.remove(&key(datum)).unwrap_or_default();
        for due in &copies {
            self.line.remove(due);
        }
        copies
    }

    fn split(&mut self, datum: &Datum, at: u32) {
        let copies = self.cancel(datum);
        if at == 0 || at >= datum.len {
            return;
        }
        let first = Datum { len: at, ..*datum };
        let rest = Datum {
            offset: datum.offset + u64::from(at),
            len: datum.len - at,
            ..*datum
        };
        for part in [first, rest] {
            for due in &copies {
                let due = Due {
                    datum: part,
                    ..*due
                };
                self.line.insert(due);
                self.pending.entry(key(&part)).or_default().push(due);
            }
        }
    }
}

impl Reinjector for Art {
    fn wants_spare_room(&self) -> bool {
        false
    }

    fn wants(&self, occasion: Occasion) -> bool {
        occasion == Occasion::Timer
    }

    fn on_outcomes(&mut self, _now: Instant, outcomes: &[PacketOutcome], path: &PathView) {
        self.min_rtt = path.min_rtt;
        let all = self.config.feedback == Feedback::Packets;
        for outcome in outcomes.iter().filter(|outcome| all || outcome.repeated) {
            match outcome.fate {
                PacketFate::Acked => self.remember(false),
                PacketFate::Lost => self.remember(true),
                PacketFate::Spurious => {}
            }
        }
    }

    fn on_repair(&mut self, now: Instant, event: &Repair) {
        match *event {
            Repair::Retransmitted {
                datum,
                lost_at,
                round,
                cause: RepairCause::Loss,
                ..
            } => {
                self.cancel(&datum);
                let copies = self.adapt(round);
                // Later rounds are found lost when they are retransmitted, as far as is told.
                let found_at = if round == 1 { lost_at } else { now };
                self.plan(datum, copies - 1, now, found_at + self.min_rtt);
            }
            Repair::Recovered { datum, .. } | Repair::Abandoned { datum } => {
                self.cancel(&datum);
            }
            Repair::Split { datum, at } => self.split(&datum, at),
            Repair::Retransmitted { .. } | Repair::ReplicaSent { .. } => {}
        }
    }

    fn reinject(
        &mut self,
        now: Instant,
        occasion: Occasion,
        _outstanding: &mut dyn Iterator<Item = OutstandingRange>,
        _paths: &[PathView],
        _hints: &Hints,
        out: &mut Vec<Reinjection>,
    ) {
        if occasion != Occasion::Timer {
            return;
        }
        while let Some(due) = self.line.first().copied().filter(|due| due.at <= now) {
            self.line.remove(&due);
            if let Some(copies) = self.pending.get_mut(&key(&due.datum)) {
                copies.retain(|copy| copy.ticket != due.ticket);
                if copies.is_empty() {
                    self.pending.remove(&key(&due.datum));
                }
            }
            // Nothing is kept of a copy that was asked for, so a rejected one is forgotten.
            out.push(due.datum.reinjection());
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.line.first().map(|due| due.at)
    }

    fn configure(&mut self, settings: &str) -> Result<(), ConfigureError> {
        let mut config = self.config.clone();
        config
            .set_all(settings)
            .map_err(|error| ConfigureError(error.to_string()))?;
        self.config = config;
        self.trim();
        for level in &mut self.levels {
            *level = (*level).min(self.config.max_copies);
        }
        Ok(())
    }

    fn report(&self) -> ReinjectorReport {
        ReinjectorReport {
            redundancy_level: self.copies(1) - 1,
            loss_rate: self.remembered_loss_rate(),
            queued: self.line.len(),
            decisions: self.changes,
            ..ReinjectorReport::default()
        }
    }
}

fn key(datum: &Datum) -> Key {
    (datum.stream, datum.offset)
}
