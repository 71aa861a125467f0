//! How much applications may write before it is sent and acknowledged, and who is told when there is room.
//!
//! Two bounds: the send window, which follows the congestion window, and what the peer's flow control of
//! the connection permits. What streams permit is theirs.

use super::Streams;
use super::sending::Outgoing;
use crate::config::TransportConfig;

/// Writers that wait for room are woken when this share of the send window is free, so that a full
/// window doesn't wake them for every packet acknowledged.
const WAKE_SHARE: u64 = 8;

/// Bytes that may wait beyond the peer's limit of the connection: what leaves at once when that grows, while
/// writers are told.
const BEYOND_CREDIT: u64 = 64 << 10;

/// What a writer that is told of room is assumed to write.
const EXPECTED_WRITE: u64 = 16 << 10;

/// The send window as congestion windows: one in flight, one to follow.
const CONGESTION_WINDOWS: u64 = 2;

/// Bytes that may be kept with this congestion window.
pub(super) fn send_window(config: &TransportConfig, cwnd: u64) -> u64 {
    let largest = config.send_window.get();
    let smallest = config.min_send_window.get().min(largest);
    cwnd.saturating_mul(CONGESTION_WINDOWS)
        .clamp(smallest, largest)
}

impl Outgoing {
    /// Bytes that may be written to all streams together.
    pub(super) fn room(&self) -> u64 {
        self.window_room().min(self.credit_room())
    }

    /// What the send window leaves of it.
    fn window_room(&self) -> u64 {
        self.send_window.saturating_sub(self.totals.held)
    }

    /// What the peer's limit leaves of it.
    fn credit_room(&self) -> u64 {
        let most = self.credit().saturating_add(BEYOND_CREDIT);
        most.saturating_sub(self.totals.unsent)
    }

    /// True if there is room worth telling writers of. Otherwise acknowledgements are to come, or there are
    /// data that wait for the peer's limit.
    fn has_much_room(&self) -> bool {
        self.window_room() >= (self.send_window / WAKE_SHARE).max(1)
            && self.credit_room() >= BEYOND_CREDIT / 2
    }
}

impl Streams {
    /// The congestion window is `cwnd` bytes now. Acknowledgements that follow tell writers of room.
    pub(crate) fn follow_congestion_window(&mut self, config: &TransportConfig, cwnd: u64) {
        self.outgoing.send_window = send_window(config, cwnd);
    }

    /// Tells writers that wait for room in the send window, if enough is free: as many as can use it, the
    /// most urgent first. When nothing is kept no acknowledgement comes that would tell the rest, so that
    /// all are told.
    pub(super) fn wake_writers(&mut self) {
        if self.outgoing.waiting.is_empty() || !self.outgoing.has_much_room() {
            return;
        }
        let mut room = self.outgoing.room();
        if self.outgoing.totals.held == 0 {
            room = u64::MAX;
        }
        while room > 0
            && let Some(key) = self.next_waiting()
        {
            let send = self
                .slab
                .get_mut(key)
                .and_then(|stream| stream.send.as_mut());
            if let Some(send) = send.filter(|send| send.is_listed) {
                send.is_listed = false;
                self.announce_writable(key);
                room = room.saturating_sub(EXPECTED_WRITE);
            }
        }
    }

    /// Takes the writer that goes first out of those that wait for room: in the order of sending, and of
    /// incremental streams the one that waits longest.
    fn next_waiting(&mut self) -> Option<u32> {
        let order = |key: u32| {
            let stream = self.slab.get(key)?;
            let id = (!stream.priority.incremental).then_some(stream.id);
            Some((stream.priority.rank(), id))
        };
        // Streams that are gone come first, and cost nothing.
        let waiting = self.outgoing.waiting.iter();
        let (at, _) = waiting.enumerate().min_by_key(|&(_, &key)| order(key))?;
        self.outgoing.waiting.remove(at)
    }
}
