//! Connection migration on one path: its addresses change, after validation or before (RFC 9000,
//! sections 8.2 and 9).
//!
//! A path has one pair of addresses in use; `path::CandidatePaths` holds those that are probed and the
//! previous one. `validation` handles challenges, responses and their timeouts; `follow` is a server's
//! part, `request` a client's. Here is what they share: the switch from one pair of addresses to another,
//! and what is retired with a candidate path.

mod follow;
mod request;
mod validation;

use std::net::SocketAddr;
use std::time::Duration;

use swiftwater_units::Instant;
use swiftwater_wire::ConnectionId;

use crate::control::Control;
use crate::events::Event;
use crate::handshake::Handshake;
use crate::identity::Identity;
use crate::monitor::Monitor;
use crate::observe::Observation;
use crate::outbox::Outbox;
use crate::path::{Address, CandidatePath, PathState, Role, Switch};
use crate::policy::PathPhase;

/// Probe timeouts for which the previous path is kept: late packets and challenges still come.
const PREVIOUS_PATH_PTOS: u32 = 3;

/// One path, and the owners that its migration concerns, borrowed for one event.
pub(crate) struct Migration<'a> {
    pub(crate) now: Instant,
    pub(crate) identity: &'a mut Identity,
    pub(crate) handshake: &'a Handshake,
    pub(crate) path: &'a mut PathState,
    pub(crate) control: &'a mut Control,
    pub(crate) outbox: &'a mut Outbox,
    pub(crate) monitor: &'a mut Monitor,
    /// The delay that the peer may add to acknowledgements.
    pub(crate) max_ack_delay: Duration,
    /// The connection is neither closing nor draining.
    pub(crate) is_open: bool,
    /// What the event brought about for others.
    pub(crate) facts: MigrationFacts,
}

/// What a step of migration brought about for other owners than those it borrows. Reset tokens and their
/// addresses may have changed in any case.
#[derive(Debug, Default)]
pub(crate) struct MigrationFacts {
    /// Other addresses are in use: the size of datagrams may be another.
    pub(crate) has_switched: bool,
    pub(crate) moved: Option<Moved>,
    pub(crate) failure: Option<PathFailure>,
    /// The addresses in use carry full datagrams both ways.
    pub(crate) works: bool,
}

/// Which end has moved to a validated address.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Moved {
    /// This client, to this path.
    Local(Address),
    /// The client of this server, to this address.
    Peer(SocketAddr),
}

/// Why a path can't be used any more.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PathFailure {
    /// It carries small datagrams and no full ones: nothing but a close may be sent there (section 14.2).
    TooNarrow,
    /// The peer does not answer at its only address.
    Unreachable,
}

/// A packet that was received on the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) address: Address,
    /// The connection ID that it was sent to.
    pub(crate) dst_cid: ConnectionId,
    /// Bytes of its datagram.
    pub(crate) datagram_len: usize,
}

