//! Moving to another path (RFC 9000, sections 8.2 and 9): what clients and servers have in common.
//!
//! One path is in use; `path::CandidatePaths` holds those that are probed and the previous one.
//! `follow` is a server's part, `request` a client's. Here is what both need: challenges and responses, the
//! switch from one path to another, and what is retired with a path. When a silent path is probed is in
//! `deadlines`.
//!
//! A change of port alone is taken for a NAT rebinding: the network path stays the same, so RTT and
//! window are kept. Any other change starts them anew (section 9.4). What was known is kept for as
//! long as the move may turn out to be an attacker's doing.

mod follow;
mod request;

use std::time::Duration;

use swiftwater_units::Instant;
use swiftwater_wire::ErrorCode;

use crate::error::{ConnectionError, TransportError};
use crate::lifecycle::Termination;
use crate::observe::Observation;
use crate::path::{AckedDatagramSize, Address, Amplification, Answered, CandidatePath, Kept, Role};
use crate::reception::Origin;

use super::Connection;
use crate::events::Event;

/// Probe timeouts for which the previous path is kept: late packets and challenges still come.
const PREVIOUS_PATH_PTOS: u32 = 3;

/// Validations in a row that show a path to be too small. Each has six challenges or more, so that
/// with one in three datagrams lost one good path in fifteen thousand fails by chance; a burst of
/// losses may well outlast one validation.
const FULL_SIZE_VALIDATIONS: u32 = 3;

impl Connection {
    /// Probe timeout to validate a new path with: the larger of the present one and that of a path
    /// of which nothing is known (RFC 9000, section 8.2.4).
    fn probing_pto(&self) -> Duration {
        self.longest_pto().max(self.identity.config.initial_rtt * 3)
    }

    /// A PATH_CHALLENGE arrived. It is echoed on the path that it came from, and nowhere else
    /// (section 8.2.2).
    pub(super) fn on_path_challenge(&mut self, now: Instant, data: [u8; 8], origin: &Origin<'_>) {
        let path = self.paths.primary_mut();
        let rtt = path.recovery.rtt().smoothed;
        if !path.link.path_response_limit.admit(now, rtt) {
            return self.monitor.dropped(now, "challenges beyond measure");
        }
        if path.link.address.matches(origin.address) {
            return path.link.responses.push(data);
        }
        let known = path.link.candidates.find(origin.address);
        let at = known.or_else(|| self.add_probed(now, origin));
        let path = self.paths.primary_mut();
        match at.and_then(|at| path.link.candidates.get_mut(at)) {
            Some(candidate) => candidate.responses.push(data),
            None => self
                .monitor
                .dropped(now, "a challenge on a path that can't be answered"),
        }
    }

    /// A PATH_RESPONSE arrived; which path it came on doesn't matter (section 8.2.3).
    pub(super) fn on_path_response(&mut self, now: Instant, data: [u8; 8]) {
        let path = self.paths.primary_mut();
        if let Some(answered) = path.link.validation.on_response(now, data) {
            return self.on_path_validated(now, answered);
        }
        if let Some((at, answered)) = path.link.candidates.on_response(now, data) {
            self.on_candidate_validated(now, at, answered);
        }
    }

    /// The path in use answered.
    fn on_path_validated(&mut self, now: Instant, answered: Answered) {
        let pto = self.longest_pto();
        let path = self.paths.primary_mut();
        let address = path.link.address;
        let was_validated = path.link.amplification.is_validated();
        path.link.amplification.set_validated();
        if answered.complete {
            path.link
                .candidates
                .expire_previous(now + pto * PREVIOUS_PATH_PTOS);
        }
        if self.identity.side.is_client() {
            if answered.complete {
                self.emit_migrated(address);
            }
        } else if !was_validated {
            self.on_peer_moved(now, address);
        }
        self.emit_validated(now, address, answered);
    }

