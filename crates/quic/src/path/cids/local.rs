//! Connection IDs that this end issued for a path (RFC 9000, sections 5.1.1 and 19.16).

use std::collections::VecDeque;

use swiftwater_units::Instant;
use swiftwater_wire::{ConnectionId, ErrorCode};

use crate::error::TransportError;
use crate::idle_memory::IdleMemory;
use crate::lazy_box::LazyBox;

use super::retired::RetiredCids;

/// Connection IDs that this end keeps issued at most, whatever the peer would store.
const MAX_ISSUED: u8 = 8;
/// IDs that are issued anew because other connections have them; more collisions mean that hardly any IDs
/// are left.
const MAX_REISSUES: u8 = 64;

/// A connection ID that this end has just issued.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IssuedCid {
    pub(crate) sequence: u64,
    pub(crate) retire_prior_to: u64,
}

/// Connection IDs that this end issued.
#[derive(Debug)]
pub(crate) struct LocalCids {
    active: VecDeque<(u64, ConnectionId)>,
    next_sequence: u64,
    retire_prior_to: u64,
    /// How many the peer stores.
    limit: u8,
    /// IDs that were issued in the place of others.
    reissues: u8,
    /// Those that the peer has retired a short time ago.
    retired: LazyBox<RetiredCids>,
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
            retired: LazyBox::default(),
        }
    }

    /// None yet, for a path that is not open: the peer gets one (draft-ietf-quic-multipath-21, section
    /// 3.2.1).
    pub(crate) fn unopened() -> Self {
        Self {
            active: VecDeque::new(),
            next_sequence: 0,
            retire_prior_to: 0,
            limit: 1,
            reissues: 0,
            retired: LazyBox::default(),
        }
    }

    /// The sequence number of the next ID to be issued.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// The IDs that are issued and not retired.
    pub(crate) fn active(&self) -> impl Iterator<Item = ConnectionId> {
        self.active.iter().map(|(_, cid)| *cid)
    }

    /// The ID of a preferred address goes out with the transport parameters, as number 1 (RFC 9000,
    /// section 5.1.1). To be called before any other is issued.
    pub(crate) fn issue_preferred(&mut self, cid: ConnectionId) {
        self.active.push_back((self.next_sequence, cid));
        self.next_sequence += 1;
    }

    /// The peer's `active_connection_id_limit` became known.
    pub(crate) fn set_limit(&mut self, limit: u64) {
        self.limit = u8::try_from(limit).map_or(MAX_ISSUED, |limit| limit.min(MAX_ISSUED));
    }

    /// True if the peer can store another; never for zero-length IDs.
    pub(crate) fn needs_more(&self) -> bool {
        let live = self
            .active
            .iter()
            .filter(|(seq, _)| *seq >= self.retire_prior_to)
            .count();
        live < usize::from(self.limit) && self.active.iter().all(|(_, cid)| !cid.is_empty())
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

    /// True if packets to `cid` are accepted: the peer may use it, or has retired it a short time ago.
    pub(crate) fn accepts(&self, cid: &ConnectionId) -> bool {
        self.active.iter().any(|(_, active)| active == cid)
            || (self.retired.get()).is_some_and(|retired| retired.iter().any(|kept| kept == *cid))
    }

    /// Every ID to which packets are accepted.
    pub(crate) fn accepted(&self) -> impl Iterator<Item = ConnectionId> {
        let retired = self.retired.get().into_iter();
        self.active().chain(retired.flat_map(RetiredCids::iter))
    }

    /// Accepts packets to an ID that was retired until `expiry`. Returns another one to which none are accepted any
    /// more in its place.
    pub(crate) fn keep_retired(
        &mut self,
        cid: ConnectionId,
        expiry: Instant,
    ) -> Option<ConnectionId> {
        self.retired.need().keep(cid, expiry)
    }

    /// When packets to a retired ID cease to be accepted.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.retired.get()?.next_expiry()
    }

    /// Takes a retired ID out to which packets are accepted no more at `now`.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<ConnectionId> {
        let retired = self.retired.get_mut()?;
        let expired = retired.expire(now);
        if retired.is_empty() {
            self.retired.release();
        }
        expired
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
            retired: _,
        } = self;
        active.shrink_to_fit();
    }
}
