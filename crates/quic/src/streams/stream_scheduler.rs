//! The order of sending among streams: by urgency (RFC 9218), lost data before new data, with a share
//! that keeps less urgent streams from starving.
//!
//! Strictly by urgency, an endless urgent stream would keep all others from ever sending. So one
//! turn in `share` goes past the first rank to the others that wait, round-robin over the ranks; within
//! its rank a stream then waits as it would without more urgent ones. A rank gets at least
//! 1 / (share * ranks waiting) of the bytes. That costs the urgent streams 1 / share at most, and
//! nothing while no other stream waits.

use swiftwater_units::StreamId;

use super::send_queues::{QUANTUM, SendQueues};
use crate::idle_memory::IdleMemory;

/// What a stream has to send.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Transmission {
    /// Lost bytes or a bare FIN: needs no credit.
    Retransmission,
    /// New bytes: needs the connection's credit.
    New,
}

/// The kinds of transmissions to choose from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Permitted {
    pub(super) retransmissions: bool,
    pub(super) new_data: bool,
}

impl Permitted {
    /// Both kinds.
    pub(super) const ALL: Self = Self {
        retransmissions: true,
        new_data: true,
    };
    /// New data only.
    pub(super) const NEW_DATA: Self = Self {
        retransmissions: false,
        new_data: true,
    };
}

/// The kinds of transmissions that one stream has.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct QueueMembership {
    pub(super) retransmissions: bool,
    pub(super) new_data: bool,
}

/// The stream that sends next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct ScheduledStream {
    pub(super) transmission: Transmission,
    pub(super) key: u32,
    rank: u8,
    /// Chosen in spite of more urgent streams.
    past_urgent: bool,
}

impl ScheduledStream {
    /// Urgency of the stream, 0 to 7.
    pub(super) fn urgency(self) -> u8 {
        // Two ranks to an urgency.
        self.rank / 2
    }
}

/// All streams that have something to send.
#[derive(Debug)]
pub(super) struct StreamScheduler {
    retransmissions: SendQueues,
    new_data: SendQueues,
    /// One turn in this many goes past the most urgent rank; below 2 none.
    share: u32,
    /// Bytes to send by urgency before the next such turn.
    bytes_by_urgency: u64,
    /// Bytes left of such a turn.
    bytes_past_urgent: u64,
    /// The rank that had the last one.
    last_rank_past_urgent: u8,
}

impl StreamScheduler {
    /// No streams; one turn in `share` is given regardless of urgency, none if it is below 2.
    pub(super) fn new(share: u32) -> Self {
        Self {
            retransmissions: SendQueues::default(),
            new_data: SendQueues::default(),
            share,
            bytes_by_urgency: interval(share),
            bytes_past_urgent: QUANTUM,
            last_rank_past_urgent: 0,
        }
    }

    /// See [`TransportConfig::starvation_share`](crate::TransportConfig::starvation_share).
    pub(super) fn share(&self) -> u32 {
        self.share
    }

    /// True if a stream has new bytes.
    pub(super) fn has_new_data(&self) -> bool {
        !self.new_data.is_empty()
    }

    /// True if a stream may send: lost bytes, or with `credit` new ones.
    pub(super) fn has_any(&self, credit: bool) -> bool {
        !self.retransmissions.is_empty() || (credit && !self.new_data.is_empty())
    }

    /// Sets what the stream of `key` has to send.
    pub(super) fn set(&mut self, key: u32, id: StreamId, rank: u8, queues: QueueMembership) {
        self.retransmissions
            .set(key, id, rank, queues.retransmissions);
        self.new_data.set(key, id, rank, queues.new_data);
    }

    /// Removes the stream of `key`.
    pub(super) fn discard(&mut self, key: u32) {
        self.retransmissions.remove(key);
        self.new_data.remove(key);
    }

    /// The stream that sends next, and which of the `permitted` kinds.
    pub(super) fn next(&self, permitted: Permitted) -> Option<ScheduledStream> {
        let ranks = |queues: &SendQueues, permitted| if permitted { queues.ranks() } else { 0 };
        let lost = ranks(&self.retransmissions, permitted.retransmissions);
        let new = ranks(&self.new_data, permitted.new_data);
        if lost | new == 0 {
            return None;
        }
        let (first_lost, first_new) = (lost.trailing_zeros(), new.trailing_zeros());
        // Two ranks to an urgency.
        let (mut transmission, mut rank) = if first_lost / 2 <= first_new / 2 {
            (Transmission::Retransmission, first_lost as u8)
        } else {
            (Transmission::New, first_new as u8)
        };
        let waiting = (lost | new) & !(1 << rank);
        let past_urgent = self.share > 1 && self.bytes_by_urgency == 0 && waiting != 0;
        if past_urgent {
            rank = rank_after(self.last_rank_past_urgent, waiting);
            transmission = if lost & (1 << rank) != 0 {
                Transmission::Retransmission
            } else {
                Transmission::New
            };
        }
        let queues = match transmission {
            Transmission::Retransmission => &self.retransmissions,
            Transmission::New => &self.new_data,
        };
        queues.first_of(rank).map(|key| ScheduledStream {
            transmission,
            key,
            rank,
            past_urgent,
        })
    }

    /// `scheduled` has sent `bytes`.
    pub(super) fn spend(&mut self, scheduled: ScheduledStream, bytes: u64) {
        let queues = match scheduled.transmission {
            Transmission::Retransmission => &mut self.retransmissions,
            Transmission::New => &mut self.new_data,
        };
        queues.spend(scheduled.key, bytes);
        let bytes = bytes.max(1);
        if !scheduled.past_urgent {
            self.bytes_by_urgency = self.bytes_by_urgency.saturating_sub(bytes);
        } else if self.bytes_past_urgent > bytes {
            self.bytes_past_urgent -= bytes;
        } else {
            self.bytes_past_urgent = QUANTUM;
            self.bytes_by_urgency = interval(self.share);
            self.last_rank_past_urgent = scheduled.rank;
        }
    }
}

impl IdleMemory for StreamScheduler {
    fn release_idle_memory(&mut self) {
        let Self {
            retransmissions,
            new_data,
            share: _,
            bytes_by_urgency: _,
            bytes_past_urgent: _,
            last_rank_past_urgent: _,
        } = self;
        retransmissions.release_idle_memory();
        new_data.release_idle_memory();
    }
}

/// Bytes sent by urgency between two turns that are not.
fn interval(share: u32) -> u64 {
    u64::from(share.saturating_sub(1)) * QUANTUM
}

/// The next of `ranks`, which are not none, after `rank`, around the end if need be.
fn rank_after(rank: u8, ranks: u16) -> u8 {
    let above = u32::from(ranks) >> (u32::from(rank) + 1) << (u32::from(rank) + 1);
    let chosen = if above == 0 { u32::from(ranks) } else { above };
    chosen.trailing_zeros() as u8
}
