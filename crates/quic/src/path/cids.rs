//! Connection IDs of a path: those we issued and those the peer gave us (RFC 9000, section 5.1).

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use swiftwater_wire::{ConnectionId, ErrorCode, ResetToken, frame};

use crate::error::TransportError;
use crate::idle_memory::IdleMemory;
use crate::ranges::RangeSet;

/// Connection IDs that we keep issued at most, whatever the peer would store.
const MAX_ISSUED: u64 = 8;
/// IDs that are issued anew because other connections have them; more collisions mean that hardly any IDs
/// are left.
const MAX_REISSUES: u8 = 64;
/// Values of `active_connection_id_limit` that we promise (RFC 9000, section 18.2: 2 at least).
pub(crate) const PROMISED_LIMITS: RangeInclusive<u64> = 2..=8;
/// Retirements that may wait for acknowledgement before the peer is at fault, per ID it may give.
const MAX_RETIREMENTS_PER_ID: usize = 8;
/// Ranges of retired sequence numbers that are remembered.
const MAX_RETIRED_RANGES: usize = 32;

/// The connection IDs of a path, in both directions.
#[derive(Debug)]
pub(crate) struct PathCids {
    pub(crate) local: LocalCids,
    pub(crate) remote: RemoteCids,
    /// Our connection ID that the peer used last on the address in use.
    pub(crate) reached_by: ConnectionId,
    /// The peer's connection ID in use was seen on another address: the next one that comes replaces it.
    pub(crate) needs_fresh_remote: bool,
}

impl IdleMemory for PathCids {
    fn release_idle_memory(&mut self) {
        let Self {
            local,
            remote,
            reached_by: _,
            needs_fresh_remote: _,
        } = self;
        local.release_idle_memory();
        remote.release_idle_memory();
    }
}

/// A connection ID that we have just issued.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IssuedCid {
    pub(crate) sequence: u64,
    pub(crate) retire_prior_to: u64,
}

/// Connection IDs that the peer uses to reach us.
#[derive(Debug)]
pub(crate) struct LocalCids {
    active: VecDeque<(u64, ConnectionId)>,
    next_sequence: u64,
    retire_prior_to: u64,
    /// How many the peer stores.
    limit: u64,
    /// IDs that were issued in the place of others.
    reissues: u8,
}

impl LocalCids {
    /// Starts with the ID of the handshake.
    pub(crate) fn new(first: ConnectionId) -> Self {
        Self {
            active: VecDeque::from([(0, first)]),
            next_sequence: 1,
            retire_prior_to: 0,
            limit: 1,
            reissues: 0,
        }
    }

    /// The ID of a preferred address goes out with the transport parameters, as number 1 (RFC 9000,
    /// section 5.1.1). To be called before any other is issued.
    pub(crate) fn issue_preferred(&mut self, cid: ConnectionId) {
        self.active.push_back((self.next_sequence, cid));
        self.next_sequence += 1;
    }

    /// The peer's `active_connection_id_limit` became known.
    pub(crate) fn set_limit(&mut self, limit: u64) {
        self.limit = limit.min(MAX_ISSUED);
    }

    /// True if the peer can store another; never for zero-length IDs.
    pub(crate) fn wants_more(&self) -> bool {
        let live = self
            .active
            .iter()
            .filter(|(seq, _)| *seq >= self.retire_prior_to)
            .count();
        (live as u64) < self.limit && self.active.iter().all(|(_, cid)| !cid.is_empty())
    }

    /// Issues `cid`.
    pub(crate) fn issue(&mut self, cid: ConnectionId) -> IssuedCid {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.active.push_back((sequence, cid));
        IssuedCid {
            sequence,
            retire_prior_to: self.retire_prior_to,
        }
    }

    /// The sequence number of `cid`, if it is issued and not retired.
    pub(crate) fn sequence_of(&self, cid: &ConnectionId) -> Option<u64> {
        let found = self.active.iter().find(|(_, active)| active == cid);
        found.map(|(sequence, _)| *sequence)
    }