    /// A candidate path answered.
    fn on_candidate_validated(&mut self, now: Instant, at: usize, answered: Answered) {
        let path = self.paths.primary_mut();
        let Some(candidate) = path.link.candidates.get_mut(at) else {
            return;
        };
        let (address, role) = (candidate.address, candidate.role);
        candidate.amplification.set_validated();
        if candidate.role == Role::Probed {
            candidate.stand_by(now);
        }
        self.emit_validated(now, address, answered);
        if !answered.complete && role != Role::Doubtful {
            return;
        }
        match role {
            Role::Chosen | Role::Preferred => self.arrive(now, at, answered.rtt),
            // The peer's packets were followed to a doubtful path before: its address is enough.
            Role::Awaited | Role::Doubtful => {
                self.switch_to(now, at, Some(answered.rtt));
                self.probe_previous();
                self.on_peer_moved(now, address);
            }
            // The previous path still answers. Whether the new one is real shows by itself.
            Role::Probed | Role::Previous => {}
        }
    }

    fn emit_validated(&mut self, now: Instant, path: Address, answered: Answered) {
        let rtt = answered.rtt;
        self.monitor
            .observe(now, &Observation::PathValidated { path, rtt });
    }

    /// Makes candidate path `at` the one in use; `rtt` is the time that its validation took, if it is
    /// known. The path in use so far is kept as the previous one if it was validated: only such a one is
    /// worth going back to.
    fn switch_to(&mut self, now: Instant, at: usize, rtt: Option<Duration>) {
        let previous = self.exchange_path(now, at, rtt);
        self.keep_previous(previous);
        self.connection_ids().sync_reset_tokens();
        let path = self.paths.primary().id;
        self.sync_mtu(now, path);
    }

    /// The path in use did not answer: a server goes back to the previous path (section 9.3.2). That
    /// the address is not the peer's is not certain, though, as challenges and responses may all have
    /// been lost; and a peer that only receives would never show itself again. So the path is
    /// validated on, within its anti-amplification limit, until it answers or a non-probing packet
    /// shows that the peer is elsewhere.
    fn retreat(&mut self, now: Instant, previous: usize) {
        let validation = std::mem::take(&mut self.paths.primary_mut().link.validation);
        let mut doubtful = self.exchange_path(now, previous, None);
        doubtful.role = Role::Doubtful;
        doubtful.expires_at = None;
        doubtful.validation = validation;
        doubtful.validation.start(self.probing_pto());
        let path = self.paths.primary_mut();
        path.link.candidates.push(doubtful);
        let path = path.id;
        self.connection_ids().sync_reset_tokens();
        self.sync_mtu(now, path);
        // A peer that never left answers with a non-probing packet.
        self.ping();
    }

    /// Puts candidate path `at` in the place of the path in use; returns the latter.
    fn exchange_path(&mut self, now: Instant, at: usize, rtt: Option<Duration>) -> CandidatePath {
        let linger = self.longest_pto() * PREVIOUS_PATH_PTOS;
        let config = &self.identity.config;
        let entry = self.paths.primary_mut();
        let next = entry.link.candidates.remove(at);
        let cid = next.cid.map(|cid| entry.cids.remote.exchange(cid));
        let from = std::mem::replace(&mut entry.link.address, next.address);
        let amplification = std::mem::replace(&mut entry.link.amplification, next.amplification);
        entry.link.validation = next.validation;
        entry.link.acked_datagram_size =
            AckedDatagramSize::starting_at(entry.space.ledger.next_number());
        let mut previous = CandidatePath::new(from, Role::Previous, cid, amplification);
        previous.responses = std::mem::replace(&mut entry.link.responses, next.responses);
        if let Some(kept) = next.kept {
            entry.recovery.resume(now, kept.recovery);
            let ecn = std::mem::replace(&mut entry.link.ecn, kept.ecn);
            entry.link.ecn.resume(&ecn, now + linger);
            entry.link.mtu.resume(kept.mtu);
        } else if !from.is_same_host(&next.address) {
            let initial_rtt = rtt.unwrap_or(config.initial_rtt);
            let recovery = entry.recovery.reset_for_new_path(
                now,
                config,
                initial_rtt,
                &mut self.identity.random.generator,
            );
            let codepoint = entry.recovery.controller().ecn_codepoint();
            let settled_at = now + linger;
            let ecn = entry.link.ecn.restart(config.ecn, codepoint, settled_at);
            let mtu = entry
                .link
                .mtu
                .restart(config.initial_max_datagram_size, next.address.remote.ip());
            previous.kept = Some(Box::new(Kept { recovery, ecn, mtu }));
        }
        if entry.link.amplification.is_validated() {
            previous.expires_at = Some(now + linger);
        }
        entry.pacing_until = None;
        let to = entry.link.address;
        self.monitor.stats.path_changes += 1;
        self.monitor
            .observe(now, &Observation::PathChanged { from, to });
        previous
    }

