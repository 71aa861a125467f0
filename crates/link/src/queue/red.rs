//! RED, random early detection (Floyd and Jacobson 1993), with gentle mode (Floyd 2000).

use std::fmt;

use swiftwater_units::{ByteCount, Instant, PacketCount};

use super::buffer::Limit;
use super::discipline::{QueueConfigError, check_range};
use crate::random::{Purpose, Stream};

/// A queue length for [`RedConfig`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RedThreshold {
    /// A number of bytes.
    Bytes(ByteCount),
    /// A number of packets of [`RedConfig::packet`] bytes.
    Packets(PacketCount),
    /// This share of the buffer, above 0; needs a buffer with a limit.
    Share(f64),
}

impl fmt::Display for RedThreshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{}B", bytes.get()),
            Self::Packets(packets) => write!(f, "{}p", packets.get()),
            // With a decimal point, otherwise it would be parsed as bytes.
            Self::Share(share) if share.fract() == 0.0 => write!(f, "{share:.1}"),
            Self::Share(share) => write!(f, "{share}"),
        }
    }
}

/// Parameters of RED. The average queue length is in bytes, the packet in service included; the
/// drop probability of a packet doesn't depend on its size (RFC 7141, section 2.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedConfig {
    /// Nothing is dropped while the average is below this. Default: a sixth of the buffer, so that
    /// `max` is three times `min` (Floyd 1997) and the gentle range ends at the buffer's limit.
    pub min: RedThreshold,
    /// At this average the probability is `max_probability`; above `min`. Default: half the buffer.
    pub max: RedThreshold,
    /// Probability p of a drop or mark at `max`, above 0, at most 1; since gaps between drops are
    /// uniform from 1 to 1/p packets, `2p / (1 + p)` of packets are affected. Default: 0.1 (Floyd
    /// 1997).
    pub max_probability: f64,
    /// Weight of a new sample in the average, above 0, at most 1. Default: 0.002 (Floyd and
    /// Jacobson 1993, section 6).
    pub weight: f64,
    /// Between `max` and twice `max` the probability rises to 1, instead of jumping to it at `max`.
    /// Default: true.
    pub gentle: bool,
    /// Mark ECN-capable packets instead of dropping them, as long as the probability is below 1
    /// (RFC 3168, section 7). Default: true.
    pub ecn: bool,
    /// Size of a typical packet, above zero: while the queue is idle the average decreases as if
    /// such packets had found it empty. Default: 1500 bytes.
    pub packet: ByteCount,
}

impl Default for RedConfig {
    fn default() -> Self {
        Self {
            min: RedThreshold::Share(1.0 / 6.0),
            max: RedThreshold::Share(0.5),
            max_probability: 0.1,
            weight: 0.002,
            gentle: true,
            ecn: true,
            packet: ByteCount::new(1_500),
        }
    }
}

impl RedConfig {
    pub(crate) fn validate(&self) -> Result<(), QueueConfigError> {
        const NAME: &str = "red";
        for (parameter, value) in [("p", self.max_probability), ("weight", self.weight)] {
            let in_range = value > 0.0 && value <= 1.0;
            check_range(NAME, parameter, value, in_range, "above 0 and at most 1")?;
        }
        for (parameter, threshold) in [("min", self.min), ("max", self.max)] {
            if let RedThreshold::Share(share) = threshold {
                let in_range = share > 0.0 && share <= 1e6;
                check_range(NAME, parameter, share, in_range, "a share above 0")?;
            }
        }
        let packet = self.packet.get();
        let in_range = (1..=1 << 24).contains(&packet);
        check_range(
            NAME,
            "packet",
            packet as f64,
            in_range,
            "1 to 16777216 bytes",
        )
    }

    /// The thresholds in bytes.
    pub(crate) fn thresholds(&self, limit: Limit) -> Result<(f64, f64), QueueConfigError> {
        let packet = self.packet.get() as f64;
        let buffer = if limit.bytes < u64::MAX {
            Some(limit.bytes as f64)
        } else {
            (limit.packets < u64::MAX).then_some(limit.packets as f64 * packet)
        };
        let bytes = |threshold| match threshold {
            RedThreshold::Bytes(bytes) => Ok(bytes.get() as f64),
            RedThreshold::Packets(packets) => Ok(packets.get() as f64 * packet),
            RedThreshold::Share(share) => buffer
                .map(|buffer| buffer * share)
                .ok_or(QueueConfigError::RedShareOfUnlimited),
        };
        let (min, max) = (bytes(self.min)?, bytes(self.max)?);
        if max <= min {
            return Err(QueueConfigError::RedThresholds {
                min: ByteCount::new(min as u64),
                max: ByteCount::new(max as u64),
            });
        }
        Ok((min, max))
    }
}

/// RED's decision for an arriving packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    /// Accept it.
    Accept,
    /// Mark it, or drop it.
    Congested,
    /// Drop it.
    Drop,
}

/// The average and the decision.
#[derive(Debug)]
pub(crate) struct Red {
    min: f64,
    max: f64,
    max_probability: f64,
    weight: f64,
    gentle: bool,
    ecn: bool,
    /// Transmission time of a typical packet, in nanoseconds; zero on a link without a rate.
    packet_time: f64,
    average: f64,
    /// Packets accepted since the last drop or mark.
    count: u64,
    stream: Stream,
}

