//! Connection IDs that the peer issued for a path (RFC 9000, sections 5.1.2, 9.5 and 19.15).

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use swiftwater_wire::{ConnectionId, ErrorCode, ResetToken, frame};

use crate::error::TransportError;
use crate::idle_memory::IdleMemory;
use crate::ranges::RangeSet;

/// Values of `active_connection_id_limit` that are declared (RFC 9000, section 18.2: 2 at least).
pub(crate) const DECLARED_LIMITS: RangeInclusive<u64> = 2..=8;
/// Retirements that may wait for acknowledgement before the peer is at fault, per ID it may give.
const MAX_RETIREMENTS_PER_ID: usize = 8;
/// Ranges of retired sequence numbers that are kept.
const MAX_RETIRED_RANGES: usize = 32;

/// A connection ID that the peer issued.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemoteCid {
    pub(crate) sequence: u64,
    pub(crate) cid: ConnectionId,
    pub(crate) token: Option<ResetToken>,
}

/// Connection IDs that the peer issued.
#[derive(Debug)]
pub(crate) struct RemoteCids {
    current: RemoteCid,
    spare: VecDeque<RemoteCid>,
    /// In use on other paths than the current one.
    assigned: Vec<RemoteCid>,
    /// Sequence numbers that this end has retired, so that a frame sent twice brings none of them back.
    retired: RangeSet,
    retire_prior_to: u64,
    /// How many this end declared to store.
    limit: u64,
}

impl RemoteCids {
    /// Starts with the ID of the handshake. `limit` counts as the nearest of
    /// [`DECLARED_LIMITS`], which the transport parameter states.
    pub(crate) fn new(first: ConnectionId, limit: u64) -> Self {
        Self {
            current: RemoteCid {
                sequence: 0,
                cid: first,
                token: None,
            },
            spare: VecDeque::new(),
            assigned: Vec::new(),
            retired: RangeSet::new(),
            retire_prior_to: 0,
            limit: limit.clamp(*DECLARED_LIMITS.start(), *DECLARED_LIMITS.end()),
        }
    }

    /// Starts with the first ID that arrived for a path that is not open yet. `limit` as in
    /// [`RemoteCids::new`].
    pub(crate) fn first_issued(frame: &frame::NewConnectionId, limit: u64) -> Self {
        let mut cids = Self::new(frame.cid, limit);
        cids.current.sequence = frame.sequence;
        cids.current.token = Some(frame.reset_token);
        cids.retire_prior_to = frame.retire_prior_to;
        cids
    }

    /// True if the peer issued `cid` and it is not retired.
    pub(crate) fn contains(&self, cid: &ConnectionId) -> bool {
        self.active().any(|have| have.cid == *cid)
    }

    /// The sequence number that the peer's next ID has, as far as is known.
    pub(crate) fn next_sequence(&self) -> u64 {
        let last = self.active().map(|cid| cid.sequence).max();
        let retired = self.retired.iter().next_back().map(|range| range.end);
        last.map_or(0, |last| last + 1).max(retired.unwrap_or(0))
    }

    /// The ID in use.
    pub(crate) fn current(&self) -> ConnectionId {
        self.current.cid
    }

    /// The reset token of the ID in use.
    pub(crate) fn token(&self) -> Option<ResetToken> {
        self.current.token
    }

    /// The peer chose its ID in the handshake, or a Retry did.
    pub(crate) fn set_handshake_cid(&mut self, cid: ConnectionId) {
        self.current.cid = cid;
    }

    /// The handshake's ID has this reset token (transport parameter of a server).
    pub(crate) fn set_handshake_token(&mut self, token: ResetToken) {
        if self.current.sequence == 0 {
            self.current.token = Some(token);
        }
    }

    /// The server gave this ID for its preferred address (RFC 9000, section 9.6). It may be used
    /// anywhere.
    pub(crate) fn add_preferred(&mut self, cid: ConnectionId, token: ResetToken) {
        self.spare.push_back(RemoteCid {
            sequence: 1,
            cid,
            token: Some(token),
        });
    }

    /// True if `token` resets the connection.
    pub(crate) fn is_reset_token(&self, token: &ResetToken) -> bool {
        self.in_use().any(|have| have.token.as_ref() == Some(token))
    }

    /// True if the peer's connection ID has zero length.
    pub(crate) fn is_empty(&self) -> bool {
        self.current.cid.is_empty()
    }

    /// True if an ID waits to be used.
    pub(crate) fn has_spare(&self) -> bool {
        !self.spare.is_empty()
    }

    fn in_use(&self) -> impl Iterator<Item = &RemoteCid> {
        self.assigned.iter().chain([&self.current])
    }

    /// Takes a spare ID for another path; `None` if there is none. A peer without connection IDs
    /// is reached without on every path.
    pub(crate) fn assign(&mut self) -> Option<RemoteCid> {
        if self.is_empty() {
            return Some(self.current);
        }
        let next = self.spare.pop_front()?;
        self.assigned.push(next);
        Some(next)
    }

    /// Another path becomes the current one, with its ID; that of the current path stays assigned.
    /// Returns the latter.
    pub(crate) fn exchange(&mut self, next: RemoteCid) -> RemoteCid {
        let old = std::mem::replace(&mut self.current, next);
        if let Some(at) = self.assigned_at(next.sequence) {
            self.assigned[at] = old;
        }
        old
    }

    fn assigned_at(&self, sequence: u64) -> Option<usize> {
        self.assigned
            .iter()
            .position(|have| have.sequence == sequence)
    }