    /// Issues `cid` under a sequence number whose ID the peer has not been sent. `None` if that was done
    /// [`MAX_REISSUES`] times.
    pub(crate) fn reissue(&mut self, sequence: u64, cid: ConnectionId) -> Option<IssuedCid> {
        let issued = self.active.iter_mut().find(|(have, _)| *have == sequence)?;
        if self.reissues >= MAX_REISSUES {
            return None;
        }
        self.reissues += 1;
        issued.1 = cid;
        Some(IssuedCid {
            sequence,
            retire_prior_to: self.retire_prior_to,
        })
    }

    /// Asks the peer to stop using every ID issued so far, unless it still has to answer the last
    /// time that it was asked (RFC 9000, section 5.1.2).
    pub(crate) fn retire_all(&mut self) {
        let has_answered = |(sequence, _): &(u64, _)| *sequence >= self.retire_prior_to;
        let mut active = self.active.iter();
        if active.all(|each| has_answered(each) && !each.1.is_empty()) {
            self.retire_prior_to = self.next_sequence;
        }
    }

    /// The peer will use `sequence` no more (RFC 9000, section 19.16). `used` is the ID of the packet
    /// that said so.
    pub(crate) fn on_retired(
        &mut self,
        sequence: u64,
        used: &ConnectionId,
    ) -> Result<Option<ConnectionId>, TransportError> {
        if sequence >= self.next_sequence {
            return Err(TransportError::new(
                ErrorCode::PROTOCOL_VIOLATION,
                "retired a connection ID that was never issued",
            ));
        }
        let Some(at) = self.active.iter().position(|(have, _)| *have == sequence) else {
            return Ok(None);
        };
        if self.active[at].1 == *used {
            return Err(TransportError::new(
                ErrorCode::PROTOCOL_VIOLATION,
                "retired the connection ID of the packet itself",
            ));
        }
        Ok(self.active.remove(at).map(|(_, cid)| cid))
    }

    /// True if the peer may use `cid`.
    pub(crate) fn is_active(&self, cid: &ConnectionId) -> bool {
        self.active.iter().any(|(_, active)| active == cid)
    }

    /// The oldest ID that is not retired; the handshake's until the peer retires it.
    pub(crate) fn first(&self) -> ConnectionId {
        self.active.front().map(|(_, cid)| *cid).unwrap_or_default()
    }
}

impl IdleMemory for LocalCids {
    fn release_idle_memory(&mut self) {
        let Self {
            active,
            next_sequence: _,
            retire_prior_to: _,
            limit: _,
            reissues: _,
        } = self;
        active.shrink_to_fit();
    }
}

/// A connection ID that the peer gave us.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemoteCid {
    pub(crate) sequence: u64,
    pub(crate) cid: ConnectionId,
    pub(crate) token: Option<ResetToken>,
}

/// What a NEW_CONNECTION_ID frame brought about.
#[derive(Debug, Default)]
pub(crate) struct NewCidOutcome {
    /// Sequence numbers to retire.
    pub(crate) retire: Vec<u64>,
}

/// Connection IDs that we use to reach the peer.
#[derive(Debug)]
pub(crate) struct RemoteCids {
    current: RemoteCid,
    spare: VecDeque<RemoteCid>,
    /// In use on other paths than the current one.
    assigned: Vec<RemoteCid>,
    /// Sequence numbers that we have retired, so that a frame sent twice brings none of them back.
    retired: RangeSet,
    retire_prior_to: u64,
    /// How many we promised to store.
    limit: u64,
}

