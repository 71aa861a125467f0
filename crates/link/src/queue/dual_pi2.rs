//! DualPI2: a queue for L4S traffic and one for classic traffic with coupled congestion signals
//! (RFC 9332).

use std::time::Duration;

use swiftwater_units::{ByteCount, Instant, PacketCount};

use super::backlog::{Backlog, Waiting};
use super::delay::DelayRecorder;
use super::discipline::{QueueConfigError, check_duration, check_range, check_time};
use super::state::{AqmState, DualPi2State, DualQueueState};
use crate::packet::Ecn;

/// Which of the two queues of DualPI2 is served when both have packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DualQueueScheduler {
    /// Weighted round robin by bytes in which the classic queue gets at least this share of the
    /// rate, above 0 and below 1; the L4S queue has priority otherwise.
    Weighted(f64),
    /// The packet that has waited longest, where this is added to the waiting time of L4S packets
    /// (RFC 9332, section 4.2.2, "time-shifted FIFO"); at most a day.
    TimeShifted(Duration),
}

/// Parameters of DualPI2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualPi2Config {
    /// Target delay of the classic queue; above zero, at most a day. Default: 15 ms (RFC 9332,
    /// appendix A.1).
    pub target: Duration,
    /// Interval of updates of the probability, 100 µs to 10 s. Default: 16 ms (RFC 9332, appendix
    /// A.1, rounded as in Linux).
    pub tupdate: Duration,
    /// Integral gain in Hz, per second of delay and update, 0.001 to 1000. Default: 0.16 (RFC 9332,
    /// appendix A.1, for round-trip times up to 100 ms).
    pub alpha: f64,
    /// Proportional gain in Hz, 0 to 1000. Default: 3.2 (RFC 9332, appendix A.1; 3.2 as in Linux).
    pub beta: f64,
    /// Coupling factor: L4S packets are marked with at least `k` times the root of the classic
    /// probability; 0.1 to 100. Default: 2 (RFC 9332, section 2.5.2.1).
    pub k: f64,
    /// Delay of the L4S queue at which half of its packets are marked independently of the classic
    /// queue; above zero, at most a day. Default: 1 ms (the middle of the ramp of RFC 9332,
    /// appendix A.1).
    pub l4s_threshold: Duration,
    /// Width of the ramp around `l4s_threshold` on which the share of marks rises from 0 to 1; at
    /// most twice the threshold, zero is a step. Default: 400 µs (RFC 9332, appendix A.1).
    pub l4s_range: Duration,
    /// With at most this many packets in the L4S queue, including the one at its head, only the
    /// coupled probability applies. Default: 1 (RFC 9332, appendix A.2).
    pub l4s_min: PacketCount,
    /// The scheduler of the two queues. Default: at least a tenth for the classic queue, as in
    /// Linux.
    pub scheduler: DualQueueScheduler,
}

impl Default for DualPi2Config {
    fn default() -> Self {
        Self {
            target: Duration::from_millis(15),
            tupdate: Duration::from_millis(16),
            alpha: 0.16,
            beta: 3.2,
            k: 2.0,
            l4s_threshold: Duration::from_millis(1),
            l4s_range: Duration::from_micros(400),
            l4s_min: PacketCount::new(1),
            scheduler: DualQueueScheduler::Weighted(0.1),
        }
    }
}

