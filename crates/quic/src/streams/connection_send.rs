//! Sending state that all streams of a connection share: totals, the connection's flow control
//! limit, the order of sending.

use std::collections::{BTreeSet, VecDeque};

use swiftwater_units::{PathId, StreamId};

use super::Streams;
use super::chunk_pool::ChunkPool;
use super::expiry::Expiries;
use super::path_affinity::PathAffinities;
use super::send_stream::SendHalf;
use super::stream_scheduler::{Permitted, QueueMembership, ScheduledStream, StreamScheduler};
use crate::config::TransportConfig;
use crate::idle_memory::IdleMemory;
use crate::lazy_box::LazyBox;

/// The contribution of one sending half to the totals and to the queues.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SendTotals {
    pub(super) held: u64,
    pub(super) unsent: u64,
    pub(super) lost: u64,
    /// The half has something to send that needs no credit.
    retransmits: bool,
}

impl SendTotals {
    pub(super) fn of(send: &SendHalf) -> Self {
        let buffer = &send.buffer;
        Self {
            held: buffer.held(),
            unsent: send.sendable(),
            lost: buffer.lost(),
            retransmits: buffer.has_retransmission(),
        }
    }

    /// Adds the contribution of another half.
    pub(super) fn add(&mut self, other: Self) {
        self.held += other.held;
        self.unsent += other.unsent;
        self.lost += other.lost;
    }

    /// Takes back what [`SendTotals::add`] added.
    pub(super) fn subtract(&mut self, other: Self) {
        self.held -= other.held;
        self.unsent -= other.unsent;
        self.lost -= other.lost;
    }

    /// The queues that the half belongs in.
    pub(super) fn queues(&self) -> QueueMembership {
        QueueMembership {
            retransmissions: self.retransmits,
            new_data: self.unsent > 0,
        }
    }
}

/// Sending state of the connection.
#[derive(Debug)]
pub(super) struct ConnectionSend {
    /// Streams for any path.
    pub(super) scheduler: StreamScheduler,
    /// Streams for certain paths.
    pub(super) affinities: LazyBox<PathAffinities>,
    pub(super) expiries: Expiries,
    pub(super) pool: ChunkPool,
    pub(super) totals: SendTotals,
    pub(super) send_window: u64,
    /// Bytes that may wait to be sent; follows the congestion window.
    pub(super) unsent_window: u64,
    /// The peer's limit (`MAX_DATA`) and how much of it was sent.
    pub(super) limit: u64,
    pub(super) sent: u64,
    /// The limit of the last `DATA_BLOCKED`.
    pub(super) reported_blocked_at: Option<u64>,
    /// Streams that reached the peer's limit on them and may have more to send; see
    /// [`Streams::discard_unlimited`].
    pub(super) limited_streams: BTreeSet<u32>,
    /// Streams whose writers wait for room in the send window; some may be closed.
    pub(super) waiting: VecDeque<u32>,
}

impl ConnectionSend {
    pub(super) fn new(config: &TransportConfig) -> Self {
        Self {
            scheduler: StreamScheduler::new(config.starvation_share),
            affinities: LazyBox::default(),
            expiries: Expiries::default(),
            pool: ChunkPool::default(),
            totals: SendTotals::default(),
            send_window: config.send_window.get(),
            unsent_window: config.unsent_window.get(),
            limit: 0,
            sent: 0,
            reported_blocked_at: None,
            limited_streams: BTreeSet::new(),
            waiting: VecDeque::new(),
        }
    }

    /// Bytes written and kept.
    pub(super) fn held(&self) -> u64 {
        self.totals.held
    }

    /// Raises the peer's limit; true if `DATA_BLOCKED` was sent for the one before.
    pub(super) fn raise_limit(&mut self, limit: u64) -> bool {
        if limit <= self.limit {
            return false;
        }
        self.limit = limit;
        self.reported_blocked_at.take().is_some()
    }

    /// The stream of `key` is closed.
    pub(super) fn discard(&mut self, key: u32) {
        self.scheduler_of(key).discard(key);
        self.limited_streams.remove(&key);
    }

    pub(super) fn credit(&self) -> u64 {
        self.limit.saturating_sub(self.sent)
    }

    /// Bytes of new data sent.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// The peer's limit is unknown again, and of what was sent only `sent` bytes count.
    pub(super) fn discard_sent(&mut self, sent: u64) {
        self.limit = 0;
        self.sent = sent;
        self.reported_blocked_at = None;
    }

    /// True if data wait for the connection's limit.
    pub(super) fn is_blocked(&self) -> bool {
        let has_new_data = || {
            self.scheduler.has_new_data() || (self.assigned()).any(|of| of.scheduler.has_new_data())
        };
        self.credit() == 0 && has_new_data()
    }

    /// The stream that sends next on `path`, and what: of `permitted` kinds. Without a path: of those
    /// that may leave on any.
    pub(super) fn next(
        &self,
        permitted: Permitted,
        path: Option<PathId>,
    ) -> Option<ScheduledStream> {
        let permitted = Permitted {
            new_data: permitted.new_data && self.credit() > 0,
            ..permitted
        };
        if self.affinities.get().is_none() {
            return self.scheduler.next(permitted);
        }
        let next = |scheduler: &StreamScheduler| scheduler.next(permitted);
        let all = self.schedulers_on(path).filter_map(next);
        // Of equal urgency, what may leave on this path only.
        all.reduce(|first, next| {
            if next.urgency() <= first.urgency() {
                next
            } else {
                first
            }
        })
    }

    /// Brings totals and queues up to date after a change of the half of `key`.
    pub(super) fn account(
        &mut self,
        key: u32,
        id: StreamId,
        rank: u8,
        before: SendTotals,
        send: &SendHalf,
    ) {
        let after = SendTotals::of(send);
        self.totals.subtract(before);
        self.totals.add(after);
        let assigned = (self.affinities.get_mut()).and_then(|affinities| affinities.of_key(key));
        if let Some(of) = assigned {
            of.totals.subtract(before);
            of.totals.add(after);
        }
        let queues = after.queues();
        if queues != before.queues() {
            self.set_queues(key, id, rank, queues);
        }
    }

    /// The stream `id` of `key` has another rank from now on.
    pub(super) fn set_rank(&mut self, key: u32, id: StreamId, rank: u8, send: &SendHalf) {
        let queues = SendTotals::of(send).queues();
        self.set_queues(key, id, rank, queues);
    }
}

impl IdleMemory for ConnectionSend {
    fn release_idle_memory(&mut self) {
        let Self {
            scheduler,
            affinities,
            expiries: _,
            pool,
            totals: _,
            send_window: _,
            unsent_window: _,
            limit: _,
            sent: _,
            reported_blocked_at: _,
            limited_streams: _,
            waiting,
        } = self;
        scheduler.release_idle_memory();
        if let Some(affinities) = affinities.get_mut() {
            affinities.release_idle_memory();
        }
        pool.release_idle_memory();
        waiting.shrink_to_fit();
    }
}

impl Streams {
    /// Changes the sending half of `key`, keeping totals and lists.
    pub(super) fn with_send<R>(
        &mut self,
        key: u32,
        change: impl FnOnce(&mut SendHalf, &mut ChunkPool) -> R,
    ) -> Option<R> {
        let stream = self.slab.get_mut(key)?;
        let send = stream.send.as_mut()?;
        let before = SendTotals::of(send);
        let result = change(send, &mut self.outgoing.pool);
        let rank = stream.priority.rank();
        self.outgoing.account(key, stream.id, rank, before, send);
        Some(result)
    }
}