impl RemoteCids {
    /// Starts with the ID of the handshake. `limit` counts as the nearest of
    /// [`PROMISED_LIMITS`], which is what the peer was told.
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
            limit: limit.clamp(*PROMISED_LIMITS.start(), *PROMISED_LIMITS.end()),
        }
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

    /// True if the peer wants packets without connection ID.
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

    /// Another path is given up: its ID is to be retired.
    pub(crate) fn release(&mut self, sequence: u64) -> NewCidOutcome {
        let mut outcome = NewCidOutcome::default();
        if let Some(at) = self.assigned_at(sequence) {
            self.assigned.swap_remove(at);
            outcome.retire.push(sequence);
        }
        self.note_retired(&outcome);
        outcome
    }

    /// False if the ID with this number was retired since it was assigned.
    pub(crate) fn is_assigned(&self, sequence: u64) -> bool {
        self.is_empty() || self.assigned_at(sequence).is_some()
    }

    /// Takes a NEW_CONNECTION_ID frame (RFC 9000, section 19.15). `retirements` counts our
    /// RETIRE_CONNECTION_ID frames that are not acknowledged yet.
    pub(crate) fn on_new(
        &mut self,
        frame: &frame::NewConnectionId,
        retirements: usize,
    ) -> Result<NewCidOutcome, TransportError> {
        let violation = |reason| Err(TransportError::new(ErrorCode::PROTOCOL_VIOLATION, reason));
        if self.current.cid.is_empty() {
            return violation("a connection ID for a peer that uses none");
        }
        let new = RemoteCid {
            sequence: frame.sequence,
            cid: frame.cid,
            token: Some(frame.reset_token),
        };
        let clashing = self
            .spare
            .iter()
            .chain(self.in_use())
            .find(|have| (have.sequence == new.sequence) != (have.cid == new.cid));
        if let Some(have) = clashing {
            return violation(if have.cid == new.cid {
                "the same connection ID under two sequence numbers"
            } else {
                "two connection IDs under the same sequence number"
            });
        }
        let mut outcome = NewCidOutcome::default();
        let is_known = self
            .spare
            .iter()
            .chain(self.in_use())
            .any(|have| have.sequence == new.sequence)
            || self.retired.contains(new.sequence);
        if frame.retire_prior_to > self.retire_prior_to {
            self.retire_prior_to = frame.retire_prior_to;
            let limit = self.retire_prior_to;
            let mut keeps = |have: &RemoteCid| {
                let keep = have.sequence >= limit;
                if !keep {
                    outcome.retire.push(have.sequence);
                }
                keep
            };
            self.spare.retain(&mut keeps);
            self.assigned.retain(&mut keeps);
        }
        if new.sequence < self.retire_prior_to {
            // Arrived after the order to retire it.
            if !is_known {
                outcome.retire.push(new.sequence);
            }
        } else if !is_known {
            let at = self
                .spare
                .partition_point(|have| have.sequence < new.sequence);
            self.spare.insert(at, new);
        }
        if self.current.sequence < self.retire_prior_to
            && let Some(next) = self.spare.pop_front()
        {
            self.switch_to(next, &mut outcome);
        }
        if (self.spare.len() + self.assigned.len()) as u64 + 1 > self.limit {
            return Err(TransportError::new(
                ErrorCode::CONNECTION_ID_LIMIT_ERROR,
                "more connection IDs than active_connection_id_limit",
            ));
        }
        if retirements + outcome.retire.len() > MAX_RETIREMENTS_PER_ID * self.limit as usize {
            return Err(TransportError::new(
                ErrorCode::CONNECTION_ID_LIMIT_ERROR,
                "connection IDs are retired faster than they are used",
            ));
        }
        self.note_retired(&outcome);
        Ok(outcome)
    }

    /// Remembers what was retired. A peer that leaves many gaps loses the lowest one: numbers in
    /// it then count as retired too.
    fn note_retired(&mut self, outcome: &NewCidOutcome) {
        for &sequence in &outcome.retire {
            self.retired.insert_one(sequence);
        }
        while self.retired.len() > MAX_RETIRED_RANGES {
            let second = self.retired.iter().nth(1);
            self.retired
                .insert(0..second.map_or(0, |range| range.start));
        }
    }

    fn switch_to(&mut self, next: RemoteCid, outcome: &mut NewCidOutcome) {
        let old = std::mem::replace(&mut self.current, next);
        outcome.retire.push(old.sequence);
    }

    /// Uses another ID from now on, if there is a spare one (RFC 9000, section 9.5).
    pub(crate) fn rotate(&mut self) -> NewCidOutcome {
        let mut outcome = NewCidOutcome::default();
        if let Some(next) = self.spare.pop_front() {
            self.switch_to(next, &mut outcome);
        }
        self.note_retired(&outcome);
        outcome
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
