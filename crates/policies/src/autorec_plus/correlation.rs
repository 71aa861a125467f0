//! How much a loss says about packets sent a little later: the conditional loss curve.
//!
//! `c(d)` is the probability that a packet is lost if one sent `d` earlier was. On a path with
//! independent losses it is the loss rate for every `d`; on a bursty one it starts high and falls to
//! the loss rate as bursts end. It is measured from the packets' fates: every pair of a lost packet
//! and a later one within reach is a sample of its lag's bin.

use std::collections::VecDeque;
use std::time::Duration;

use swiftwater_quic::policy::{PacketFate, PacketOutcome};
use swiftwater_units::Instant;

/// Upper ends of the bins of lags, milliseconds.
const EDGES: [u64; BINS] = [
    2, 4, 7, 11, 16, 22, 28, 35, 44, 56, 72, 95, 130, 180, 250, 350,
];

/// Bins of lags.
const BINS: usize = 16;

/// Packets whose fates are kept to be paired. What a loss costs is bounded by it.
const REACH: usize = 256;

/// Samples that what is assumed weighs as much as.
const PRIOR_WEIGHT: f64 = 4.0;

/// What is assumed at first: losses are somewhat bursty. The next packet after a lost one is lost
/// with this probability more than others, which fades over `PRIOR_FADE`.
const PRIOR_EXCESS: f64 = 0.3;

/// See [`PRIOR_EXCESS`].
const PRIOR_FADE: Duration = Duration::from_millis(20);

/// Samples decay with this time constant.
const MEMORY: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    pairs: f64,
    both_lost: f64,
}

/// Measures the conditional loss curve of a path.
#[derive(Debug, Default)]
pub struct LossCorrelation {
    recent: VecDeque<(Instant, bool)>,
    /// Lost ones among them.
    recent_losses: usize,
    bins: [Bin; BINS],
    decayed_at: Option<Instant>,
}

impl LossCorrelation {
    /// Nothing is known yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A packet's fate is known. O(packets kept) while one of them or this one is lost, else O(1).
    pub fn on_outcome(&mut self, outcome: &PacketOutcome) {
        if outcome.fate == PacketFate::Spurious {
            return;
        }
        let lost = outcome.fate == PacketFate::Lost;
        let sent_at = outcome.sent_at;
        // Without a lost packet there is no pair to count, and mostly there is none.
        let others = if lost || self.recent_losses > 0 {
            self.recent.len()
        } else {
            0
        };
        for &(other_at, other_lost) in self.recent.iter().take(others) {
            // The earlier of the two must be a lost one.
            let (lag, later_lost) = if other_at <= sent_at && other_lost {
                (sent_at.saturating_since(other_at), lost)
            } else if lost && other_at > sent_at {
                (other_at.saturating_since(sent_at), other_lost)
            } else {
                continue;
            };
            if let Some(bin) = bin_of(lag) {
                self.bins[bin].pairs += 1.0;
                self.bins[bin].both_lost += f64::from(u8::from(later_lost));
            }
        }
        if self.recent.len() == REACH
            && let Some((_, true)) = self.recent.pop_front()
        {
            self.recent_losses -= 1;
        }
        self.recent_losses += usize::from(lost);
        self.recent.push_back((sent_at, lost));
    }

    /// Lets old samples fade; call now and then.
    pub fn decay(&mut self, now: Instant) {
        let since = self.decayed_at.replace(now);
        let Some(elapsed) = since.map(|since| now.saturating_since(since)) else {
            return;
        };
        let keep = libm::exp(-elapsed.as_secs_f64() / MEMORY.as_secs_f64());
        for bin in &mut self.bins {
            bin.pairs *= keep;
            bin.both_lost *= keep;
        }
    }

    /// The curve as it looks now, for a path that loses `loss_rate` of its packets.
    pub fn curve(&self, loss_rate: f64) -> ConditionalLoss {
        let mut at = [0.0; BINS];
        let mut weights = [0.0; BINS];
        for (nth, bin) in self.bins.iter().enumerate() {
            let lag = middle(nth).as_secs_f64();
            let fade = libm::exp(-lag / PRIOR_FADE.as_secs_f64());
            let assumed = loss_rate + (1.0 - loss_rate) * PRIOR_EXCESS * fade;
            weights[nth] = bin.pairs + PRIOR_WEIGHT;
            at[nth] = (bin.both_lost + PRIOR_WEIGHT * assumed) / weights[nth];
        }
        fall(&mut at, &mut weights);
        ConditionalLoss { at, loss_rate }
    }
}

/// Makes the curve fall, as far as noise let it rise: neighbours that rise are replaced by their
/// mean (pool adjacent violators).
fn fall(at: &mut [f64; BINS], weights: &mut [f64; BINS]) {
    let mut blocks: Vec<(f64, f64, usize)> = Vec::with_capacity(BINS);
    for (&value, &weight) in at.iter().zip(weights.iter()) {
        blocks.push((value, weight, 1));
        while let [.., (before, _, _), (last, _, _)] = blocks[..]
            && before < last
        {
            let (value, weight, count) = blocks.pop().unwrap_or_default();
            if let Some(block) = blocks.last_mut() {
                let sum = block.1 + weight;
                *block = (
                    (block.0 * block.1 + value * weight) / sum,
                    sum,
                    block.2 + count,
                );
            }
        }
    }
    let values = blocks
        .iter()
        .flat_map(|&(value, _, count)| std::iter::repeat_n(value, count));
    for (slot, value) in at.iter_mut().zip(values) {
        *slot = value;
    }
}

fn bin_of(lag: Duration) -> Option<usize> {
    let millis = lag.as_millis();
    EDGES.iter().position(|edge| millis < u128::from(*edge))
}

/// The middle of a bin.
fn middle(bin: usize) -> Duration {
    let start = bin.checked_sub(1).map_or(0, |before| EDGES[before]);
    Duration::from_micros(500 * (start + EDGES[bin]))
}

/// The probability that a packet is lost if one sent a while earlier was; falls with that while.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConditionalLoss {
    at: [f64; BINS],
    loss_rate: f64,
}

impl ConditionalLoss {
    /// The curve of independent losses.
    pub fn independent(loss_rate: f64) -> Self {
        Self {
            at: [loss_rate; BINS],
            loss_rate,
        }
    }

    /// For a lag of `lag`, between the middles of bins on a straight line; beyond the last bin the
    /// loss rate, or the last bin if that is less.
    pub fn after(&self, lag: Duration) -> f64 {
        let Some(bin) = bin_of(lag) else {
            return self.at[BINS - 1].min(self.loss_rate);
        };
        let (from, to) = if lag < middle(bin) {
            (bin.saturating_sub(1), bin)
        } else {
            (bin, (bin + 1).min(BINS - 1))
        };
        let (start, end) = (middle(from), middle(to));
        if start >= end {
            return self.at[bin];
        }
        let whole = end.saturating_sub(start).as_secs_f64();
        let way = lag.saturating_sub(start).as_secs_f64() / whole;
        self.at[from] + (self.at[to] - self.at[from]) * way.min(1.0)
    }

    /// Lags worth trying: the middle and the end of each bin.
    pub(crate) fn lags() -> impl Iterator<Item = Duration> {
        (0..BINS).flat_map(|bin| [middle(bin), Duration::from_millis(EDGES[bin])])
    }
}
