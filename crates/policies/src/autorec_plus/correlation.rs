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

/// Samples by lag.
#[derive(Debug, Default)]
struct Bins([Bin; BINS]);

impl Bins {
    /// One more pair of a lost packet and a later one.
    fn count(&mut self, lag: Duration, later_lost: bool) {
        if let Some(bin) = bin_of(lag) {
            self.0[bin].pairs += 1.0;
            self.0[bin].both_lost += f64::from(u8::from(later_lost));
        }
    }
}

/// Measures the conditional loss curve of a path.
#[derive(Debug, Default)]
pub struct LossCorrelation {
    recent: VecDeque<(Instant, bool)>,
    /// When the lost ones among them were sent, in the same order.
    recent_losses: VecDeque<Instant>,
    bins: Bins,
    decayed_at: Option<Instant>,
}

impl LossCorrelation {
    /// Nothing is known yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A packet's fate is known. O(packets kept) if it is lost, else O(lost packets kept).
    pub fn on_outcome(&mut self, outcome: &PacketOutcome) {
        let sent_at = outcome.sent_at;
        let lost = match outcome.fate {
            PacketFate::Spurious => return,
            PacketFate::Lost => true,
            PacketFate::Acked => false,
        };
        // The earlier packet of a pair is a lost one.
        if lost {
            for &(other_at, other_lost) in &self.recent {
                if other_at > sent_at {
                    self.bins
                        .count(other_at.saturating_since(sent_at), other_lost);
                } else if other_lost {
                    self.bins.count(sent_at.saturating_since(other_at), true);
                }
            }
        } else {
            for &lost_at in self.recent_losses.iter().filter(|at| **at <= sent_at) {
                self.bins.count(sent_at.saturating_since(lost_at), false);
            }
        }
        if self.recent.len() == REACH
            && let Some((_, true)) = self.recent.pop_front()
        {
            self.recent_losses.pop_front();
        }
        if lost {
            self.recent_losses.push_back(sent_at);
        }
        self.recent.push_back((sent_at, lost));
    }

    /// Lets old samples fade; call now and then.
    pub fn decay(&mut self, now: Instant) {
        let since = self.decayed_at.replace(now);
        let Some(elapsed) = since.map(|since| now.saturating_since(since)) else {
            return;
        };
        let keep = libm::exp(-elapsed.as_secs_f64() / MEMORY.as_secs_f64());
        for bin in &mut self.bins.0 {
            bin.pairs *= keep;
            bin.both_lost *= keep;
        }
    }

    /// The curve as it looks now, for a path that loses `loss_rate` of its packets.
    pub fn curve(&self, loss_rate: f64) -> ConditionalLoss {
        let mut at = [0.0; BINS];
        let mut weights = [0.0; BINS];
        for (nth, bin) in self.bins.0.iter().enumerate() {
            let lag = MIDDLES[nth].as_secs_f64();
            let fade = libm::exp(-lag / PRIOR_FADE.as_secs_f64());
            let assumed = loss_rate + (1.0 - loss_rate) * PRIOR_EXCESS * fade;
            weights[nth] = bin.pairs + PRIOR_WEIGHT;
            at[nth] = (bin.both_lost + PRIOR_WEIGHT * assumed) / weights[nth];
        }
        fall(&mut at, &weights);
        ConditionalLoss { at, loss_rate }
    }
}

/// Makes the curve fall, as far as noise let it rise: neighbours that rise are replaced by their
/// mean (pool adjacent violators).
fn fall(at: &mut [f64; BINS], weights: &[f64; BINS]) {
    // Blocks of equal value: mean, weight, bins.
    let mut blocks = [(0.0, 0.0, 0); BINS];
    let mut used = 0;
    for (&value, &weight) in at.iter().zip(weights) {
        blocks[used] = (value, weight, 1);
        used += 1;
        while let [.., (before, _, _), (last, _, _)] = blocks[..used]
            && before < last
        {
            let (value, weight, count) = blocks[used - 1];
            used -= 1;
            let block = &mut blocks[used - 1];
            let sum = block.1 + weight;
            *block = (
                (block.0 * block.1 + value * weight) / sum,
                sum,
                block.2 + count,
            );
        }
    }
    let values = blocks[..used]
        .iter()
        .flat_map(|&(value, _, count)| std::iter::repeat_n(value, count));
    for (slot, value) in at.iter_mut().zip(values) {
        *slot = value;
    }
}

/// End of the last bin, milliseconds.
const LAST_EDGE: usize = EDGES[BINS - 1] as usize;

/// The bin of each whole number of milliseconds.
const BIN_OF: [u8; LAST_EDGE] = {
    let mut bins = [0; LAST_EDGE];
    let (mut millis, mut bin) = (0, 0);
    while millis < LAST_EDGE {
        if millis as u64 == EDGES[bin as usize] {
            bin += 1;
        }
        bins[millis] = bin;
        millis += 1;
    }
    bins
};

fn bin_of(lag: Duration) -> Option<usize> {
    // All bins end within a second.
    if lag.as_secs() > 0 {
        return None;
    }
    BIN_OF
        .get(lag.subsec_millis() as usize)
        .map(|&bin| usize::from(bin))
}

/// The middles of the bins.
const MIDDLES: [Duration; BINS] = {
    let mut middles = [Duration::ZERO; BINS];
    let (mut bin, mut start) = (0, 0);
    while bin < BINS {
        middles[bin] = Duration::from_micros(500 * (start + EDGES[bin]));
        start = EDGES[bin];
        bin += 1;
    }
    middles
};

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
        let (from, to) = if lag < MIDDLES[bin] {
            (bin.saturating_sub(1), bin)
        } else {
            (bin, (bin + 1).min(BINS - 1))
        };
        let (start, end) = (MIDDLES[from], MIDDLES[to]);
        if start >= end {
            return self.at[bin];
        }
        let whole = end.saturating_sub(start).as_secs_f64();
        let way = lag.saturating_sub(start).as_secs_f64() / whole;
        self.at[from] + (self.at[to] - self.at[from]) * way.min(1.0)
    }

    /// Lags worth trying: the middle and the end of each bin.
    pub(crate) fn lags() -> impl Iterator<Item = Duration> {
        (0..BINS).flat_map(|bin| [MIDDLES[bin], Duration::from_millis(EDGES[bin])])
    }
}
