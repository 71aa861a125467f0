//! How much more than expected is acknowledged at once, where links or peers collect data or ACKs.

use swiftwater_units::{Bandwidth, ByteCount, Instant};

use crate::windowed::Windowed;

/// Data acknowledged beyond what the bandwidth explains (draft-ietf-ccwg-bbr, section 5.5.9). The
/// window is raised by it, so that sending goes on while ACKs are held back.
#[derive(Clone, Debug, PartialEq)]
pub struct AckAggregation {
    started_at: Instant,
    acked: ByteCount,
    extra: Windowed<u64, ByteCount>,
}

impl AckAggregation {
    /// Nothing acknowledged yet.
    pub fn new(now: Instant) -> Self {
        Self {
            started_at: now,
            acked: ByteCount::ZERO,
            extra: Windowed::largest(),
        }
    }

    /// The flow restarts from idle: the pause is no sign of slow ACKs.
    pub fn restart(&mut self, now: Instant) {
        self.started_at = now;
        self.acked = ByteCount::ZERO;
    }

    /// `acked` bytes were acknowledged in round `round`, while the bandwidth is taken to be
    /// `bandwidth` and the window was `cwnd`. Values count for `window` rounds.
    pub fn on_ack(
        &mut self,
        now: Instant,
        acked: ByteCount,
        bandwidth: Bandwidth,
        cwnd: ByteCount,
        (round, window): (u64, u64),
    ) {
        let mut expected = self.expected(now, bandwidth);
        if self.acked <= expected {
            self.restart(now);
            expected = ByteCount::ZERO;
        }
        self.acked += acked;
        let extra = (self.acked - expected).min(cwnd);
        self.extra.enter(round, extra);
        let oldest = round.saturating_add(1).saturating_sub(window);
        self.extra.discard_before(oldest);
    }

    /// The largest excess in the window, bytes (`extra_acked`).
    pub fn extra(&self) -> ByteCount {
        self.extra.get().unwrap_or_default()
    }

    fn expected(&self, now: Instant, bandwidth: Bandwidth) -> ByteCount {
        let interval = now.saturating_since(self.started_at);
        ByteCount::new(bandwidth.bytes_in(interval))
    }
}