impl DualPi2Config {
    pub(crate) fn validate(&self) -> Result<(), QueueConfigError> {
        const NAME: &str = "dualpi2";
        check_time(NAME, "target", self.target)?;
        check_time(NAME, "l4s_threshold", self.l4s_threshold)?;
        let shortest = Duration::from_micros(100);
        let tupdate = (shortest..=Duration::from_secs(10)).contains(&self.tupdate);
        check_duration(NAME, "tupdate", self.tupdate, tupdate, "100us to 10s")?;
        let l4s_range = self.l4s_range <= self.l4s_threshold * 2;
        let range = "at most twice l4s_threshold";
        check_duration(NAME, "l4s_range", self.l4s_range, l4s_range, range)?;
        let alpha = (0.001..=1_000.0).contains(&self.alpha);
        check_range(NAME, "alpha", self.alpha, alpha, "0.001 to 1000")?;
        let beta = (0.0..=1_000.0).contains(&self.beta);
        check_range(NAME, "beta", self.beta, beta, "0 to 1000")?;
        let k = (0.1..=100.0).contains(&self.k);
        check_range(NAME, "k", self.k, k, "0.1 to 100")?;
        match self.scheduler {
            DualQueueScheduler::Weighted(share) => {
                let in_range = share > 0.0 && share < 1.0;
                check_range(
                    NAME,
                    "classic_share",
                    share,
                    in_range,
                    "above 0 and below 1",
                )
            }
            DualQueueScheduler::TimeShifted(shift) => check_time(NAME, "tshift", shift),
        }
    }
}

/// The PI controller that drives both queues (RFC 9332, appendix A.1, figure 6).
#[derive(Clone, Debug)]
struct Pi2 {
    target: f64,
    tupdate: Duration,
    alpha: f64,
    beta: f64,
    /// The base probability p'.
    base: f64,
    /// The delay at the last update, in seconds.
    previous: f64,
    next_update: Instant,
}

impl Pi2 {
    /// Performs the updates due by `now`, at their times. `waiting_since` is the arrival time of
    /// the oldest packet; no packet has arrived or departed since the last call.
    fn advance(&mut self, now: Instant, waiting_since: Option<Instant>) {
        while self.next_update <= now {
            let delay = waiting_since.map_or(0.0, |since| {
                self.next_update.saturating_since(since).as_secs_f64()
            });
            let change = self.alpha * (delay - self.target) + self.beta * (delay - self.previous);
            self.base = (self.base + change).clamp(0.0, 1.0);
            self.previous = delay;
            self.next_update += self.tupdate;
            if waiting_since.is_none() && self.base <= 0.0 && self.next_update <= now {
                // In equilibrium: further updates change nothing.
                let behind = now.saturating_since(self.next_update).as_nanos();
                let updates = behind / self.tupdate.as_nanos() + 1;
                let nanos = updates * self.tupdate.as_nanos();
                self.next_update += Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
            }
        }
    }
}

/// Selects a share of packets, evenly spaced rather than at random (RFC 9332, appendix A.1, figure
/// 5).
#[derive(Clone, Copy, Debug, Default)]
struct Decimator(f64);

impl Decimator {
    fn chooses(&mut self, share: f64) -> bool {
        self.0 += share;
        if self.0 > 1.0 {
            self.0 -= 1.0;
            return true;
        }
        false
    }
}

/// One of the two queues.
#[derive(Debug)]
struct Class<P> {
    backlog: Backlog<P>,
    signals: Decimator,
    sent: u64,
    marked: u64,
    dropped: u64,
    delays: DelayRecorder,
}

impl<P> Class<P> {
    fn new() -> Self {
        Self {
            backlog: Backlog::new(),
            signals: Decimator::default(),
            sent: 0,
            marked: 0,
            dropped: 0,
            delays: DelayRecorder::default(),
        }
    }

    fn send(&mut self, now: Instant, item: &Waiting<P>) {
        self.sent += 1;
        self.marked += u64::from(item.marked);
        self.delays.record(item.since, now);
    }

    fn drop(&mut self, item: Waiting<P>, dropped: &mut Vec<Waiting<P>>) {
        self.dropped += 1;
        dropped.push(item);
    }

    fn state(&self) -> DualQueueState {
        DualQueueState {
            bytes: ByteCount::new(self.backlog.bytes()),
            packets: PacketCount::new(self.backlog.len() as u64),
            sent: PacketCount::new(self.sent),
            marked: PacketCount::new(self.marked),
            dropped: PacketCount::new(self.dropped),
            delay: self.delays.stats(),
        }
    }
}

