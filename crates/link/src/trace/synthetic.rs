//! Synthetic traces, for tests and demonstrations without measured data.
//!
//! Each is a chain of radio conditions from best to worst. In each step the link may change to an
//! adjacent condition. Within a condition the logarithm of the rate is a first-order autoregressive
//! process, so rates are log-normal and change smoothly. The numbers have the order of magnitude of
//! public measurements; they are not fitted to any.
//!
//! Only basic arithmetic and the square root are used, whose results IEEE 754 defines: a seed gives
//! the same trace everywhere.

use std::time::Duration;

use super::{Columns, Data, Held, Trace, nanos};
use crate::random::{Purpose, Stream};

/// Limit of the length, which would only cost memory.
const MAX_SYNTHETIC: Duration = Duration::from_secs(60 * 60);

/// One radio condition.
struct Condition {
    /// Mean rate, Mbit/s.
    mbps: f64,
    /// Standard deviation of the natural logarithm of the rate.
    spread: f64,
    /// Probability of leaving it, per step.
    leave: f64,
    /// When leaving: probability of changing to the better condition, if there are two.
    better: f64,
    /// Least round-trip time and random addition, ms.
    rtt: (f64, f64),
    /// Share of packets lost.
    loss: f64,
}

struct Model {
    step: Duration,
    /// Correlation of the rate's deviation between steps, 0 to 1.
    persistence: f64,
    conditions: &'static [Condition],
}

/// Steps of 100 ms: about 12 s of good reception, 8 s of fair, 3 s of a fade, 0.5 s of nothing.
const LTE: Model = Model {
    step: Duration::from_millis(100),
    persistence: 0.9,
    conditions: &[
        condition(23.0, 0.35, 1.0 / 120.0, 0.0, (38.0, 6.0), 0.0),
        condition(11.0, 0.45, 1.0 / 80.0, 0.5, (42.0, 12.0), 0.0),
        condition(3.0, 0.7, 1.0 / 30.0, 0.8, (50.0, 40.0), 0.0),
        condition(0.0, 0.0, 1.0 / 5.0, 1.0, (80.0, 60.0), 0.0),
    ],
};

/// Steps of 20 ms: a clear channel, a shared one, a contended one, a deep fade.
const WIFI: Model = Model {
    step: Duration::from_millis(20),
    persistence: 0.8,
    conditions: &[
        condition(40.0, 0.25, 1.0 / 250.0, 0.0, (4.0, 3.0), 0.001),
        condition(22.0, 0.4, 1.0 / 100.0, 0.6, (6.0, 10.0), 0.01),
        condition(6.0, 0.6, 1.0 / 25.0, 0.7, (10.0, 30.0), 0.05),
        condition(0.5, 0.5, 1.0 / 10.0, 1.0, (30.0, 60.0), 0.25),
    ],
};

/// Steps of 20 ms between hand-overs.
const LEO: Model = Model {
    step: Duration::from_millis(20),
    persistence: 0.95,
    conditions: &[condition(60.0, 0.3, 0.0, 0.0, (26.0, 4.0), 0.001)],
};

/// Interval at which a low-orbit constellation reassigns satellites.
const LEO_SLOT: Duration = Duration::from_secs(15);

const fn condition(
    mbps: f64,
    spread: f64,
    leave: f64,
    better: f64,
    rtt: (f64, f64),
    loss: f64,
) -> Condition {
    Condition {
        mbps,
        spread,
        leave,
        better,
        rtt,
        loss,
    }
}

impl Trace {
    /// A cellular (LTE-like) downlink: 100 ms steps, about 15 Mbit/s on average and mostly between 2 and 35
    /// Mbit/s, fades of some seconds, occasionally half a second of outage; round-trip times of 40 to 140 ms;
    /// no loss. At most an hour; the same seed gives the same trace.
    pub fn synthetic_lte(seed: u64, duration: Duration) -> Self {
        LTE.generate(seed, duration, |_, _| {})
    }

