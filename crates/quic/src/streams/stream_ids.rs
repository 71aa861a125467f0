//! Which streams exist: identifiers, counts and limits of the four kinds (RFC 9000, sections 2.1
//! and 4.6).
//!
//! A stream of the peer opens all lower ones of its kind. Those that no frame has named and the
//! application has not accepted exist as ranges only, so that the memory that a peer can claim is bounded
//! by the frames it sends and by the limit it was given, not by the identifiers it picks.

use swiftwater_units::{Dir, Side, StreamId};
use swiftwater_wire::ErrorCode;
use swiftwater_wire::frame::MAX_STREAMS;

use super::stream_map::StreamMap;
use crate::error::TransportError;
use crate::idle_memory::IdleMemory;
use crate::ranges::RangeSet;

/// Streams that this end opens.
#[derive(Debug, Default)]
struct LocalStreams {
    /// Index of the next stream.
    next: u64,
    /// The peer's limit.
    limit: u64,
    /// The limit of the last `STREAMS_BLOCKED`.
    reported_blocked_at: Option<u64>,
    /// An open failed at the limit.
    wanted: bool,
}

/// Streams that the peer opens.
#[derive(Debug)]
struct RemoteStreams {
    /// How many may be open at once.
    max_concurrent: u64,
    /// The limit that the peer was given.
    advertised: u64,
    /// All streams below this index were opened.
    opened: u64,
    /// All streams below this index were accepted.
    accepted: u64,
    /// How many are over.
    closed: u64,
    /// Opened, but not named by a frame and not accepted.
    untouched: RangeSet,
}

impl RemoteStreams {
    fn new(max_concurrent: u64) -> Self {
        let max_concurrent = max_concurrent.min(MAX_STREAMS);
        Self {
            max_concurrent,
            advertised: max_concurrent,
            opened: 0,
            accepted: 0,
            closed: 0,
            untouched: RangeSet::new(),
        }
    }

    /// The limit to advertise, if there is enough to add or the peer will need it soon.
    fn raise(&mut self) -> Option<u64> {
        let limit = self
            .max_concurrent
            .saturating_add(self.closed)
            .min(MAX_STREAMS);
        let more = limit - self.advertised;
        let left = self.advertised - self.opened;
        let due = more >= self.max_concurrent / 8 || left <= self.max_concurrent / 2;
        if more == 0 || !due {
            return None;
        }
        self.advertised = limit;
        Some(limit)
    }
}

/// Where a stream stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Lookup {
    /// It has state, under this key.
    Live(u32),
    /// The peer opened it, and it has no state yet.
    Untouched,
    /// It is over.
    Closed,
}

/// All streams of a connection.
#[derive(Debug)]
pub(super) struct StreamIds {
    side: Side,
    /// Only ever looked up, never iterated.
    keys: StreamMap<u32>,
    /// The stream looked up last, which is often the next one, too; it has state.
    recent: Option<(StreamId, u32)>,
    local: [LocalStreams; 2],
    remote: [RemoteStreams; 2],
}

impl StreamIds {
    pub(super) fn new(side: Side, max_bidi: u64, max_uni: u64) -> Self {
        Self {
            side,
            keys: StreamMap::default(),
            recent: None,
            local: [LocalStreams::default(), LocalStreams::default()],
            remote: [RemoteStreams::new(max_bidi), RemoteStreams::new(max_uni)],
        }
    }

    /// True if this end opens streams of this kind.
    pub(super) fn is_local(&self, id: StreamId) -> bool {
        id.initiator() == self.side
    }

    /// The key of a stream that has state.
    #[inline]
    pub(super) fn key(&self, id: StreamId) -> Option<u32> {
        match self.recent {
            Some((recent, key)) if recent == id => Some(key),
            _ => self.keys.get(&id).copied(),
        }
    }

    /// The same for a stream that will be looked up again soon.
    #[inline]
    pub(super) fn recall(&mut self, id: StreamId) -> Option<u32> {
        let key = self.key(id)?;
        self.recent = Some((id, key));
        Some(key)
    }

    /// Where a stream that was opened stands.
    pub(super) fn find(&self, id: StreamId) -> Lookup {
        match self.key(id) {
            Some(key) => Lookup::Live(key),
            None if self.is_local(id) => Lookup::Closed,
            None if self.remote[id.dir() as usize]
                .untouched
                .contains(id.index()) =>
            {
                Lookup::Untouched
            }
            None => Lookup::Closed,
        }
    }

