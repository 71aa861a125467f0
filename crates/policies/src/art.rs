//! ART: adaptive redundancy of retransmissions (Li et al., ICNP 2023; code at litonglab/quic-art).
//!
//! Whenever a loss is retransmitted, further copies follow. How many depends on the retransmission
//! round of the data range: each round has a level, raised when the last copies got through so badly that
//! less than one of that many would arrive, lowered when two or more would. The copies after the
//! first leave at random times within one least round-trip time of the detection.
//!
//! The level of a round is the connection's, not the data range's, as in the released code. Settled here:
//! a probe timeout is no loss; the copies of a round that haven't left when the next one begins are
//! dropped; the newest copy of a data range is watched for loss, as with AutoRec. The bound on the spread
//! that the talk names (a burst of loss) is not in the code and not here.
//!
//! Which fates count is not clear. The released code records those of copies only; then, at
//! moderate loss, seldom one of the last ten is lost, and most losses get no copy at all. What
//! AutoRec's authors report of ART (about one copy per loss at 5 %) follows when every packet counts,
//! the loss under repair among them. The stronger rival is the default, see [`Feedback`].

use std::collections::VecDeque;
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use swiftwater_quic::policy::{
    ConfigureError, DataRange, Hints, Occasion, OutstandingRange, PacketFate, PacketOutcome,
    PathView, Reinjection, Reinjector, ReinjectorReport, Repair, RepairCause,
};
use swiftwater_tunable::{ParameterValue, Tunable, tunable};
use swiftwater_units::Instant;

use crate::due_queue::DueQueue;
use crate::reinjector_factory::ReinjectorFactory;

/// Retransmission rounds with a level of their own; later ones share the last.
const ROUNDS: u32 = 20;

/// Which fates are recorded.
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
    /// Fates that are recorded, 1 to 64; default 10.
    pub history: u32,
    /// Which ones; default those of all packets.
    pub feedback: Feedback,
    /// Most copies of a round, its retransmission included, 1 to 100; default 39, the level that
    /// round 20 starts from. The released code has no bound.
    pub max_copies: u32,
    /// Seed of the random times. Connections differ by the first data range that they lose and when.
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
    "history" => history in 1..=64, "fates that are recorded";
    "feedback" => feedback, "packets whose fates are recorded";
    "max-copies" => max_copies in 1..=100, "most copies of a round, its retransmission included";
    "seed" => seed, "seed of the random times";
});

impl ReinjectorFactory for ArtConfig {
    fn reinjector(&self) -> Box<dyn Reinjector> {
        Box::new(Art::new(self.clone()))
    }
}

/// When a copy leaves, and its place among others of that time.
type Departure = (Instant, u64);

/// ART on a connection.
#[derive(Clone, Debug)]
pub struct Art {
    config: ArtConfig,
    /// Copies per round, the retransmission included.
    levels: Vec<u32>,
    /// Fates of the last packets that count; true is lost.
    fates: VecDeque<bool>,
    /// Data with copies to come, and when those leave, the next one last.
    queue: DueQueue<Vec<Departure>>,
    /// Copies in the queue.
    queued: usize,
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
            queue: DueQueue::default(),
            queued: 0,
            min_rtt: Duration::ZERO,
            rng: None,
            changes: 0,
        }
    }

    /// Copies of round `round` (1 is the first retransmission), the retransmission included.
    pub fn copies(&self, round: u32) -> u32 {
        self.levels[(round.clamp(1, ROUNDS) - 1) as usize]
    }

    /// Share of the recorded packets that were lost, 0 to 1; 0 before the first.
    pub fn recent_loss_rate(&self) -> f64 {
        let lost = self.fates.iter().filter(|&&lost| lost).count();
        lost as f64 / self.fates.len().max(1) as f64
    }

    fn record(&mut self, lost: bool) {
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
    fn plan(&mut self, range: DataRange, count: u32, now: Instant, until: Instant) {
        let window = until.saturating_since(now).as_nanos();
        let seed = self.config.seed;
        let rng = self.rng.get_or_insert_with(|| {
            let mut key = [0; 32];
            key[..8].copy_from_slice(&seed.to_le_bytes());
            key[8..16].copy_from_slice(&now.as_nanos().to_le_bytes());
            key[16..24].copy_from_slice(&range.stream.get().to_le_bytes());
            key[24..].copy_from_slice(&range.offset.to_le_bytes());
            ChaCha8Rng::from_seed(key)
        });
        let mut departures = Vec::new();
        for _ in 0..count {
            let share = (window * u128::from(rng.next_u64())) >> 64;
            let after = Duration::from_nanos(u64::try_from(share).unwrap_or(u64::MAX));
            departures.push((now + after, self.queue.ticket()));
        }
        departures.sort_unstable_by(|a, b| b.cmp(a));
        self.enter(range, departures);
    }

    /// Enters the copies of a data range, the next one last; none are in the queue.
    fn enter(&mut self, range: DataRange, departures: Vec<Departure>) {
        let Some(&(at, ticket)) = departures.last() else {
            return;
        };
        self.queued += departures.len();
        self.queue.insert(&range, departures);
        self.queue.set_due_as(&range, at, ticket);
    }

    /// Takes all copies of a data range out of the queue.
    fn cancel(&mut self, range: &DataRange) -> Vec<Departure> {
        let departures = self.queue.remove(range).unwrap_or_default();
        self.queued -= departures.len();
        departures
    }

    fn split(&mut self, range: &DataRange, at: u32) {
        let departures = self.cancel(range);
        if at == 0 || at >= range.len {
            return;
        }
        let rest = DataRange {
            offset: range.offset + u64::from(at),
            len: range.len - at,
            ..*range
        };
        self.enter(DataRange { len: at, ..*range }, departures.clone());
        self.enter(rest, departures);
    }
}

impl Reinjector for Art {
    fn can_use_spare_room(&self) -> bool {
        false
    }

    fn is_asked_on(&self, occasion: Occasion) -> bool {
        occasion == Occasion::Timer
    }

    fn on_outcomes(&mut self, _now: Instant, outcomes: &[PacketOutcome], path: &PathView) {
        self.min_rtt = path.min_rtt;
        let all = self.config.feedback == Feedback::Packets;
        for outcome in outcomes.iter().filter(|outcome| all || outcome.repeated) {
            match outcome.fate {
                PacketFate::Acked => self.record(false),
                PacketFate::Lost => self.record(true),
                PacketFate::Spurious => {}
            }
        }
    }

    fn on_repair(&mut self, now: Instant, event: &Repair) {
        match *event {
            Repair::Retransmitted {
                range,
                lost_at,
                round,
                cause: RepairCause::Loss,
                ..
            } => {
                self.cancel(&range);
                let copies = self.adapt(round);
                // Later rounds count as found lost when they are retransmitted: events say no more.
                let found_at = if round == 1 { lost_at } else { now };
                self.plan(range, copies - 1, now, found_at + self.min_rtt);
            }
            Repair::Recovered { range, .. } | Repair::Abandoned { range } => {
                self.cancel(&range);
            }
            Repair::Split { range, at } => self.split(&range, at),
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
        while let Some((range, _)) = self.queue.first().filter(|(_, at)| *at <= now) {
            let mut departures = self.cancel(&range);
            departures.pop();
            self.enter(range, departures);
            // Nothing is kept of a copy that was asked for, so nothing is to be done for a rejected one.
            out.push(range.reinjection());
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.queue.first().map(|(_, at)| at)
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
            loss_rate: self.recent_loss_rate(),
            queued: self.queued,
            decisions: self.changes,
            ..ReinjectorReport::default()
        }
    }
}