/// Both queues.
#[derive(Debug)]
pub(crate) struct DualPi2Queue<P> {
    config: DualPi2Config,
    pi2: Pi2,
    l4s: Class<P>,
    classic: Class<P>,
    /// Drops of L4S packets under overload.
    l4s_drops: Decimator,
    /// Weighted bytes by which the classic queue is behind its share.
    classic_credit: f64,
}

impl<P> DualPi2Queue<P> {
    pub(crate) fn new(config: &DualPi2Config, start: Instant) -> Self {
        Self {
            config: *config,
            pi2: Pi2 {
                target: config.target.as_secs_f64(),
                tupdate: config.tupdate,
                alpha: config.alpha,
                beta: config.beta,
                base: 0.0,
                previous: 0.0,
                next_update: start + config.tupdate,
            },
            l4s: Class::new(),
            classic: Class::new(),
            l4s_drops: Decimator::default(),
            classic_credit: 0.0,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.l4s.backlog.is_empty() && self.classic.backlog.is_empty()
    }

    /// Updates the controller. The greater delay of the two queues is used, so that the overload
    /// rules also apply to L4S traffic alone.
    fn advance(&mut self, now: Instant) {
        let heads = [
            self.l4s.backlog.head_since(),
            self.classic.backlog.head_since(),
        ];
        self.pi2.advance(now, heads.into_iter().flatten().min());
    }

    /// Adds a packet: ECT(1) and CE are for the L4S queue (RFC 9332, section 2.5.1.1).
    pub(crate) fn push(&mut self, now: Instant, item: Waiting<P>) {
        self.advance(now);
        match item.packet.ecn {
            Ecn::Ect1 | Ecn::Ce => self.l4s.backlog.push(item),
            Ecn::NotEct | Ecn::Ect0 => self.classic.backlog.push(item),
        }
    }

    /// RFC 9332, appendix A.2, figure 7.
    pub(crate) fn dequeue(
        &mut self,
        now: Instant,
        dropped: &mut Vec<Waiting<P>>,
    ) -> Option<Waiting<P>> {
        self.advance(now);
        loop {
            let item = if self.serves_l4s(now)? {
                self.next_l4s(now, dropped)
            } else {
                self.next_classic(now, dropped)
            };
            if item.is_some() {
                return item;
            }
        }
    }

    /// The queue to serve next; `None` if both are empty.
    fn serves_l4s(&mut self, now: Instant) -> Option<bool> {
        let (l4s, classic) = (&self.l4s.backlog, &self.classic.backlog);
        if l4s.is_empty() || classic.is_empty() {
            self.classic_credit = 0.0;
            return (l4s.is_empty() != classic.is_empty()).then(|| classic.is_empty());
        }
        Some(match self.config.scheduler {
            DualQueueScheduler::Weighted(_) => self.classic_credit <= 0.0,
            DualQueueScheduler::TimeShifted(shift) => {
                l4s.head_sojourn(now) + shift >= classic.head_sojourn(now)
            }
        })
    }

    /// Updates the weights after a packet was sent.
    fn charge(&mut self, is_l4s: bool, size: u32) {
        if let DualQueueScheduler::Weighted(share) = self.config.scheduler {
            self.classic_credit += f64::from(size) * if is_l4s { share } else { share - 1.0 };
        }
    }

    fn next_l4s(&mut self, now: Instant, dropped: &mut Vec<Waiting<P>>) -> Option<Waiting<P>> {
        let mut item = self.l4s.backlog.pop()?;
        let coupled = self.coupled();
        if coupled >= 1.0 && self.l4s_drops.chooses(self.classic_probability()) {
            self.l4s.drop(item, dropped);
            return None;
        }
        let native = if self.l4s.backlog.len() as u64 >= self.config.l4s_min.get() {
            self.native(item.sojourn(now))
        } else {
            0.0
        };
        if self.l4s.signals.chooses(native.max(coupled)) {
            // ECT(1) or CE: it can always be marked.
            item.mark();
        }
        self.charge(true, item.size);
        self.l4s.send(now, &item);
        Some(item)
    }

    fn next_classic(&mut self, now: Instant, dropped: &mut Vec<Waiting<P>>) -> Option<Waiting<P>> {
        let mut item = self.classic.backlog.pop()?;
        let probability = self.classic_probability();
        if self.classic.signals.chooses(probability) {
            // At a coupled probability of 1, marks carry no further information.
            let overload = self.coupled() >= 1.0;
            if overload || !item.mark() {
                self.classic.drop(item, dropped);
                return None;
            }
        }
        self.charge(false, item.size);
        self.classic.send(now, &item);
        Some(item)
    }

    /// p_C, the probability of drops or marks in the classic queue.
    fn classic_probability(&self) -> f64 {
        self.pi2.base * self.pi2.base
    }

    /// p_CL, the marking probability of the L4S queue derived from the classic queue's congestion.
    fn coupled(&self) -> f64 {
        (self.pi2.base * self.config.k).min(1.0)
    }

    /// p'_L, the native marking probability of the L4S queue (RFC 9332, appendix A.1, figure 5).
    fn native(&self, sojourn: Duration) -> f64 {
        let (threshold, range) = (self.config.l4s_threshold, self.config.l4s_range);
        if range.is_zero() {
            return f64::from(u8::from(sojourn > threshold));
        }
        let low = threshold.saturating_sub(range / 2);
        let above = sojourn.saturating_sub(low).as_nanos() as f64;
        (above / range.as_nanos() as f64).min(1.0)
    }

    pub(crate) fn state(&self) -> AqmState {
        AqmState::DualPi2(DualPi2State {
            base: self.pi2.base,
            classic_probability: self.classic_probability(),
            coupled_probability: self.coupled(),
            l4s: self.l4s.state(),
            classic: self.classic.state(),
        })
    }

    /// Restarts the delays.
    pub(crate) fn reset_stats(&mut self) {
        self.l4s.delays.reset();
        self.classic.delays.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pi2() -> Pi2 {
        let config = DualPi2Config::default();
        DualPi2Queue::<Vec<u8>>::new(&config, Instant::ZERO).pi2
    }

    #[test]
    fn the_controller_integrates_the_excess_and_adds_the_change() {
        let mut pi2 = pi2();
        // One packet that has been there since 0: at 16, 32 and 48 ms it has waited so long.
        pi2.advance(Instant::from_millis(50), Some(Instant::ZERO));
        let integral = 0.16 * (0.001 + 0.017 + 0.033);
        let expected = integral + 3.2 * 0.048;
        assert!((pi2.base - expected).abs() < 1e-12, "{}", pi2.base);
        // An empty queue: the change at once, then 0.16 * 15 ms for each update.
        pi2.advance(Instant::from_millis(64 + 16 * 9), None);
        let expected = expected - 3.2 * 0.048 - 10.0 * 0.16 * 0.015;
        assert!((pi2.base - expected.max(0.0)).abs() < 1e-12, "{}", pi2.base);
    }

    #[test]
    fn rest_is_skipped_without_losing_the_beat() {
        let (mut at_once, mut in_steps) = (pi2(), pi2());
        let busy = Some(Instant::ZERO);
        at_once.advance(Instant::from_millis(100), busy);
        in_steps.advance(Instant::from_millis(100), busy);
        at_once.advance(Instant::from_millis(100_000), None);
        for ms in 101..=100_000 {
            in_steps.advance(Instant::from_millis(ms), None);
        }
        assert!(at_once.base <= 0.0 && in_steps.base <= 0.0);
        assert_eq!(at_once.next_update, in_steps.next_update);
    }

    #[test]
    fn shares_are_evenly_spaced() {
        let mut decimator = Decimator::default();
        let chosen: Vec<_> = (0..20).filter(|_| decimator.chooses(0.25)).collect();
        assert_eq!(chosen, [4, 8, 12, 16]);
    }
}