    /// A Wi-Fi network with contention: 20 ms steps, about 30 Mbit/s on average, short fades with
    /// rates below 1 Mbit/s and heavy loss, loss of about one percent overall. At most an hour; the
    /// same seed gives the same trace.
    pub fn synthetic_wifi(seed: u64, duration: Duration) -> Self {
        WIFI.generate(seed, duration, |_, _| {})
    }

    /// A low-orbit satellite network: 20 ms steps, about 60 Mbit/s on average; every 15 s a
    /// hand-over brings 60 ms of outage, another level of rate (0.5 to 1.5 times) and another
    /// round-trip time (up to 20 ms more); 0.1 % loss. At most an hour; the same seed gives the
    /// same trace.
    pub fn synthetic_leo(seed: u64, duration: Duration) -> Self {
        let (mut level, mut extra) = (1.0, 0.0);
        LEO.generate(seed, duration, |held, stream| {
            let in_slot = held.at % nanos(LEO_SLOT);
            if in_slot == 0 {
                level = 0.5 + stream.unit();
                extra = 20e6 * stream.unit();
            }
            let outage = in_slot < 60_000_000 && held.at > 0;
            let factor = if outage { 0.0 } else { level };
            held.bps = (held.bps as f64 * factor) as u64;
            held.rtt += extra as u64;
        })
    }
}

impl Model {
    /// Runs the chain for `duration`, at least one step; `adjust` may change each sample.
    fn generate(
        &self,
        seed: u64,
        duration: Duration,
        mut adjust: impl FnMut(&mut Held, &mut Stream),
    ) -> Trace {
        let mut stream = Stream::new(seed, Purpose::SyntheticTrace);
        let step = nanos(self.step);
        let count = (nanos(duration.min(MAX_SYNTHETIC)) / step).max(1);
        let innovation = (1.0 - self.persistence * self.persistence).sqrt();
        let (mut index, mut deviation) = (0, stream.normal());
        let samples = (0..count).map(|number| {
            let condition = &self.conditions[index];
            let mut held = condition.sample(number * step, deviation, &mut stream);
            adjust(&mut held, &mut stream);
            deviation = self.persistence * deviation + innovation * stream.normal();
            index = self.next_condition(index, &mut stream);
            held
        });
        let columns = Columns {
            rate: true,
            rtt: true,
            loss: true,
        };
        let data = Data::Samples {
            samples: samples.collect(),
            columns,
        };
        Trace {
            data,
            period: count * step,
        }
    }

    fn next_condition(&self, index: usize, stream: &mut Stream) -> usize {
        let leave = stream.unit() < self.conditions[index].leave;
        let better = stream.unit() < self.conditions[index].better;
        let last = self.conditions.len() - 1;
        match (leave, better) {
            (false, _) => index,
            (true, true) => index.saturating_sub(1),
            (true, false) => (index + 1).min(last),
        }
    }
}

impl Condition {
    fn sample(&self, at: u64, deviation: f64, stream: &mut Stream) -> Held {
        // The second term keeps the mean at `mbps`.
        let log = self.spread * deviation - self.spread * self.spread / 2.0;
        // Integer kbit/s, as in files.
        let kbps = (self.mbps * 1e3 * exp(log)).round() as u64;
        let (least, addition) = self.rtt;
        let rtt = (least + addition * stream.unit()) * 1e6;
        Held {
            at,
            bps: kbps * 1_000,
            rtt: rtt as u64,
            loss: self.loss,
        }
    }
}

/// The exponential function for small arguments (up to about 10), to twelve digits or so: that of
/// the platform may differ in the last bit.
fn exp(x: f64) -> f64 {
    let r = x / 1024.0;
    let mut power = 1.0 + r * (1.0 + r / 2.0 * (1.0 + r / 3.0 * (1.0 + r / 4.0)));
    for _ in 0..10 {
        power *= power;
    }
    power
}
