//! What the model says may be in flight, and the window to go back to after a cut.

use std::time::Duration;

use swiftwater_units::{Bandwidth, ByteCount};

use crate::growth::MAX_WINDOW;

/// Packets that keep a flow with delayed ACKs going: two on the way, two acknowledged
/// (draft-ietf-ccwg-bbr, section 5.6.4.3).
const MIN_PIPE_PACKETS: u64 = 4;

/// The smallest window of the model (`MinPipeCwnd`), never below `minimum_window`.
pub(super) fn min_pipe(max_datagram_size: ByteCount, minimum_window: ByteCount) -> ByteCount {
    max_datagram_size
        .times(MIN_PIPE_PACKETS)
        .max(minimum_window)
}

/// Bandwidth times round-trip time; `None` while the time is unknown. Rounded up: an estimate
/// that is a byte short could shrink by itself.
pub(super) fn bandwidth_delay_product(
    bandwidth: Bandwidth,
    min_rtt: Option<Duration>,
) -> Option<ByteCount> {
    let bytes = bandwidth.bytes_in(min_rtt?).saturating_add(1);
    Some(ByteCount::new(bytes).min(MAX_WINDOW))
}

/// The last window known to be good, before loss recovery or `ProbeRTT` cut it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct SavedWindow(ByteCount);

impl SavedWindow {
    /// Remembers `cwnd`. If it is already cut (`is_cut`), what is remembered stays, unless it is
    /// smaller.
    pub(super) fn save(&mut self, cwnd: ByteCount, is_cut: bool) {
        self.0 = if is_cut { self.0.max(cwnd) } else { cwnd };
    }

    /// The window to have now.
    pub(super) fn restore(&mut self, cwnd: ByteCount) -> ByteCount {
        cwnd.max(self.0)
    }
}
