//! Whether a sender waits for room for a larger burst, as Linux does for the sake of segmentation in
//! the network interface (`tcp_tso_should_defer`, `tcp_tso_autosize`): acknowledgements that follow each
//! other within a millisecond then let packets out in pairs or more.

use std::time::Duration;

use super::segment::MSS;

/// The last transmission must not be longer ago.
const RECENT: Duration = Duration::from_millis(1);
/// Segments that a burst has at least.
const LEAST: u64 = 2;
/// Segments that a burst has at most: 64 KiB.
const MOST: u64 = 65_536 / MSS;
/// Share of the window that is always sent, as its inverse.
const WINDOW_DIVISOR: u64 = 3;

/// What the decision depends on. Windows are in packets.
#[derive(Clone, Copy, Debug)]
pub struct Gathering {
    /// Congestion window.
    pub window: u64,
    /// Slow-start threshold, if there is one.
    pub threshold: Option<u64>,
    /// Packets that may be sent now.
    pub room: u64,
    /// Packets that are not acknowledged.
    pub out: u64,
    /// Time since the last transmission.
    pub since_last: Duration,
    /// Time since the earliest unacknowledged segment was sent.
    pub since_first: Duration,
    /// The smoothed round trip.
    pub smoothed_rtt: Duration,
}

impl Gathering {
    /// Whether to wait for the next acknowledgement.
    pub fn waits(&self) -> bool {
        self.since_last <= RECENT
            && self.room < self.burst()
            && self.room < self.window / WINDOW_DIVISOR
            // Otherwise it is likely to come too late.
            && self.since_first >= self.smoothed_rtt / 2
    }

    /// Packets that are sent within a millisecond at twice the rate of the window in slow start, and at
    /// 1.2 times of it later.
    fn burst(&self) -> u64 {
        let is_early = self
            .threshold
            .is_none_or(|threshold| self.window < threshold / 2);
        let gain = if is_early { 2.0 } else { 1.2 };
        let packets = self.window.max(self.out) as f64;
        let rtt = self.smoothed_rtt.as_secs_f64().max(1e-6);
        let burst = gain * packets / rtt / 1024.0;
        (burst as u64).clamp(LEAST, MOST)
    }
}
