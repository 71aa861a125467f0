//! Unreliable datagrams (RFC 9221): two bounded queues.

use std::collections::VecDeque;

use bytes::Bytes;
use swiftwater_wire::frame::types;
use swiftwater_wire::{ErrorCode, Frame};

use crate::error::{SendDatagramError, TransportError};
use crate::frame_writer::FrameWriter;
use crate::lazy_box::LazyBox;

/// Type byte of a DATAGRAM frame with a length.
const TYPE_LEN: usize = 1;

/// What keeping a datagram costs beside its bytes. Without it, a peer or an application could make
/// us keep any number of empty ones.
const OVERHEAD: usize = 64;

/// What a datagram counts for in a queue.
fn cost(data: &[u8]) -> usize {
    data.len() + OVERHEAD
}

/// Datagrams waiting to be sent and to be read.
#[derive(Debug)]
pub(crate) struct Datagrams {
    queues: LazyBox<Queues>,
    capacity: usize,
    /// Largest frame that we accept.
    accept: Option<u64>,
    /// Largest frame that the peer accepts.
    peer_accepts: Option<u64>,
    /// The application met a full queue.
    blocked: bool,
    unblocked: bool,
    /// Unread datagrams that made room for newer ones.
    dropped: u64,
    /// Datagrams that no packet could carry any more.
    too_large: u64,
}

#[derive(Debug, Default)]
struct Queues {
    outgoing: VecDeque<Bytes>,
    outgoing_bytes: usize,
    incoming: VecDeque<Bytes>,
    incoming_bytes: usize,
}

impl Datagrams {
    pub(crate) fn new(capacity: u64, accept: Option<u64>) -> Self {
        Self {
            queues: LazyBox::default(),
            capacity: usize::try_from(capacity).unwrap_or(usize::MAX),
            accept,
            peer_accepts: None,
            blocked: false,
            unblocked: false,
            dropped: 0,
            too_large: 0,
        }
    }

    /// Gives back the queues if they are empty.
    pub(crate) fn release_idle_memory(&mut self) {
        let is_empty = |queues: &Queues| queues.outgoing.is_empty() && queues.incoming.is_empty();
        if self.queues.get().is_some_and(is_empty) {
            self.queues.give_up();
        }
    }

    /// The peer's `max_datagram_frame_size` became known; zero refuses datagrams.
    pub(crate) fn set_peer_limit(&mut self, limit: u64) {
        self.peer_accepts = (limit > 0).then_some(limit);
    }

    /// Largest payload that a packet with `room` bytes for frames can carry; `None` if the peer
    /// accepts no frame of ours at all.
    pub(crate) fn max_size(&self, room: usize) -> Option<usize> {
        let peer = usize::try_from(self.peer_accepts?).unwrap_or(usize::MAX);
        // The length field takes two bytes for anything that fits in a packet.
        room.min(peer).checked_sub(TYPE_LEN + 2)
    }

    /// Queues a datagram.
    pub(crate) fn send(&mut self, data: Bytes, room: usize) -> Result<(), SendDatagramError> {
        let max = self.max_size(room).ok_or(SendDatagramError::Unsupported)?;
        if data.len() > max {
            return Err(SendDatagramError::TooLarge {
                size: data.len(),
                max,
            });
        }
        let queues = self.queues.need();
        if queues.outgoing_bytes + cost(&data) > self.capacity && !queues.outgoing.is_empty() {
            self.blocked = true;
            return Err(SendDatagramError::Blocked);
        }
        queues.outgoing_bytes += cost(&data);
        queues.outgoing.push_back(data);
        Ok(())
    }

    /// Bytes that wait to be sent.
    pub(crate) fn pending_bytes(&self) -> u64 {
        let bytes = |queues: &Queues| queues.outgoing_bytes - queues.outgoing.len() * OVERHEAD;
        self.queues.get().map_or(0, bytes) as u64
    }

    /// The path shrank: drops what no packet with `room` bytes for frames can carry, and says how
    /// many that were.
    pub(crate) fn drop_too_large(&mut self, room: usize) -> u64 {
        let Some(queues) = self.queues.get_mut() else {
            return 0;
        };
        let before = queues.outgoing.len();
        let fits = |data: &Bytes| Frame::Datagram { data }.size() <= room;
        queues.outgoing.retain(fits);
        queues.outgoing_bytes = queues.outgoing.iter().map(|data| cost(data)).sum();
        let count = (before - queues.outgoing.len()) as u64;
        if count > 0 && std::mem::take(&mut self.blocked) {
            self.unblocked = true;
        }
        self.too_large += count;
        count
    }

    /// Datagrams that were dropped unsent because the path shrank.
    pub(crate) fn too_large(&self) -> u64 {
        self.too_large
    }

    pub(crate) fn has_pending(&self) -> bool {
        (self.queues.get()).is_some_and(|queues| !queues.outgoing.is_empty())
    }

    /// Writes what fits. A datagram too large even for an empty packet (`room`), as after the path
    /// shrank, is dropped.
    pub(crate) fn fill(&mut self, writer: &mut FrameWriter<'_, '_>, room: usize) {
        let Some(queues) = self.queues.get_mut() else {
            return;
        };
        while let Some(data) = queues.outgoing.front() {
            let frame = Frame::Datagram { data };
            let permitted = (self.peer_accepts).is_some_and(|limit| frame.size() as u64 <= limit);
            let fits = permitted && writer.frame(&frame);
            if permitted && !fits && frame.size() <= room {
                return;
            }
            self.too_large += u64::from(!fits);
            queues.outgoing_bytes -= cost(data);
            queues.outgoing.pop_front();
            if std::mem::take(&mut self.blocked) {
                self.unblocked = true;
            }
        }
    }

    /// Takes a received datagram from a frame of this type; drops the oldest unread ones if there is no room. Returns true if
    /// the queue was empty.
    pub(crate) fn receive(&mut self, frame_type: u64, data: &[u8]) -> Result<bool, TransportError> {
        // The limit is for the whole frame (RFC 9221, section 3).
        let size = match frame_type {
            types::DATAGRAM => TYPE_LEN + data.len(),
            _ => Frame::Datagram { data }.size(),
        } as u64;
        if self.accept.is_none_or(|limit| size > limit) {
            return Err(TransportError::new(
                ErrorCode::PROTOCOL_VIOLATION,
                "a datagram larger than max_datagram_frame_size",
            ));
        }
        let queues = self.queues.need();
        let was_empty = queues.incoming.is_empty();
        while queues.incoming_bytes + cost(data) > self.capacity
            && let Some(oldest) = queues.incoming.pop_front()
        {
            queues.incoming_bytes -= cost(&oldest);
            self.dropped += 1;
        }
        queues.incoming_bytes += cost(data);
        queues.incoming.push_back(Bytes::copy_from_slice(data));
        Ok(was_empty)
    }

    /// The oldest unread datagram.
    pub(crate) fn recv(&mut self) -> Option<Bytes> {
        let queues = self.queues.get_mut()?;
        let data = queues.incoming.pop_front()?;
        queues.incoming_bytes -= cost(&data);
        Some(data)
    }

    /// The peer's limit is unknown again; what waits stays within what the peer permits now, or is
    /// dropped when it would be sent.
    pub(crate) fn on_early_data_rejected(&mut self) {
        self.peer_accepts = None;
    }

    /// True once after a full queue got room.
    pub(crate) fn take_unblocked(&mut self) -> bool {
        std::mem::take(&mut self.unblocked)
    }

    /// Unread datagrams that were dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }
}
