//! The receiving half: delivery in order, SACK blocks, the window and when to acknowledge.
//!
//! Bytes beyond a hole stay here until the hole is filled: that is head-of-line blocking. Only
//! offsets are kept, no contents.
//!
//! The window begins at 64 KiB and grows by two segments for each that arrives, up to the buffer; as in
//! Linux (`tcp_grow_window`), each segment is acknowledged at once meanwhile. The buffer grows with
//! what the application reads within a round trip, if it may ([`Receiver::growing_to`]).

use std::ops::Range;
use std::time::Duration;

use swiftwater_units::Instant;

use super::segment::{Acknowledgement, MAX_SACK_BLOCKS, MSS};
use super::ticks::Ticks;

/// How long the acknowledgement of a single segment may wait (`TCP_DELACK_MIN`).
pub const DELAYED_ACK: Duration = Duration::from_millis(40);
/// Segments at the start of a connection that are acknowledged at once (`TCP_MAX_QUICKACKS`).
pub const QUICK_ACKS: u32 = 16;

/// The window that is offered first: what a SYN-ACK can carry.
const INITIAL_WINDOW: u64 = 65_535;
/// Least payload of a segment that makes the window grow.
const GROWING_PAYLOAD: u64 = 128;

/// What was read in the running round trip, for the size of the buffer.
#[derive(Debug, Clone, Copy)]
struct Reading {
    began: Instant,
    from: u64,
    /// Most bytes that were read within a round trip.
    most: u64,
}

/// What was received on a connection, from its start, as Linux counts it (`struct tcp_info`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReceiverStats {
    /// Bytes received in order; the peer's FIN counts as one (`tcpi_bytes_received`).
    pub bytes: u64,
    /// Segments with data, those received twice included (`tcpi_data_segs_in`).
    pub data_segments: u64,
    /// Segments that came ahead of a gap, within the window, those received twice included (`tcpi_rcv_ooopack`).
    pub out_of_order: u64,
}

/// Receives one direction of a connection.
#[derive(Debug, Clone)]
pub struct Receiver {
    next: u64,
    read: u64,
    capacity: u64,
    /// What the capacity may grow to.
    max_capacity: u64,
    reading: Option<Reading>,
    /// The window to offer, as far as the buffer permits.
    window: u64,
    /// End of the window that was offered: it never moves back.
    edge: u64,
    /// Disjoint ranges beyond `next` that touch neither it nor each other, latest first.
    beyond: Vec<Range<u64>>,
    duplicate: Option<Range<u64>>,
    unacknowledged: u64,
    quick_acks: u32,
    /// Data went the other way soon after data arrived: an acknowledgement will likely go with data.
    is_interactive: bool,
    received_at: Option<Instant>,
    delay: Duration,
    ticks: Ticks,
    ack_at: Option<Instant>,
    out_of_order: u64,
}

impl Receiver {
    /// A receiver with a buffer of `capacity` bytes, in quick-ACK mode.
    pub fn new(capacity: u64) -> Self {
        Self {
            next: 0,
            read: 0,
            capacity,
            max_capacity: capacity,
            reading: None,
            window: INITIAL_WINDOW.min(capacity),
            edge: INITIAL_WINDOW.min(capacity),
            beyond: Vec::new(),
            duplicate: None,
            unacknowledged: 0,
            quick_acks: QUICK_ACKS,
            is_interactive: false,
            received_at: None,
            delay: DELAYED_ACK,
            ticks: Ticks::default(),
            ack_at: None,
            out_of_order: 0,
        }
    }

    /// The same with a buffer that grows to `most` bytes.
    #[must_use]
    pub fn growing_to(mut self, most: u64) -> Self {
        self.max_capacity = most.max(self.capacity);
        self
    }

    /// The same with another delay of the acknowledgement of a single segment, and the clock of its timer.
    #[must_use]
    pub fn with_delay(mut self, delay: Duration, ticks: Ticks) -> Self {
        (self.delay, self.ticks) = (delay, ticks);
        self
    }

    /// Data are sent the other way: if some arrived just before, acknowledgements are left to data from
    /// now on.
    pub fn on_data_sent(&mut self, now: Instant) {
        let received = self.received_at;
        self.is_interactive |= received.is_some_and(|at| now.saturating_since(at) < DELAYED_ACK);
    }

    /// Acknowledges at once again after a pause of more than the timeout of retransmission, when the
    /// peer may have restarted from its initial window.
    pub fn after_pause(&mut self, now: Instant, timeout: Duration) {
        let received = self.received_at;
        if received.is_some_and(|at| now.saturating_since(at) > timeout) {
            self.quick_acks = QUICK_ACKS;
        }
    }

    /// The application has read all, and the segment that came last had nothing behind it: it is
    /// acknowledged now.
    pub fn on_pushed(&mut self, now: Instant) {
        if !self.is_interactive && self.unacknowledged > 0 {
            self.ack_at = Some(now);
        }
    }

    /// The next offset that is expected.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// End of the window: bytes from there on are dropped.
    pub fn end(&self) -> u64 {
        self.edge
    }

