//! HyStart as first published (Ha and Rhee, "Taming the elephants: new TCP slow start", 2011), which
//! Linux and the simulator ns-3 have: slow start ends at once when the ACKs of a round arrive closely
//! spaced for a round-trip time, because the window then fills the path, or when the delay has risen.
//!
//! There is no conservative slow start as in [`HyStart++`](crate::HyStartConfig) that could be left
//! again.

use std::time::Duration;

use swiftwater_units::{ByteCount, Instant};

use crate::controller::Env;
use crate::growth::SlowStartStep;
use crate::sample::AckBatch;

/// Constants of the older HyStart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassicHyStartConfig {
    /// Window from which on rounds are judged, packets. Linux and ns-3: 16.
    pub low_window: u64,
    /// First samples of a round whose least delay is judged. Linux and ns-3: 8.
    pub samples: u32,
    /// Longest time between two ACKs of a train. Linux and ns-3: 2 ms.
    pub ack_delta: Duration,
    /// Share of the path's lowest delay that counts as a rise, as its inverse, 1 or more. Linux: 8; ns-3: 1.
    pub delay_divisor: u32,
    /// Smallest rise that counts. Linux and ns-3: 4 ms.
    pub delay_min: Duration,
    /// Largest rise that is needed. Linux: 16 ms; ns-3: 1 s.
    pub delay_max: Duration,
}

impl ClassicHyStartConfig {
    /// The constants of Linux for a paced sender (`net/ipv4/tcp_cubic.c`): a rise by an eighth of the
    /// lowest delay.
    pub const fn linux() -> Self {
        Self {
            low_window: 16,
            samples: 8,
            ack_delta: Duration::from_millis(2),
            delay_divisor: 8,
            delay_min: Duration::from_millis(4),
            delay_max: Duration::from_millis(16),
        }
    }

    /// The constants of ns-3 (`tcp-cubic.cc`), whose delay has to rise by the lowest delay itself.
    pub const fn ns3() -> Self {
        Self {
            delay_divisor: 1,
            delay_max: Duration::from_secs(1),
            ..Self::linux()
        }
    }

    /// Rise over the delay `base` that ends slow start.
    fn rise(&self, base: Duration) -> Duration {
        let share = base / self.delay_divisor.max(1);
        share.min(self.delay_max).max(self.delay_min)
    }
}

/// What was seen of the running round.
#[derive(Clone, Copy, Debug, PartialEq)]
struct RoundSeen {
    count: u64,
    began: Instant,
    /// The last ACK of the train.
    train: Instant,
    /// Least delay of the first samples.
    min_rtt: Option<Duration>,
    samples: u32,
}

/// The older HyStart for one slow start.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassicHyStart {
    config: Box<ClassicHyStartConfig>,
    round: Option<RoundSeen>,
}

impl ClassicHyStart {
    /// HyStart at the beginning of slow start.
    pub fn new(config: ClassicHyStartConfig) -> Self {
        Self {
            config: Box::new(config),
            round: None,
        }
    }

    /// Takes in an ACK of a flow that uses its window `cwnd`.
    pub fn on_ack(&mut self, cwnd: ByteCount, ack: &AckBatch, env: &Env<'_>) -> SlowStartStep {
        let begun = RoundSeen {
            count: ack.round.count,
            began: ack.now,
            train: ack.now,
            min_rtt: None,
            samples: 0,
        };
        let round = match &mut self.round {
            Some(round) if round.count == ack.round.count => round,
            round => round.insert(begun),
        };
        let low_window = env.max_datagram_size.times(self.config.low_window);
        if cwnd >= low_window && ack.rtt.has_sample && round.ends(&self.config, ack) {
            return SlowStartStep::Exit(cwnd);
        }
        SlowStartStep::Grow(ack.acked_bytes)
    }
}

impl RoundSeen {
    /// Judges one more ACK; true if it ends slow start.
    fn ends(&mut self, config: &ClassicHyStartConfig, ack: &AckBatch) -> bool {
        self.is_long_train(config, ack) || self.has_risen(config, ack)
    }

    /// True once ACKs have followed each other closely for the path's lowest delay.
    fn is_long_train(&mut self, config: &ClassicHyStartConfig, ack: &AckBatch) -> bool {
        if ack.now.saturating_since(self.train) > config.ack_delta {
            return false;
        }
        self.train = ack.now;
        ack.now.saturating_since(self.began) > ack.rtt.min
    }

    /// True if the first samples all had to wait.
    fn has_risen(&mut self, config: &ClassicHyStartConfig, ack: &AckBatch) -> bool {
        if self.samples < config.samples {
            let least = self.min_rtt.unwrap_or(ack.rtt.latest);
            self.min_rtt = Some(least.min(ack.rtt.latest));
            self.samples = self.samples.saturating_add(1);
            return false;
        }
        let base = ack.rtt.min;
        self.min_rtt
            .is_some_and(|least| least > base.saturating_add(config.rise(base)))
    }
}
