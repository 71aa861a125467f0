//! The long-term bandwidth: the rate that a token-bucket policer leaves.
//!
//! A policer lets a burst pass and then drops what exceeds its rate, without any queue. The
//! bandwidth filter contains the burst; so two intervals of heavy loss and about equal
//! throughput replace it by their mean for a while.

use swiftwater_units::{Bandwidth, ByteCount, Instant};

use crate::bbr::gain::Gain;

/// Rounds that an interval takes at least, and four times that at most.
const MIN_ROUNDS: u32 = 4;
const MAX_ROUNDS: u32 = 4 * MIN_ROUNDS;
/// Share of what was delivered that must be lost as well.
const LOSS: Gain = Gain::new(0.2);
/// How far two intervals may differ, in proportion or by a rate, to count as the same.
const RATIO: Gain = Gain::new(0.125);
const DIFFERENCE: Bandwidth = Bandwidth::from_bps(4_000);
/// Rounds for which the estimate is used.
const USE_ROUNDS: u32 = 48;

/// What an ACK shows of a policer.
#[derive(Clone, Copy, Debug)]
pub(super) struct PolicerView {
    pub(super) now: Instant,
    /// Totals of the path.
    pub(super) delivered: ByteCount,
    pub(super) lost: ByteCount,
    /// True if packets were lost since the last ACK.
    pub(super) has_losses: bool,
    pub(super) is_app_limited: bool,
    pub(super) round_start: bool,
    pub(super) in_probe_bw: bool,
}

/// What became of the estimate.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum PolicerStep {
    Nothing,
    /// The estimate no longer counts: the caller probes again.
    Released,
}

/// Start of a sampling interval.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Interval {
    from: Instant,
    delivered: ByteCount,
    lost: ByteCount,
    rounds: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Policer {
    is_enabled: bool,
    /// `None` until the first loss: what passes before it is the burst.
    interval: Option<Interval>,
    /// Rate of the interval before.
    previous: Option<Bandwidth>,
    /// The estimate and the rounds it has been used for.
    in_use: Option<(Bandwidth, u32)>,
}

impl Policer {
    pub(super) fn new(is_enabled: bool) -> Self {
        Self {
            is_enabled,
            interval: None,
            previous: None,
            in_use: None,
        }
    }

    /// The policed rate, while there seems to be one.
    pub(super) fn rate(&self) -> Option<Bandwidth> {
        self.in_use.map(|(rate, _)| rate)
    }

    pub(super) fn reset(&mut self) {
        *self = Self::new(self.is_enabled);
    }

    pub(super) fn on_ack(&mut self, view: &PolicerView) -> PolicerStep {
        if !self.is_enabled {
            return PolicerStep::Nothing;
        }
        if let Some((_, rounds)) = &mut self.in_use {
            *rounds += u32::from(view.in_probe_bw && view.round_start);
            if *rounds < USE_ROUNDS {
                return PolicerStep::Nothing;
            }
            self.reset();
            return PolicerStep::Released;
        }
        if view.is_app_limited {
            // The rate would be the application's.
            self.reset();
            return PolicerStep::Nothing;
        }
        if let Some(rate) = self.sample(view) {
            self.on_interval(view, rate);
        }
        PolicerStep::Nothing
    }

    /// The rate of the running interval, if it ends with this ACK.
    fn sample(&mut self, view: &PolicerView) -> Option<Bandwidth> {
        if self.interval.is_none() && view.has_losses {
            self.interval = Some(begin(view));
        }
        let interval = self.interval.as_mut()?;
        interval.rounds += u32::from(view.round_start);
        let interval = *interval;
        if interval.rounds > MAX_ROUNDS {
            self.reset();
            return None;
        }
        // It ends at a loss, when the bucket is empty.
        if interval.rounds < MIN_ROUNDS || !view.has_losses {
            return None;
        }
        let delivered = view.delivered - interval.delivered;
        let lost = view.lost - interval.lost;
        let time = view.now.saturating_since(interval.from);
        if delivered.is_zero() || lost < LOSS.of_bytes(delivered) || time.as_millis() < 1 {
            return None;
        }
        Some(Bandwidth::from_transfer(delivered.get(), time))
    }

    fn on_interval(&mut self, view: &PolicerView, rate: Bandwidth) {
        if let Some(previous) = self.previous {
            let difference = Bandwidth::from_bps(rate.as_bps().abs_diff(previous.as_bps()));
            if difference <= RATIO.of_rate(previous) || difference <= DIFFERENCE {
                let mean = rate.as_bps() / 2 + previous.as_bps() / 2;
                self.in_use = Some((Bandwidth::from_bps(mean), 0));
                return;
            }
        }
        self.previous = Some(rate);
        self.interval = Some(begin(view));
    }
}

fn begin(view: &PolicerView) -> Interval {
    Interval {
        from: view.now,
        delivered: view.delivered,
        lost: view.lost,
        rounds: 0,
    }
}
