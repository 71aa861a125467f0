//! Whose turn it is to send: by urgency, lost data before new ones, and nobody starved.
//!
//! Strictly by urgency, an endless urgent stream would keep all others from ever sending. So one
//! turn in `share` goes past the first rank to the others that wait, each rank in its turn; within
//! its rank a stream then waits as it would without more urgent ones. A rank gets at least
//! 1 / (share * ranks waiting) of the bytes. What that costs the urgent streams is 1 / share at most,
//! and nothing while nobody else waits.

use swiftwater_units::StreamId;

use super::send_queues::{QUANTUM, SendQueues};

/// Why a stream has something to send.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Transmission {
    /// Lost bytes or a bare FIN: needs no credit.
    Retransmission,
    /// New bytes: needs the connection's credit.
    New,
}

/// One turn of a stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct ScheduledStream {
    pub(super) work: Transmission,
    pub(super) key: u32,
    rank: u8,
    /// Given in spite of more urgent streams.
    relief: bool,
}

/// All streams that have something to send.
#[derive(Debug)]
pub(super) struct StreamScheduler {
    retransmissions: SendQueues,
    new_data: SendQueues,
    /// Every so many turns one is given past the most urgent rank; below 2 none.
    share: u32,
    /// Bytes to send by urgency before the next such turn.
    until_relief: u64,
    /// Bytes left of such a turn.
    relief: u64,
    /// The rank that had the last one.
    relieved: u8,
}

impl StreamScheduler {
    /// Nobody is ready; one turn in `share` is given regardless of urgency, none if it is below 2.
    pub(super) fn new(share: u32) -> Self {
        Self {
            retransmissions: SendQueues::default(),
            new_data: SendQueues::default(),
            share,
            until_relief: interval(share),
            relief: QUANTUM,
            relieved: 0,
        }
    }

    /// Gives back memory if nobody is ready.
    pub(super) fn release_idle_memory(&mut self) {
        self.retransmissions.release_idle_memory();
        self.new_data.release_idle_memory();
    }

    /// True if a stream has new bytes.
    pub(super) fn has_fresh(&self) -> bool {
        !self.new_data.is_empty()
    }

    /// True if anybody may send: whoever has something to repair, and with `credit` whoever has new
    /// bytes.
    pub(super) fn has_any(&self, credit: bool) -> bool {
        !self.retransmissions.is_empty() || (credit && !self.new_data.is_empty())
    }

    /// The stream of `key` has, or no longer has, something to send of either sort.
    pub(super) fn set(&mut self, key: u32, id: StreamId, rank: u8, repair: bool, fresh: bool) {
        self.retransmissions.set(key, id, rank, repair);
        self.new_data.set(key, id, rank, fresh);
    }

    /// The stream of `key` is over.
    pub(super) fn forget(&mut self, key: u32) {
        self.retransmissions.remove(key);
        self.new_data.remove(key);
    }

    /// Whose turn it is, if new bytes may be sent or not (`credit`).
    pub(super) fn next(&self, credit: bool) -> Option<ScheduledStream> {
        let repair = self.retransmissions.ranks();
        let fresh = if credit { self.new_data.ranks() } else { 0 };
        if repair | fresh == 0 {
            return None;
        }
        let (first_repair, first_fresh) = (repair.trailing_zeros(), fresh.trailing_zeros());
        // Two ranks to an urgency.
        let (mut work, mut rank) = if first_repair / 2 <= first_fresh / 2 {
            (Transmission::Retransmission, first_repair as u8)
        } else {
            (Transmission::New, first_fresh as u8)
        };
        let waiting = (repair | fresh) & !(1 << rank);
        let relief = self.share > 1 && self.until_relief == 0 && waiting != 0;
        if relief {
            rank = rank_after(self.relieved, waiting);
            work = if repair & (1 << rank) != 0 {
                Transmission::Retransmission
            } else {
                Transmission::New
            };
        }
        let list = match work {
            Transmission::Retransmission => &self.retransmissions,
            Transmission::New => &self.new_data,
        };
        list.first_of(rank).map(|key| ScheduledStream {
            work,
            key,
            rank,
            relief,
        })
    }

    /// `bytes` were sent in `turn`.
    pub(super) fn spend(&mut self, turn: ScheduledStream, bytes: u64) {
        let list = match turn.work {
            Transmission::Retransmission => &mut self.retransmissions,
            Transmission::New => &mut self.new_data,
        };
        list.spend(turn.key, bytes);
        let bytes = bytes.max(1);
        if !turn.relief {
            self.until_relief = self.until_relief.saturating_sub(bytes);
        } else if self.relief > bytes {
            self.relief -= bytes;
        } else {
            self.relief = QUANTUM;
            self.until_relief = interval(self.share);
            self.relieved = turn.rank;
        }
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
