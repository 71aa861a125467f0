//! When a connection without traffic releases the memory that only busy ones need.

use std::time::Duration;

use swiftwater_units::Instant;

/// A connection releases memory after so long without a packet. Longer than most round trips, so that few do while
/// they wait for an answer, and taking it again ten times a second is still next to nothing; not longer, because
/// what connections hold until then leaves holes in the heap.
const QUIET: Duration = Duration::from_millis(100);

/// The timer behind [`Connection::rest`](swiftwater_quic::Connection::rest).
#[derive(Default)]
pub(crate) struct IdleRelease {
    /// When to check for traffic.
    due: Option<Instant>,
    /// The last packet before the memory was released.
    released_after: Option<Instant>,
    /// Memory is released once nothing is left to be sent: sending needs some of it.
    is_pending: bool,
}

impl IdleRelease {
    /// When to check, if the last packet was at `active_at`. It is not put off for every packet: a check that comes
    /// too early costs less.
    pub(crate) fn due(&mut self, active_at: Instant) -> Option<Instant> {
        if self.released_after == Some(active_at) {
            return None;
        }
        Some(*self.due.get_or_insert(active_at + QUIET))
    }

    /// Checks for traffic, if it is time to.
    pub(crate) fn check(&mut self, now: Instant, active_at: Instant) {
        if self.due.is_some_and(|due| due <= now) {
            self.due = None;
            self.is_pending = active_at + QUIET <= now;
        }
    }

    /// True if memory is to be released now: a check found no traffic, and no packet was sent since.
    pub(crate) fn begins(&mut self, now: Instant, active_at: Instant) -> bool {
        let begins = std::mem::take(&mut self.is_pending) && active_at + QUIET <= now;
        if begins {
            self.released_after = Some(active_at);
        }
        begins
    }
}