    /// True if this end has opened the local stream `id`.
    pub(super) fn is_opened(&self, id: StreamId) -> bool {
        id.index() < self.local[id.dir() as usize].next
    }

    /// Local streams so far.
    pub(super) fn opened_by_us(&self, dir: Dir) -> u64 {
        self.local[dir as usize].next
    }

    /// The peer's limits are unknown again.
    pub(super) fn discard_local_limits(&mut self) {
        for local in &mut self.local {
            local.limit = 0;
            local.reported_blocked_at = None;
        }
    }

    /// The next local stream, or `None` at the peer's limit.
    pub(super) fn open(&mut self, dir: Dir) -> Option<StreamId> {
        let local = &mut self.local[dir as usize];
        if local.next >= local.limit {
            local.wanted = true;
            return None;
        }
        let id = StreamId::new(self.side, dir, local.next);
        local.next += 1;
        Some(id)
    }

    /// The limit to send in `STREAMS_BLOCKED`, once per limit.
    pub(super) fn blocked_at(&mut self, dir: Dir) -> Option<u64> {
        let local = &mut self.local[dir as usize];
        let blocked = local.wanted && local.reported_blocked_at != Some(local.limit);
        blocked.then(|| *local.reported_blocked_at.insert(local.limit))
    }

    /// Raises the peer's limit; true if an open had failed for it.
    pub(super) fn raise_local(&mut self, dir: Dir, limit: u64) -> bool {
        let local = &mut self.local[dir as usize];
        if limit <= local.limit {
            return false;
        }
        local.limit = limit;
        std::mem::take(&mut local.wanted)
    }

    /// The peer names its stream `id`: opens it and all lower ones of its kind if need be, and
    /// returns whether that was so; then `id` is to get state at once ([`StreamIds::insert`]).
    pub(super) fn open_remote(&mut self, id: StreamId) -> Result<bool, TransportError> {
        let remote = &mut self.remote[id.dir() as usize];
        if id.index() >= remote.advertised {
            return Err(TransportError::new(
                ErrorCode::STREAM_LIMIT_ERROR,
                format!("{id} is beyond the limit of {}", remote.advertised),
            ));
        }
        if id.index() < remote.opened {
            return Ok(false);
        }
        remote.untouched.insert(remote.opened..id.index());
        remote.opened = id.index() + 1;
        Ok(true)
    }

    /// The next stream of the peer, in order, that is not over.
    pub(super) fn accept(&mut self, dir: Dir) -> Option<(StreamId, Lookup)> {
        loop {
            let remote = &mut self.remote[dir as usize];
            if remote.accepted == remote.opened {
                return None;
            }
            let id = StreamId::new(!self.side, dir, remote.accepted);
            remote.accepted += 1;
            let found = self.find(id);
            if found != Lookup::Closed {
                return Some((id, found));
            }
        }
    }

    /// `id` has state from now on.
    pub(super) fn insert(&mut self, id: StreamId, key: u32) {
        if !self.is_local(id) {
            let untouched = &mut self.remote[id.dir() as usize].untouched;
            if !untouched.is_empty() {
                untouched.remove(id.index()..id.index() + 1);
            }
        }
        self.keys.insert(id, key);
        self.recent = Some((id, key));
    }

    /// `id` is over.
    pub(super) fn remove(&mut self, id: StreamId) {
        self.keys.remove(&id);
        self.recent = self.recent.filter(|(recent, _)| *recent != id);
        if !self.is_local(id) {
            self.remote[id.dir() as usize].closed += 1;
        }
    }

    /// The limit that the peer was given last.
    pub(super) fn remote_limit(&self, dir: Dir) -> u64 {
        self.remote[dir as usize].advertised
    }

    /// The limit to send in `MAX_STREAMS`, if one is due.
    pub(super) fn raise_remote(&mut self, dir: Dir) -> Option<u64> {
        self.remote[dir as usize].raise()
    }
}

impl IdleMemory for StreamIds {
    fn release_idle_memory(&mut self) {
        let Self {
            side: _,
            keys,
            recent: _,
            local: _,
            remote,
        } = self;
        keys.shrink_to_fit();
        for remote in remote {
            remote.untouched.shrink();
        }
    }
}
