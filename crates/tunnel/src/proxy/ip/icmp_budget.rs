//! A limit on the ICMP errors of one tunnel (RFC 4443, section 2.4(f); RFC 1812, section 4.3.2.8).

use std::time::Duration;

/// Messages that may be sent at once.
const BURST: u32 = 50;

/// In this time one more may be sent.
const INTERVAL: Duration = Duration::from_millis(10);

/// Which messages may be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct IcmpBudget {
    left: u32,
    /// Until when `left` is right, since the start of the tunnel.
    at: Duration,
}

impl IcmpBudget {
    pub(super) fn new() -> Self {
        Self {
            left: BURST,
            at: Duration::ZERO,
        }
    }

    /// Whether a message may be sent `now`, counted from the start of the tunnel.
    pub(super) fn admit(&mut self, now: Duration) -> bool {
        let earned = now.saturating_sub(self.at).as_nanos() / INTERVAL.as_nanos();
        let earned = u32::try_from(earned).unwrap_or(u32::MAX);
        self.left = self.left.saturating_add(earned).min(BURST);
        self.at = if self.left == BURST {
            now
        } else {
            self.at + INTERVAL * earned
        };
        let admits = self.left > 0;
        self.left -= u32::from(admits);
        admits
    }
}
