//! CoDel, controlled delay (RFC 8289).

use std::time::Duration;

use swiftwater_units::{ByteCount, Instant};

use super::backlog::{Backlog, Waiting};
use super::discipline::{QueueConfigError, check_time};
use super::state::AqmState;

/// Parameters of CoDel.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CoDelConfig {
    /// Target delay of the standing queue; above zero, at most a day. Default: 5 ms (RFC 8289,
    /// section 4.3).
    pub target: Duration,
    /// Time for which the delay may be above the target before packets are dropped: about the
    /// longest round-trip time of the traffic; above zero, at most a day. Default: 100 ms (RFC
    /// 8289, section 4.2).
    pub interval: Duration,
    /// With at most this left in the queue no packet is dropped, whatever the delay: one full-sized
    /// packet (RFC 8289, section 4.4). Default: 1514 bytes.
    pub mtu: ByteCount,
    /// Mark ECN-capable packets instead of dropping them. Default: true.
    pub ecn: bool,
}

impl Default for CoDelConfig {
    fn default() -> Self {
        Self {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            mtu: ByteCount::new(1_514),
            ecn: true,
        }
    }
}

impl CoDelConfig {
    pub(crate) fn validate(&self, discipline: &'static str) -> Result<(), QueueConfigError> {
        check_time(discipline, "target", self.target)?;
        check_time(discipline, "interval", self.interval)
    }
}

/// CoDel's decision for a dequeued packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    /// Send it.
    Forward,
    /// Mark and send it, or drop it and continue with the next one.
    Congested,
}

/// The control loop of RFC 8289, section 5, called for each packet.
#[derive(Clone, Debug)]
pub(crate) struct CoDel {
    target: Duration,
    interval: Duration,
    mtu: u64,
    /// If the delay is still above the target then, it was above for an interval.
    first_above: Option<Instant>,
    dropping: bool,
    /// When the next packet is to be dropped.
    drop_next: Instant,
    /// A packet was dropped and `drop_next` not updated yet: the next packet of the queue decides
    /// that.
    due: bool,
    /// Packets dropped since the dropping state was entered.
    count: u32,
    /// `count` when it was last entered.
    last_count: u32,
}

impl CoDel {
    pub(crate) fn new(config: &CoDelConfig) -> Self {
        Self {
            target: config.target,
            interval: config.interval,
            mtu: config.mtu.get(),
            first_above: None,
            dropping: false,
            drop_next: Instant::ZERO,
            due: false,
            count: 0,
            last_count: 0,
        }
    }

    /// Whether it is in the dropping state, and the number of packets dropped or marked since it
    /// was entered.
    pub(crate) fn state(&self) -> (bool, u32) {
        (self.dropping, self.count)
    }

    /// A dequeue found the queue empty.
    pub(crate) fn on_empty(&mut self) {
        self.first_above = None;
        self.dropping = false;
    }

    /// A packet that waited for `sojourn` is dequeued and leaves `backlog` bytes.
    pub(crate) fn on_dequeue(&mut self, now: Instant, sojourn: Duration, backlog: u64) -> Verdict {
        let above = self.above_for_an_interval(now, sojourn, backlog);
        if !self.dropping {
            if !above {
                return Verdict::Forward;
            }
            self.begin(now);
            return Verdict::Congested;
        }
        if !above {
            self.dropping = false;
            return Verdict::Forward;
        }
        if self.due {
            self.due = false;
            self.drop_next = self.next_after(self.drop_next);
        }
        if now < self.drop_next {
            return Verdict::Forward;
        }
        self.count = self.count.saturating_add(1);
        self.due = true;
        Verdict::Congested
    }

    fn above_for_an_interval(&mut self, now: Instant, sojourn: Duration, backlog: u64) -> bool {
        if sojourn < self.target || backlog <= self.mtu {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            None => {
                self.first_above = Some(now + self.interval);
                false
            }
            Some(since) => now >= since,
        }
    }

    /// Enters the dropping state; if it was left a short time ago, continues at about the previous
    /// rate.
    fn begin(&mut self, now: Instant) {
        self.dropping = true;
        let needed = self.count.saturating_sub(self.last_count);
        let recent = now.saturating_since(self.drop_next) < self.interval * 16;
        self.count = if needed > 1 && recent { needed } else { 1 };
        self.last_count = self.count;
        self.drop_next = self.next_after(now);
        self.due = false;
    }