    /// Keeps the path that was in use until now, in place of an older one.
    fn keep_previous(&mut self, previous: CandidatePath) {
        if !previous.amplification.is_validated() {
            return self.forget(&previous);
        }
        let path = self.paths.primary_mut();
        if let Some(older) = path.link.candidates.in_role(Role::Previous) {
            let older = path.link.candidates.remove(older);
            path.link.candidates.push(previous);
            self.forget(&older);
        } else {
            path.link.candidates.push(previous);
        }
    }

    /// Gives up candidate path `at`.
    fn drop_candidate(&mut self, at: usize) {
        let candidate = self.paths.primary_mut().link.candidates.remove(at);
        self.forget(&candidate);
    }

    /// Retires the connection ID of a path that is no more (section 9.5).
    fn forget(&mut self, candidate: &CandidatePath) {
        if let Some(cid) = candidate.cid {
            let cids = &mut self.paths.primary_mut().cids.remote;
            let retired = cids.release(cid.sequence);
            let path = self.paths.primary().id;
            if let Some(sequence) = retired {
                self.control.retire_connection_id(path, sequence);
            }
            self.connection_ids().sync_reset_tokens();
        }
    }

    /// The peer retired connection IDs that candidate paths use: they get others, or end.
    pub(super) fn replace_retired_cids(&mut self, now: Instant) {
        let mut at = 0;
        loop {
            let path = self.paths.primary_mut();
            let Some(candidate) = path.link.candidates.get_mut(at) else {
                break;
            };
            let is_lost = |sequence| !path.cids.remote.is_assigned(sequence);
            if candidate.cid.is_some_and(|cid| is_lost(cid.sequence)) {
                candidate.cid = path.cids.remote.assign();
                // A retreat must stay possible, with the ID in use if there is no other.
                if candidate.cid.is_none() && candidate.role != Role::Previous {
                    self.fail_candidate(now, at);
                    continue;
                }
            }
            at += 1;
        }
        let path = self.paths.primary_mut();
        if path.cids.needs_fresh_remote && path.cids.remote.has_spare() {
            path.cids.needs_fresh_remote = false;
            let (path, retired) = (path.id, path.cids.remote.rotate());
            if let Some(sequence) = retired {
                self.control.retire_connection_id(path, sequence);
            }
        }
        self.connection_ids().sync_reset_tokens();
    }

    /// Acts on deadlines of path validation.
    pub(super) fn on_path_timeouts(&mut self, now: Instant) {
        let path = self.paths.primary_mut();
        if path.link.validation.on_timeout(now) {
            self.on_validation_failed(now);
        } else if path.link.validation.wants_challenge() {
            // The path may drop marked packets; that must not keep it from being validated.
            path.link.ecn.on_probe_timeout();
        }
        // The previous path is kept, silent or not, until the peer has shown that it did leave.
        let is_settled = self.paths.primary().link.amplification.is_validated();
        let pto = self.probing_pto();
        let mut at = 0;
        while let Some(candidate) = self.paths.primary_mut().link.candidates.get_mut(at) {
            let mut failed = candidate.validation.on_timeout(now);
            match candidate.role {
                Role::Previous => failed &= is_settled,
                // For longer each time, as long as the connection lasts.
                Role::Doubtful if failed => {
                    candidate.validation.start(pto);
                    failed = false;
                }
                _ => {}
            }
            let expired = candidate.expires_at.is_some_and(|expiry| expiry <= now);
            if failed {
                self.fail_candidate(now, at);
            } else if expired {
                self.drop_candidate(at);
            } else {
                at += 1;
            }
        }
    }