impl Red {
    /// `thresholds` from [`RedConfig::thresholds`], `rate` in bit/s if there is one.
    pub(crate) fn new(
        config: &RedConfig,
        thresholds: (f64, f64),
        rate: Option<u64>,
        seed: u64,
    ) -> Self {
        let bits = config.packet.get() as f64 * 8.0;
        Self {
            min: thresholds.0,
            max: thresholds.1,
            max_probability: config.max_probability,
            weight: config.weight,
            gentle: config.gentle,
            ecn: config.ecn,
            packet_time: rate.map_or(0.0, |bps| bits * 1e9 / bps.max(1) as f64),
            average: 0.0,
            count: 0,
            stream: Stream::new(seed, Purpose::Red),
        }
    }

    /// A packet arrives and finds `queue` bytes, or a queue that has been idle since the given
    /// time.
    pub(crate) fn on_arrival(
        &mut self,
        now: Instant,
        queue: u64,
        idle: Option<Instant>,
    ) -> Verdict {
        match idle {
            None => self.average += self.weight * (queue as f64 - self.average),
            Some(since) => self.rest(now.saturating_since(since).as_nanos() as f64),
        }
        let probability = self.probability();
        if probability <= 0.0 {
            self.count = 0;
            return Verdict::Accept;
        }
        if probability >= 1.0 {
            self.count = 0;
            return Verdict::Drop;
        }
        // Gaps between drops are uniform from 1 to 1/p packets (section 4 of the paper).
        let rest = 1.0 - self.count as f64 * probability;
        let chance = if rest > probability {
            probability / rest
        } else {
            1.0
        };
        if self.stream.unit() < chance {
            self.count = 0;
            return Verdict::Congested;
        }
        self.count += 1;
        Verdict::Accept
    }

    /// The average after this many nanoseconds with an empty queue.
    fn rest(&mut self, nanos: f64) {
        if self.packet_time <= 0.0 {
            self.average = 0.0;
            return;
        }
        let mut packets = (nanos / self.packet_time) as u64;
        let mut factor = 1.0 - self.weight;
        // By squaring: the last bit of `powi` depends on the platform.
        while packets > 0 {
            if packets & 1 == 1 {
                self.average *= factor;
            }
            factor *= factor;
            packets >>= 1;
        }
    }

    /// The base probability before spreading.
    fn probability(&self) -> f64 {
        if self.average < self.min {
            return 0.0;
        }
        if self.average < self.max {
            let share = (self.average - self.min) / (self.max - self.min);
            return self.max_probability * share;
        }
        if !self.gentle {
            return 1.0;
        }
        let share = (self.average - self.max) / self.max;
        (self.max_probability + (1.0 - self.max_probability) * share).min(1.0)
    }

    /// Whether ECN-capable packets are marked instead of dropped.
    pub(crate) fn marks(&self) -> bool {
        self.ecn
    }

    /// Average and probability now.
    pub(crate) fn state(&self) -> (f64, f64) {
        (self.average, self.probability())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T0: Instant = Instant::ZERO;

    /// Thresholds of 10 and 30 kB; 1500 bytes take a millisecond.
    fn red(config: &RedConfig) -> Red {
        Red::new(config, (10_000.0, 30_000.0), Some(12_000_000), 1)
    }

    #[test]
    fn the_average_is_exponentially_weighted() {
        let mut red = red(&RedConfig::default());
        for _ in 0..1_000 {
            red.on_arrival(T0, 9_000, None);
        }
        let expected = 9_000.0 * (1.0 - 0.998_f64.powi(1_000));
        assert!((red.average - expected).abs() < 1e-6, "{}", red.average);
        // 200 ms of idleness are as good as 200 packets that found it empty.
        red.on_arrival(Instant::from_millis(200), 0, Some(T0));
        let expected = expected * 0.998_f64.powi(200);
        assert!((red.average - expected).abs() < 1e-6, "{}", red.average);
    }

    #[test]
    fn the_share_of_drops_follows_the_average() {
        let config = RedConfig {
            weight: 1.0,
            ..RedConfig::default()
        };
        for (queue, expected) in [
            (9_999, 0.0),
            (20_000, 0.05),
            (30_000, 0.1),
            (43_333, 0.5),
            (60_000, 1.0),
        ] {
            let mut red = red(&config);
            let drops = (0..20_000)
                .filter(|_| red.on_arrival(T0, queue, None) != Verdict::Accept)
                .count();
            // Gaps uniform from 1 to 1/p packets make it 2p / (1 + p).
            let expected = 2.0 * expected / (1.0 + expected);
            let share = drops as f64 / 20_000.0;
            assert!((share - expected).abs() < 0.01, "{queue}: {share}");
        }
    }

    #[test]
    fn without_gentle_mode_all_is_dropped_from_the_maximum_on() {
        let config = RedConfig {
            weight: 1.0,
            gentle: false,
            ..RedConfig::default()
        };
        let mut red = red(&config);
        assert!((0..100).all(|_| red.on_arrival(T0, 30_000, None) == Verdict::Drop));
    }
}
