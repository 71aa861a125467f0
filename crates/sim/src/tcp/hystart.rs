//! HyStart as in Linux (Ha and Rhee, "Taming the elephants: new TCP slow start", 2011): slow start ends
//! when the acknowledgements of a round follow each other closely for half the least round trip, or
//! when the delay has risen by an eighth.

use std::time::Duration;

use swiftwater_units::Instant;

/// Window from which on rounds are judged, packets.
const LOW_WINDOW: u64 = 16;
/// Longest time between two acknowledgements of a train.
const TRAIN_GAP: Duration = Duration::from_millis(2);
/// Samples of a round whose least delay is judged.
const SAMPLES: u32 = 8;
/// Bounds of the rise in delay that ends slow start.
const LEAST_RISE: Duration = Duration::from_millis(4);
const GREATEST_RISE: Duration = Duration::from_millis(16);

/// HyStart of one connection.
#[derive(Clone, Debug, Default)]
pub struct HyStart {
    min_rtt: Option<Duration>,
    found: bool,
    round_began: Option<Instant>,
    round_end: u64,
    train_at: Option<Instant>,
    round_rtt: Option<Duration>,
    samples: u32,
}

impl HyStart {
    /// Nothing was measured.
    pub fn new() -> Self {
        Self::default()
    }

    /// The least round trip that it has seen.
    pub fn min_rtt(&self) -> Duration {
        self.min_rtt.unwrap_or_default()
    }

    /// Takes a round trip, outside slow start too. Within it, returns true if it ends: `window` in
    /// packets, `acked` and `sent` are the ends of what is acknowledged and sent; `train_slack` is what
    /// pacing may add to a train ([`train_slack`]).
    pub fn on_rtt(
        &mut self,
        now: Instant,
        rtt: Duration,
        slow_start: Option<SlowStartView>,
    ) -> bool {
        let rtt = rtt.max(Duration::from_micros(1));
        let least = self.min_rtt.map_or(rtt, |least| least.min(rtt));
        self.min_rtt = Some(least);
        let Some(view) = slow_start.filter(|_| !self.found) else {
            return false;
        };
        if view.acked > self.round_end || self.round_began.is_none() {
            self.begin_round(now, view.sent);
        }
        if view.window < LOW_WINDOW {
            return false;
        }
        if self
            .train_at
            .is_some_and(|at| now.saturating_since(at) <= TRAIN_GAP)
        {
            self.train_at = Some(now);
            let length = self.round_began.map(|began| now.saturating_since(began));
            self.found = length.is_some_and(|length| length > (least + view.train_slack) / 2);
        }
        let round_rtt = self.round_rtt.map_or(rtt, |round| round.min(rtt));
        self.round_rtt = Some(round_rtt);
        if self.samples < SAMPLES {
            self.samples += 1;
        } else {
            let rise = (least / 8).clamp(LEAST_RISE, GREATEST_RISE);
            self.found |= round_rtt > least + rise;
        }
        self.found
    }

    /// A timeout: slow start begins again.
    pub fn reset(&mut self, now: Instant, sent: u64) {
        self.found = false;
        self.min_rtt = None;
        self.begin_round(now, sent);
    }

    /// The connection begins to send.
    pub fn begin_round(&mut self, now: Instant, sent: u64) {
        self.round_began = Some(now);
        self.train_at = Some(now);
        self.round_end = sent;
        self.round_rtt = None;
        self.samples = 0;
    }
}

/// The sender in slow start.
#[derive(Clone, Copy, Debug)]
pub struct SlowStartView {
    /// Congestion window, packets.
    pub window: u64,
    /// End of what is acknowledged.
    pub acked: u64,
    /// End of what is sent.
    pub sent: u64,
    /// Time that the kernel allows a train in addition, for packets that were sent together.
    pub train_slack: Duration,
}

/// Time that four segments of 64 KiB take at the rate at which the window is sent in slow start, at
/// most 1 ms: acknowledgements of packets sent together need not arrive at the rate of the path.
pub fn train_slack(window: u64, smoothed_rtt: Duration, packet: u64) -> Duration {
    let rate = 2.0 * (window * packet) as f64 / smoothed_rtt.as_secs_f64().max(1e-6);
    let seconds = 4.0 * 65_536.0 / rate.max(1.0);
    Duration::from_secs_f64(seconds.min(0.001))
}
