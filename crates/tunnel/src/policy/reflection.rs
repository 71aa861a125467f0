//! The limit on what is sent to a target that has not answered: else a proxy hides who floods it.

use std::time::Duration;

/// What may be sent to a target before its first datagram: so much at once, and as much again in each
/// [`ReflectionLimit::per`], since a target that comes up late must still get a chance to answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ReflectionLimit {
    /// Datagrams; default 10.
    pub datagrams: u32,
    /// Bytes of UDP payload; default 15,000.
    pub bytes: u64,
    /// The time in which the whole limit is available again; default 10 s. Zero: no limit.
    pub per: Duration,
}

impl Default for ReflectionLimit {
    fn default() -> Self {
        Self {
            datagrams: 10,
            bytes: 15_000,
            per: Duration::from_secs(10),
        }
    }
}

/// What was sent to one target.
#[derive(Clone, Copy, Debug)]
pub struct Reflection {
    limit: ReflectionLimit,
    /// What is available, as times in which it becomes available: [`ReflectionLimit::per`] at most.
    for_datagrams: Duration,
    for_bytes: Duration,
    /// When that was.
    at: Duration,
    has_answered: bool,
}

impl Reflection {
    /// Nothing was sent so far.
    pub fn new(limit: ReflectionLimit) -> Self {
        Self {
            limit,
            for_datagrams: limit.per,
            for_bytes: limit.per,
            at: Duration::ZERO,
            has_answered: false,
        }
    }

    /// The target has sent a datagram: it wants the traffic.
    pub fn on_answer(&mut self) {
        self.has_answered = true;
    }

    /// Whether the target has sent a datagram.
    pub fn has_answered(&self) -> bool {
        self.has_answered
    }

    /// True if a datagram of `len` bytes may be sent `at` after the tunnel was opened, and is then counted.
    pub fn admit(&mut self, len: usize, at: Duration) -> bool {
        if self.has_answered {
            return true;
        }
        let per = self.limit.per;
        let passed = at.saturating_sub(self.at);
        self.at += passed;
        self.for_datagrams = (self.for_datagrams + passed).min(per);
        self.for_bytes = (self.for_bytes + passed).min(per);
        let datagram = time_of(1, u64::from(self.limit.datagrams), per);
        let bytes = time_of(len as u64, self.limit.bytes, per);
        let (Some(datagram), Some(bytes)) = (datagram, bytes) else {
            return false;
        };
        let left = (
            self.for_datagrams.checked_sub(datagram),
            self.for_bytes.checked_sub(bytes),
        );
        if let (Some(for_datagrams), Some(for_bytes)) = left {
            self.for_datagrams = for_datagrams;
            self.for_bytes = for_bytes;
            true
        } else {
            false
        }
    }
}

/// The time in which `amount` of `limit` becomes available; `None` if it never does.
fn time_of(amount: u64, limit: u64, per: Duration) -> Option<Duration> {
    let nanos = per.as_nanos().checked_mul(u128::from(amount))?;
    let nanos = nanos.checked_div(u128::from(limit))?;
    Some(Duration::from_nanos(u64::try_from(nanos).ok()?))
}