    /// A path that used the ID with this number is abandoned. Returns the number if the ID is to be
    /// retired for it.
    pub(crate) fn release(&mut self, sequence: u64) -> Option<u64> {
        let at = self.assigned_at(sequence)?;
        self.assigned.swap_remove(at);
        self.note_retired(&[sequence]);
        Some(sequence)
    }

    /// False if the ID with this number was retired since it was assigned.
    pub(crate) fn is_assigned(&self, sequence: u64) -> bool {
        self.is_empty() || self.assigned_at(sequence).is_some()
    }

    /// Takes a NEW_CONNECTION_ID frame (RFC 9000, section 19.15). `retirements` counts this end's
    /// RETIRE_CONNECTION_ID frames that are not acknowledged yet. Returns the sequence numbers to
    /// retire.
    pub(crate) fn on_new(
        &mut self,
        frame: &frame::NewConnectionId,
        retirements: usize,
    ) -> Result<Vec<u64>, TransportError> {
        let new = RemoteCid {
            sequence: frame.sequence,
            cid: frame.cid,
            token: Some(frame.reset_token),
        };
        self.check_new(&new)?;
        let is_known = self.is_known(new.sequence);
        let mut retire = self.retire_unused_prior_to(frame.retire_prior_to);
        if !is_known {
            if new.sequence < self.retire_prior_to {
                // Arrived after the order to retire it.
                retire.push(new.sequence);
            } else {
                self.add_spare(new);
            }
        }
        if self.current.sequence < self.retire_prior_to {
            retire.extend(self.switch_to_spare());
        }
        self.check_limits(retirements + retire.len())?;
        self.note_retired(&retire);
        Ok(retire)
    }

    /// The IDs that are not retired.
    fn active(&self) -> impl Iterator<Item = &RemoteCid> {
        self.spare.iter().chain(self.in_use())
    }

    /// A new ID must not contradict one that is not retired, and there are none if the peer uses
    /// zero-length IDs.
    fn check_new(&self, new: &RemoteCid) -> Result<(), TransportError> {
        let violation = |reason| Err(TransportError::new(ErrorCode::PROTOCOL_VIOLATION, reason));
        if self.is_empty() {
            return violation("a connection ID for a peer that uses none");
        }
        let clashing = self
            .active()
            .find(|have| (have.sequence == new.sequence) != (have.cid == new.cid));
        match clashing {
            Some(have) if have.cid == new.cid => {
                violation("the same connection ID under two sequence numbers")
            }
            Some(_) => violation("two connection IDs under the same sequence number"),
            None => Ok(()),
        }
    }

    /// True if an ID with this number came before.
    fn is_known(&self, sequence: u64) -> bool {
        let mut active = self.active();
        active.any(|have| have.sequence == sequence) || self.retired.contains(sequence)
    }

    /// IDs with smaller numbers than `limit` are to be retired: takes those out that are not current, and
    /// returns their numbers.
    fn retire_unused_prior_to(&mut self, limit: u64) -> Vec<u64> {
        let mut retire = Vec::new();
        if limit > self.retire_prior_to {
            self.retire_prior_to = limit;
            let mut keeps = |have: &RemoteCid| {
                let keep = have.sequence >= limit;
                if !keep {
                    retire.push(have.sequence);
                }
                keep
            };
            self.spare.retain(&mut keeps);
            self.assigned.retain(&mut keeps);
        }
        retire
    }

    fn add_spare(&mut self, new: RemoteCid) {
        let at = self
            .spare
            .partition_point(|have| have.sequence < new.sequence);
        self.spare.insert(at, new);
    }

    /// The peer must keep to the declared limit, and not have IDs retired faster than
    /// RETIRE_CONNECTION_ID frames are acknowledged; `retirements` counts the latter.
    fn check_limits(&self, retirements: usize) -> Result<(), TransportError> {
        let excess = |reason| {
            Err(TransportError::new(
                ErrorCode::CONNECTION_ID_LIMIT_ERROR,
                reason,
            ))
        };
        if (self.spare.len() + self.assigned.len()) as u64 + 1 > self.limit {
            return excess("more connection IDs than active_connection_id_limit");
        }
        if retirements > MAX_RETIREMENTS_PER_ID * self.limit as usize {
            return excess("connection IDs are retired faster than they are used");
        }
        Ok(())
    }

    /// Records what was retired. A peer that leaves many gaps loses the lowest one: numbers in
    /// it then count as retired too.
    fn note_retired(&mut self, retired: &[u64]) {
        for &sequence in retired {
            self.retired.insert_one(sequence);
        }
        while self.retired.len() > MAX_RETIRED_RANGES {
            let second = self.retired.iter().nth(1);
            self.retired
                .insert(0..second.map_or(0, |range| range.start));
        }
    }

    /// Uses the next spare ID from now on; returns the sequence number of the one before, to be retired.
    fn switch_to_spare(&mut self) -> Option<u64> {
        let next = self.spare.pop_front()?;
        let old = std::mem::replace(&mut self.current, next);
        Some(old.sequence)
    }

    /// Uses another ID from now on, if there is a spare one (RFC 9000, section 9.5). Returns the
    /// sequence number to retire.
    pub(crate) fn rotate(&mut self) -> Option<u64> {
        let retired = self.switch_to_spare();
        self.note_retired(retired.as_slice());
        retired
    }
}

impl IdleMemory for RemoteCids {
    fn release_idle_memory(&mut self) {
        let Self {
            current: _,
            spare,
            assigned,
            retired,
            retire_prior_to: _,
            limit: _,
        } = self;
        spare.shrink_to_fit();
        assigned.shrink_to_fit();
        retired.shrink();
    }
}
