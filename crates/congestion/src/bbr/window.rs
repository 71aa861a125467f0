//! What the model says may be in flight, and the window to go back to after a cut.

use std::time::Duration;

use swiftwater_units::{Bandwidth, ByteCount};

use crate::controller::Env;
use crate::growth::MAX_WINDOW;

/// Packets that keep a flow with delayed ACKs going: two on the way, two acknowledged
/// (draft-ietf-ccwg-bbr, section 5.6.4.3).
const MIN_PIPE_PACKETS: u64 = 4;

/// What the transport says about sizes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) packet: ByteCount,
    pub(super) initial_window: ByteCount,
    minimum_window: ByteCount,
}

impl Sizes {
    pub(super) fn of(env: &Env<'_>) -> Self {
        Self {
            packet: env.max_datagram_size,
            initial_window: env.initial_window.max(env.minimum_window).min(MAX_WINDOW),
            minimum_window: env.minimum_window,
        }
    }

    /// The smallest window of the model (`MinPipeCwnd`).
    pub(super) fn min_pipe(&self) -> ByteCount {
        self.packet.times(MIN_PIPE_PACKETS).max(self.minimum_window)
    }

    /// `cwnd` within what is allowed at all.
    pub(super) fn bound(&self, cwnd: ByteCount) -> ByteCount {
        cwnd.max(self.minimum_window).min(MAX_WINDOW)
    }
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
    /// Saves `cwnd`. If it is already cut (`is_cut`), the saved value stays, unless it is
    /// smaller.
    pub(super) fn save(&mut self, cwnd: ByteCount, is_cut: bool) {
        self.0 = if is_cut { self.0.max(cwnd) } else { cwnd };
    }

    /// True if the window was larger than `cwnd` before it was cut.
    pub(super) fn exceeds(self, cwnd: ByteCount) -> bool {
        self.0 > cwnd
    }

    /// The window to have now.
    pub(super) fn restore(self, cwnd: ByteCount) -> ByteCount {
        cwnd.max(self.0)
    }
}