    /// Candidate path `at` didn't answer.
    fn fail_candidate(&mut self, now: Instant, at: usize) {
        let Some(candidate) = self.paths.primary().link.candidates.get(at) else {
            return;
        };
        let path = candidate.address;
        if candidate.role == Role::Chosen {
            self.outbox
                .events
                .push_back(Event::MigrationFailed { path });
        }
        self.monitor.observe(now, &Observation::PathFailed { path });
        self.drop_candidate(at);
    }

    /// The path in use didn't answer a full challenge: back to the previous one, or the end (sections
    /// 9.3.2 and 14.2).
    fn on_validation_failed(&mut self, now: Instant) {
        let path = self.paths.primary();
        let address = path.link.address;
        let is_client = self.identity.side.is_client();
        let is_known = is_client || path.link.amplification.is_validated();
        let (is_full, is_alive) = (
            path.link.acked_datagram_size.is_full(),
            path.link.acked_datagram_size.is_any(),
        );
        let has_patience = path.link.validation.failures() < FULL_SIZE_VALIDATIONS;
        let previous = path.link.candidates.in_role(Role::Previous);
        self.monitor
            .observe(now, &Observation::PathFailed { path: address });
        if is_client {
            let path = address;
            self.outbox
                .events
                .push_back(Event::MigrationFailed { path });
        }
        if is_known && is_full {
            // Only the answers were lost: what the path must carry, it does.
            let expiry = now + self.longest_pto() * PREVIOUS_PATH_PTOS;
            self.paths
                .primary_mut()
                .link
                .candidates
                .expire_previous(expiry);
        } else if is_known && is_alive && has_patience {
            self.try_full_size_again();
        } else if is_known && !is_alive {
            // Silent, not narrow: the peer may have gone elsewhere, and comes back by itself.
        } else if let Some(previous) = previous {
            if is_known {
                self.switch_to(now, previous, None);
            } else {
                self.retreat(now, previous);
            }
        } else if is_known {
            self.leave_narrow_path(now);
        } else {
            let reason = ConnectionError::TimedOut;
            self.terminate(now, Termination::Silent { reason });
        }
    }

    /// Small datagrams arrive and full challenges were lost, which may be chance: asks once more, and
    /// for something small beside it, so that silence can be told from narrowness.
    fn try_full_size_again(&mut self) {
        let pto = self.probing_pto();
        let entry = self.paths.primary_mut();
        entry.link.acked_datagram_size =
            AckedDatagramSize::starting_at(entry.space.ledger.next_number());
        entry.link.validation.start(pto);
        self.ping();
    }

    /// The only path there is carries small datagrams and no full ones: nothing but a close may be
    /// sent there (section 14.2).
    fn leave_narrow_path(&mut self, now: Instant) {
        let reason = "the path does not carry datagrams of 1200 bytes";
        self.fail(now, TransportError::new(ErrorCode::NO_VIABLE_PATH, reason));
    }

    /// Starts the validation of candidate path `at`.
    fn validate_candidate(&mut self, at: usize) {
        let pto = self.probing_pto();
        if let Some(candidate) = self.paths.primary_mut().link.candidates.get_mut(at) {
            candidate.validation.start(pto);
        }
    }

    /// Adds a candidate path in place of a spare one; `None` if there are too many.
    fn add_candidate(&mut self, now: Instant, candidate: CandidatePath) -> Option<usize> {
        let path = candidate.address;
        match self.paths.primary().link.candidates.place() {
            Ok(Some(spare)) => self.drop_candidate(spare),
            Ok(None) => {}
            Err(_) => {
                self.forget(&candidate);
                return None;
            }
        }
        self.paths.primary_mut().link.candidates.push(candidate);
        self.monitor.observe(now, &Observation::PathProbed { path });
        self.connection_ids().sync_reset_tokens();
        self.paths.primary().link.candidates.find(&path)
    }
}

/// A limit for an address: none if it is known to be the peer's.
fn amplification(validated: bool, received: usize) -> Amplification {
    if validated {
        return Amplification::validated();
    }
    let mut limit = Amplification::unvalidated();
    limit.on_received(received);
    limit
}