impl Migration<'_> {
    /// Time for which packets may still be under way.
    fn linger(&self) -> Duration {
        self.path.pto(self.max_ack_delay) * PREVIOUS_PATH_PTOS
    }

    /// Probe timeout to validate new addresses with: the larger of the present one and that of a path
    /// of which nothing is known (RFC 9000, section 8.2.4).
    fn probing_pto(&self) -> Duration {
        let present = self.path.pto(self.max_ack_delay);
        present.max(self.identity.config.initial_rtt * 3)
    }

    /// Makes candidate path `at` the one in use; `rtt` is the time that its validation took, if it is
    /// known. The path in use so far is kept as the previous one if it was validated: only such a one may be
    /// reverted to (section 9.3.2).
    fn switch_to(&mut self, at: usize, rtt: Option<Duration>) {
        let previous = self.exchange(at, rtt);
        if !previous.amplification.is_validated() {
            return self.retire_cid_of(&previous);
        }
        let candidates = &mut self.path.network.candidates;
        let older = candidates.in_role(Role::Previous);
        let older = older.map(|older| candidates.remove(older));
        candidates.push(previous);
        if let Some(older) = older {
            self.retire_cid_of(&older);
        }
    }

    /// Puts candidate path `at` in the place of the one in use; returns the latter.
    fn exchange(&mut self, at: usize, rtt: Option<Duration>) -> CandidatePath {
        let switch = Switch {
            now: self.now,
            rtt,
            linger: self.linger(),
            config: &self.identity.config,
        };
        let rng = &mut self.identity.random.generator;
        let previous = self.path.switch_to(at, &switch, rng);
        self.facts.has_switched = true;
        self.monitor.stats.path_changes += 1;
        let (from, to) = (previous.address, self.path.network.address);
        self.monitor
            .observe(self.now, &Observation::PathChanged { from, to });
        self.continue_opening();
        previous
    }

    /// A path that is being opened has moved (draft-ietf-quic-multipath-21, section 3.1.3): the addresses in use
    /// now decide whether it works. They may have answered before the path moved there.
    fn continue_opening(&mut self) {
        let pto = self.probing_pto();
        let network = &mut self.path.network;
        let is_undecided = network.validation.is_running() || !network.amplification.is_validated();
        if self.path.phase != PathPhase::Validating || is_undecided {
            return;
        }
        if network.validation.failures() == 0 {
            self.facts.works = true;
        } else {
            network.validation.start(pto);
        }
    }

    /// Starts the validation of candidate path `at`.
    fn validate(&mut self, at: usize) {
        let pto = self.probing_pto();
        self.path.network.candidates.validate(at, pto);
    }

    /// Adds a candidate path in place of a spare one, and validates it; `None` if there are too many.
    fn add(&mut self, candidate: CandidatePath) -> Option<usize> {
        let path = candidate.address;
        match self.path.network.candidates.place() {
            Ok(Some(spare)) => self.drop_candidate(spare),
            Ok(None) => {}
            Err(_) => {
                self.retire_cid_of(&candidate);
                return None;
            }
        }
        self.path.network.candidates.push(candidate);
        self.monitor
            .observe(self.now, &Observation::PathProbed { path });
        let at = self.path.network.candidates.find(&path)?;
        self.validate(at);
        Some(at)
    }

    /// Abandons candidate path `at`.
    fn drop_candidate(&mut self, at: usize) {
        let candidate = self.path.network.candidates.remove(at);
        self.retire_cid_of(&candidate);
    }

    /// Candidate path `at` didn't answer, or can't be used.
    fn fail_candidate(&mut self, at: usize) {
        let Some(candidate) = self.path.network.candidates.get(at) else {
            return;
        };
        let path = candidate.address;
        if candidate.role == Role::Chosen {
            self.outbox.event(Event::MigrationFailed {
                path: self.path.id,
                address: path,
            });
        }
        self.monitor
            .observe(self.now, &Observation::PathFailed { path });
        self.drop_candidate(at);
    }

    /// Retires the connection ID of a path that is no more (section 9.5).
    fn retire_cid_of(&mut self, candidate: &CandidatePath) {
        let Some(cid) = candidate.cid else {
            return;
        };
        if let Some(sequence) = self.path.cids.remote.release(cid.sequence) {
            self.control.retire_connection_id(self.path.id, sequence);
        }
    }

    /// The peer's connection IDs have changed: candidate paths whose ID it retired get others, or end.
    pub(crate) fn replace_retired_cids(&mut self) {
        let mut at = 0;
        loop {
            let path = &mut *self.path;
            let Some(candidate) = path.network.candidates.get_mut(at) else {
                break;
            };
            let is_lost = |sequence| !path.cids.remote.is_assigned(sequence);
            if candidate.cid.is_some_and(|cid| is_lost(cid.sequence)) {
                candidate.cid = path.cids.remote.assign();
                // Reverting to the previous path (section 9.3.2) must stay possible, with the ID in use if there
                // is no other.
                if candidate.cid.is_none() && candidate.role != Role::Previous {
                    self.fail_candidate(at);
                    continue;
                }
            }
            at += 1;
        }
        let cids = &mut self.path.cids;
        if cids.needs_fresh_remote && cids.remote.has_spare() {
            cids.needs_fresh_remote = false;
            if let Some(sequence) = cids.remote.rotate() {
                self.control.retire_connection_id(self.path.id, sequence);
            }
        }
    }
}
