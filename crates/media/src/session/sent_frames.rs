//! The sender's frames in transmission.

use std::collections::VecDeque;
use std::time::Duration;

use swiftwater_units::Instant;

use super::content::Cut;
use crate::frame::Frame;
use crate::protection::block_code;

/// State of one packet of a frame.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PacketState {
    pub(super) acked: bool,
    /// It is no longer needed.
    pub(super) abandoned: bool,
    /// A retransmission is queued.
    pub(super) queued: bool,
    /// Sequence number of the newest copy.
    pub(super) latest: Option<u64>,
    /// The newest copy is in flight.
    pub(super) in_flight: bool,
    pub(super) first_sent: Option<Instant>,
    /// When it was first declared lost.
    pub(super) lost_at: Option<Instant>,
    pub(super) first_resent: Option<Instant>,
    pub(super) retransmissions: u32,
    pub(super) replicas: u32,
}

impl PacketState {
    pub(super) fn is_open(&self) -> bool {
        !self.acked && !self.abandoned
    }

    /// A retransmission of it was sent.
    pub(super) fn is_under_repair(&self) -> bool {
        self.first_resent.is_some()
    }
}

/// The newest batch of a frame's packets, for schemes that retransmit in batches.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Batch {
    /// When its last packet was sent.
    pub(super) last_sent: Option<Instant>,
    /// Data packets in it.
    pub(super) packets: u32,
    /// It is a retransmission.
    pub(super) again: bool,
    /// Some of it is lost, and the rest is waited for until then.
    pub(super) due: Option<Instant>,
}

/// A frame in transmission.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) frame: Frame,
    pub(super) born: Instant,
    pub(super) cut: Cut,
    pub(super) restart: bool,
    pub(super) packets: Vec<PacketState>,
    /// Unacknowledged packets.
    pub(super) unacked: u32,
    pub(super) repairs_made: u32,
    pub(super) shards: Option<Vec<Vec<u8>>>,
    pub(super) batch: Batch,
}

impl Outgoing {
    pub(super) fn new(frame: Frame, born: Instant, cut: Cut, restart: bool) -> Self {
        Self {
            frame,
            born,
            cut,
            restart,
            packets: vec![PacketState::default(); cut.packets() as usize],
            unacked: cut.packets(),
            repairs_made: 0,
            shards: None,
            batch: Batch {
                packets: cut.packets(),
                ..Batch::default()
            },
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.unacked == 0
    }

    pub(super) fn packet_mut(&mut self, number: u32) -> Option<&mut PacketState> {
        self.packets.get_mut(number as usize)
    }

    /// Content of a repair packet; the code's packets are computed on first use.
    pub(super) fn repair(&mut self, number: u32) -> Vec<u8> {
        if self.shards.is_none() {
            let (cut, index) = (self.cut, self.frame.index);
            let source: Vec<_> = (0..cut.packets())
                .map(|number| cut.pattern(index, number))
                .collect();
            let source: Vec<&[u8]> = source.iter().map(Vec::as_slice).collect();
            // The size was checked when the frame was added.
            self.shards = Some(block_code::encode(&source).unwrap_or_default());
        }
        let shard = self
            .shards
            .as_ref()
            .and_then(|all| all.get(number as usize));
        shard.cloned().unwrap_or_default()
    }
}

/// The frames in transmission, by index.
#[derive(Debug, Default)]
pub(super) struct Frames {
    first: u64,
    list: VecDeque<Outgoing>,
}

impl Frames {
    /// Index of the next frame.
    pub(super) fn next_index(&self) -> u64 {
        self.first + self.list.len() as u64
    }

    pub(super) fn push(&mut self, frame: Outgoing) {
        self.list.push_back(frame);
    }

    pub(super) fn get(&self, index: u64) -> Option<&Outgoing> {
        let at = index.checked_sub(self.first)?;
        self.list.get(usize::try_from(at).ok()?)
    }

    pub(super) fn get_mut(&mut self, index: u64) -> Option<&mut Outgoing> {
        let at = index.checked_sub(self.first)?;
        self.list.get_mut(usize::try_from(at).ok()?)
    }

    pub(super) fn packet(&self, index: u64, number: u32) -> Option<&PacketState> {
        self.get(index)?.packets.get(number as usize)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Outgoing> {
        self.list.iter()
    }

    pub(super) fn indices(&self) -> std::ops::Range<u64> {
        self.first..self.next_index()
    }

    /// Removes frames at the front that are complete or, with `age`, older than that.
    pub(super) fn discard(&mut self, now: Instant, age: Option<Duration>) {
        while let Some(frame) = self.list.front() {
            let old = age.is_some_and(|age| now.saturating_since(frame.born) > age);
            if !frame.is_complete() && !old {
                break;
            }
            self.list.pop_front();
            self.first += 1;
        }
    }
}