    /// The control law: the interval to the next drop decreases with the square root of the number
    /// of drops.
    fn next_after(&self, time: Instant) -> Instant {
        let nanos = self.interval.as_nanos() as f64 / f64::from(self.count.max(1)).sqrt();
        time + Duration::from_nanos(nanos as u64)
    }
}

/// Dequeues the next packet to send; dropped packets are added to `dropped`.
pub(crate) fn dequeue<P>(
    codel: &mut CoDel,
    ecn: bool,
    backlog: &mut Backlog<P>,
    now: Instant,
    dropped: &mut Vec<Waiting<P>>,
) -> Option<Waiting<P>> {
    while let Some(mut item) = backlog.pop() {
        match codel.on_dequeue(now, item.sojourn(now), backlog.bytes()) {
            Verdict::Forward => return Some(item),
            Verdict::Congested if ecn && item.mark() => return Some(item),
            Verdict::Congested => dropped.push(item),
        }
    }
    codel.on_empty();
    None
}

/// One queue under CoDel.
#[derive(Debug)]
pub(crate) struct CoDelQueue<P> {
    pub(crate) backlog: Backlog<P>,
    codel: CoDel,
    ecn: bool,
}

impl<P> CoDelQueue<P> {
    pub(crate) fn new(config: &CoDelConfig) -> Self {
        Self {
            backlog: Backlog::new(),
            codel: CoDel::new(config),
            ecn: config.ecn,
        }
    }

    /// A dequeue found the queue empty.
    pub(crate) fn on_idle(&mut self) {
        self.codel.on_empty();
    }

    pub(crate) fn dequeue(
        &mut self,
        now: Instant,
        dropped: &mut Vec<Waiting<P>>,
    ) -> Option<Waiting<P>> {
        dequeue(&mut self.codel, self.ecn, &mut self.backlog, now, dropped)
    }

    pub(crate) fn state(&self) -> AqmState {
        let (dropping, count) = self.codel.state();
        AqmState::CoDel { dropping, count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: u64 = 100_000;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// The times in 1..=until at which a packet that waited for `sojourn` meets congestion, one
    /// packet each millisecond.
    fn congested(codel: &mut CoDel, times: std::ops::RangeInclusive<u64>) -> Vec<u64> {
        times
            .filter(|t| codel.on_dequeue(at(*t), ms(20), LARGE) == Verdict::Congested)
            .collect()
    }

    #[test]
    fn drops_come_closer_with_the_root_of_their_number() {
        let mut codel = CoDel::new(&CoDelConfig::default());
        // Above the target from 1 ms on: the first drop an interval later, then 100 / sqrt(n).
        assert_eq!(
            congested(&mut codel, 1..=500),
            [101, 201, 272, 330, 380, 425, 465]
        );
        assert_eq!(codel.state(), (true, 7));
    }

    #[test]
    fn below_the_target_or_with_one_packet_left_nothing_happens() {
        let mut codel = CoDel::new(&CoDelConfig::default());
        for t in 1..1_000 {
            let verdict = codel.on_dequeue(at(t), ms(20), 1_514);
            assert_eq!(verdict, Verdict::Forward);
            let verdict = codel.on_dequeue(at(t), Duration::from_micros(4_999), LARGE);
            assert_eq!(verdict, Verdict::Forward);
        }
    }

    #[test]
    fn one_short_wait_ends_it_and_it_resumes_where_it_was() {
        let mut codel = CoDel::new(&CoDelConfig::default());
        congested(&mut codel, 1..=500);
        assert_eq!(
            codel.on_dequeue(at(501), ms(4), LARGE),
            Verdict::Forward,
            "below the target"
        );
        assert!(!codel.state().0);
        // Above again from 502 ms on: after one interval it continues with 7 - 1 = 6, and so 100 /
        // sqrt(6) = 40.8 ms to the next.
        assert_eq!(congested(&mut codel, 502..=660), [602, 643]);
        // Long after that it starts from one.
        let mut codel = CoDel::new(&CoDelConfig::default());
        congested(&mut codel, 1..=500);
        codel.on_empty();
        assert_eq!(congested(&mut codel, 3_000..=3_250), [3_100, 3_200]);
    }
}
