//! How much applications may write before it is sent and acknowledged, and the order in which waiting
//! writers get the event that there is room.
//!
//! Three bounds: the send window for all that is kept; and for what was not sent yet, the congestion
//! window, so that there is always enough for it, and the peer's flow control of the connection. Limits of
//! single streams come on top.

use super::Streams;
use super::connection_send::ConnectionSend;
use super::send_stream::SendHalf;

/// Writers that wait for room are woken when this share of it is free, so that a full window doesn't wake
/// them for every packet acknowledged.
const WAKE_SHARE: u64 = 8;

/// Bytes that may wait beyond the peer's limit of the connection: what leaves at once when that grows, while
/// writers are woken.
const BEYOND_CREDIT: u64 = 64 << 10;

/// Unsent bytes that each stream may have whatever others have, so that the order of sending is decided when
/// packets are made, not when applications write: an urgent stream needn't wait, and none starves.
const RESERVED: u64 = 8 << 10;

/// What a writer that is woken is assumed to write.
const EXPECTED_WRITE: u64 = 16 << 10;

impl ConnectionSend {
    /// Bytes that may be written to all streams together.
    fn room(&self) -> u64 {
        self.window_room().min(self.unsent_room())
    }

    /// Bytes that may be written to a stream, if its own credit permits them.
    pub(super) fn room_for(&self, send: &SendHalf) -> u64 {
        let reserved = RESERVED.saturating_sub(send.sendable());
        self.window_room().min(self.unsent_room().max(reserved))
    }

    /// What the send window leaves of it.
    fn window_room(&self) -> u64 {
        self.send_window.saturating_sub(self.totals.held)
    }

    /// What those leave of it that were not sent yet.
    fn unsent_room(&self) -> u64 {
        self.most_unsent().saturating_sub(self.totals.unsent)
    }

    fn most_unsent(&self) -> u64 {
        let permitted = self.credit().saturating_add(BEYOND_CREDIT);
        self.unsent_window.min(permitted)
    }

    /// True if there is room worth waking writers for. Otherwise there are data that wait to be sent or
    /// acknowledged, or for the peer's limit.
    fn has_much_room(&self) -> bool {
        let is_much = |room: u64, of: u64| room >= (of / WAKE_SHARE).max(1);
        is_much(self.window_room(), self.send_window)
            && is_much(self.unsent_room(), self.most_unsent())
    }
}

impl Streams {
    /// The congestion window is `cwnd` bytes now, and `least` may wait beyond it. Acknowledgements that
    /// follow wake writers.
    pub(crate) fn follow_congestion_window(&mut self, least: u64, cwnd: u64) {
        self.outgoing.unsent_window = cwnd.max(least);
    }

    /// Wakes writers that wait for room in the send window, if enough is free: as many as can use it, the
    /// most urgent first. When nothing is kept, no acknowledgement follows that would wake the rest, so
    /// all are woken.
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

    /// Wakes the writer of `key`, if it waits and nearly all of what it wrote was sent.
    pub(super) fn refill_reserve(&mut self, key: u32) {
        let send = self.slab.get(key).and_then(|stream| stream.send.as_ref());
        if send.is_some_and(is_reserve_low) && self.outgoing.window_room() > 0 {
            self.announce_writable(key);
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

/// True if the writer of `send` waits for room, and little of what it wrote is left to be sent.
#[inline]
pub(super) fn is_reserve_low(send: &SendHalf) -> bool {
    send.awaits_event && send.sendable() <= RESERVED / 2
}