    /// Segments that came ahead of a gap, within the window, those received twice included.
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// Takes the payload of a segment. Bytes beyond the window are dropped, and an empty payload is
    /// ignored.
    pub fn on_payload(&mut self, now: Instant, payload: Range<u64>) {
        if payload.is_empty() {
            return;
        }
        let end = payload.end.min(self.edge);
        self.out_of_order += u64::from(payload.start > self.next && payload.start < end);
        let is_known = payload.end <= self.next
            || self
                .beyond
                .iter()
                .any(|block| block.start <= payload.start && payload.end <= block.end);
        if is_known {
            self.duplicate = Some(payload);
            self.quick_acks = QUICK_ACKS;
            self.is_interactive = false;
            self.ack_at = Some(now);
            return;
        }
        if payload.start >= end {
            self.ack_at = Some(now);
            return;
        }
        self.received_at = Some(now);
        if self.window < self.capacity && payload.end - payload.start >= GROWING_PAYLOAD {
            self.window = (self.window + 2 * MSS).min(self.capacity);
            self.quick_acks |= 1;
        }
        let had_hole = !self.beyond.is_empty();
        if payload.start > self.next {
            self.keep(payload.start..end);
        } else {
            if payload.start < self.next {
                self.duplicate = Some(payload.start..self.next);
            }
            let before = self.next;
            self.next = end.max(before);
            self.advance();
            self.unacknowledged += self.next - before;
        }
        let at_once = had_hole
            || !self.beyond.is_empty()
            || self.duplicate.is_some()
            || (self.quick_acks > 0 && !self.is_interactive)
            || self.unacknowledged > MSS;
        self.quick_acks = self.quick_acks.saturating_sub(1);
        let due = if at_once {
            now
        } else {
            self.ticks.expiry(now, now + self.delay)
        };
        self.ack_at = Some(self.ack_at.map_or(due, |at| at.min(due)));
    }

    /// When an acknowledgement has to be sent; absent when none is owed.
    pub fn next_timer(&self) -> Option<Instant> {
        self.ack_at
    }

    /// The acknowledgement that is due at `now`, if one is.
    pub fn poll_ack(&mut self, now: Instant) -> Option<Acknowledgement> {
        self.ack_at.filter(|at| *at <= now)?;
        Some(self.acknowledge())
    }

    /// An acknowledgement to send with data; one that was owed no longer is.
    pub fn acknowledge(&mut self) -> Acknowledgement {
        self.ack_at = None;
        self.unacknowledged = 0;
        let blocks = self.duplicate.take().into_iter();
        let room = (self.read + self.capacity).saturating_sub(self.next);
        self.edge = self.edge.max(self.next + room.min(self.window));
        Acknowledgement {
            next: self.next,
            window: self.edge - self.next,
            blocks: blocks
                .chain(self.beyond.iter().cloned())
                .take(MAX_SACK_BLOCKS)
                .collect(),
        }
    }

    /// Takes all bytes that arrived in order out of the buffer, and returns their offsets.
    pub fn read(&mut self, now: Instant) -> Range<u64> {
        self.read_up_to(now, u64::MAX)
    }

    /// As [`Receiver::read`], at most `max` bytes.
    pub fn read_up_to(&mut self, now: Instant, max: u64) -> Range<u64> {
        let offered = self.edge - self.next;
        let bytes = self.read..self.next.min(self.read.saturating_add(max));
        self.read = bytes.end;
        let room = (self.read + self.capacity).saturating_sub(self.next);
        if !bytes.is_empty() && room.min(self.window) >= (2 * offered).max(1) {
            // The window opened or doubled; the sender may wait for that.
            self.ack_at = Some(now);
        }
        bytes
    }

    /// The application has read; `rtt` is the round trip as the receiver knows it. Once in a round trip
    /// the buffer is adapted to what was read (`tcp_rcv_space_adjust`): the sender may double its rate.
    pub fn adapt(&mut self, now: Instant, rtt: Duration) {
        let reading = self.reading.get_or_insert(Reading {
            began: now,
            from: self.read,
            most: 10 * MSS,
        });
        if now.saturating_since(reading.began) < rtt {
            return;
        }
        let bytes = self.read - reading.from;
        if bytes > reading.most {
            // Room for the same again, losses, and twice the growth since the last round trip.
            let room = 2 * bytes + 16 * MSS;
            let growth = room * (bytes - reading.most) / reading.most;
            let wanted = (room + 2 * growth).min(self.max_capacity);
            reading.most = bytes;
            self.capacity = self.capacity.max(wanted);
        }
        (reading.began, reading.from) = (now, self.read);
    }

    fn keep(&mut self, mut block: Range<u64>) {
        self.beyond.retain(|other| {
            let touches = other.start <= block.end && block.start <= other.end;
            if touches {
                block = block.start.min(other.start)..block.end.max(other.end);
            }
            !touches
        });
        self.beyond.insert(0, block);
    }

    /// Moves `next` over the blocks it reaches.
    fn advance(&mut self) {
        while let Some(at) = self.beyond.iter().position(|b| b.start <= self.next) {
            let block = self.beyond.remove(at);
            self.next = self.next.max(block.end);
        }
    }
}
