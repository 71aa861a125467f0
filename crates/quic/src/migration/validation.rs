//! Path validation: challenges and responses, and what their results decide (RFC 9000, section 8.2).
//! When a path without packets is probed is in `deadlines`.

use crate::events::Event;
use crate::observe::Observation;
use crate::path::{AckedDatagramSize, Address, Answered, Role};
use crate::policy::PathPhase;

use super::{Arrival, Migration, Moved, PathFailure};

/// Validations in a row that show a path to be too small. Each has six challenges or more, so that
/// with one in three datagrams lost one good path in fifteen thousand fails by chance; a burst of
/// losses may well outlast one validation.
const FULL_SIZE_VALIDATIONS: u32 = 3;

impl Migration<'_> {
    /// A PATH_CHALLENGE arrived. It is echoed on the path that it came from, and nowhere else
    /// (section 8.2.2).
    pub(crate) fn on_challenge(&mut self, data: [u8; 8], packet: &Arrival) {
        let network = &mut self.path.network;
        if network.responses_to(&packet.address).is_none() {
            self.add_probed(packet);
        }
        match self.path.network.responses_to(&packet.address) {
            Some(responses) => responses.push(data),
            None => self
                .monitor
                .dropped(self.now, "a challenge on a path that can't be answered"),
        }
    }

    /// The response to a challenge of this path arrived; which path it came on doesn't matter (section
    /// 8.2.3).
    pub(crate) fn on_response(&mut self, data: [u8; 8]) {
        let network = &mut self.path.network;
        if let Some(answered) = network.validation.on_response(self.now, data) {
            self.on_validated(answered);
        } else if let Some((at, answered)) = network.candidates.on_response(self.now, data) {
            self.on_candidate_validated(at, answered);
        }
    }

    /// The path in use answered.
    fn on_validated(&mut self, answered: Answered) {
        let expiry = self.now + self.linger();
        let network = &mut self.path.network;
        let address = network.address;
        let was_validated = network.amplification.is_validated();
        network.amplification.set_validated();
        if answered.complete {
            network.candidates.expire_previous(expiry);
        }
        self.facts.works = answered.complete;
        if self.path.phase == PathPhase::Validating {
            // It has not moved, it is new.
        } else if self.identity.side.is_server() {
            if !was_validated {
                self.facts.moved = Some(Moved::Peer(address.remote));
            }
        } else if answered.complete {
            self.facts.moved = Some(Moved::Local(address));
        }
        self.observe_validated(address, answered);
    }

    /// A candidate path answered.
    fn on_candidate_validated(&mut self, at: usize, answered: Answered) {
        let Some(candidate) = self.path.network.candidates.get_mut(at) else {
            return;
        };
        let (address, role) = (candidate.address, candidate.role);
        candidate.amplification.set_validated();
        if role == Role::Probed {
            candidate.stand_by(self.now);
        }
        self.observe_validated(address, answered);
        if !answered.complete && role != Role::Unanswered {
            return;
        }
        match role {
            Role::Chosen | Role::Preferred => self.arrive(at, answered.rtt),
            // The peer's packets were followed to an unanswered path before: its address is enough.
            Role::PeerMoved | Role::Unanswered => {
                self.switch_to(at, Some(answered.rtt));
                self.validate_previous();
                self.facts.moved = Some(Moved::Peer(address.remote));
            }
            // The previous path still answers. Whether the new one is real shows by itself.
            Role::Probed | Role::Previous => {}
        }
    }

    fn observe_validated(&mut self, path: Address, answered: Answered) {
        let rtt = answered.rtt;
        self.monitor
            .observe(self.now, &Observation::PathValidated { path, rtt });
    }

    /// Acts on deadlines of the validation of the path in use.
    pub(crate) fn on_validation_timeout(&mut self) {
        let network = &mut self.path.network;
        if network.validation.on_timeout(self.now) {
            self.on_validation_failed();
        } else if network.validation.needs_challenge() {
            // The path may drop marked packets; that must not keep it from being validated.
            network.ecn.on_probe_timeout();
        }
    }

    /// Acts on deadlines of candidate paths.
    pub(crate) fn on_candidate_timeouts(&mut self) {
        let (now, pto) = (self.now, self.probing_pto());
        // The previous path is kept, with packets or without, until the peer has shown that it did leave.
        let is_settled = self.path.network.amplification.is_validated();
        let mut at = 0;
        while let Some(candidate) = self.path.network.candidates.get_mut(at) {
            let mut failed = candidate.validation.on_timeout(now);
            match candidate.role {
                Role::Previous => failed &= is_settled,
                // For longer each time, as long as the connection lasts.
                Role::Unanswered if failed => {
                    candidate.validation.start(pto);
                    failed = false;
                }
                _ => {}
            }
            let expired = candidate.expires_at.is_some_and(|expiry| expiry <= now);
            if failed {
                self.fail_candidate(at);
            } else if expired {
                self.drop_candidate(at);
            } else {
                at += 1;
            }
        }
    }

    /// The path in use didn't answer a full challenge: this end reverts to the previous one, or closes (sections
    /// 9.3.2 and 14.2).
    fn on_validation_failed(&mut self) {
        let network = &self.path.network;
        let path = network.address;
        let is_client = self.identity.side.is_client();
        let is_known = is_client || network.amplification.is_validated();
        let acked = network.acked_datagram_size;
        let may_be_chance = network.validation.failures() < FULL_SIZE_VALIDATIONS;
        let previous = network.candidates.in_role(Role::Previous);
        self.monitor
            .observe(self.now, &Observation::PathFailed { path });
        let is_opening = self.path.phase == PathPhase::Validating;
        if is_opening && !acked.is_any() {
            // It never worked: its identifier is used up (draft-ietf-quic-multipath-21, section 3.1.2).
            self.facts.failure = Some(PathFailure::Unreachable);
            return;
        }
        if is_client && !is_opening {
            self.outbox.event(Event::MigrationFailed {
                path: self.path.id,
                address: path,
            });
        }
        if is_known && acked.is_full() {
            // Only the answers were lost: what the path must carry, it does.
            let expiry = self.now + self.linger();
            self.path.network.candidates.expire_previous(expiry);
            self.facts.works = true;
        } else if is_known && acked.is_any() && may_be_chance {
            self.validate_full_size_again();
        } else if is_known && !acked.is_any() {
            // No packet of any size arrives: the peer may have migrated, and is followed when it sends.
        } else if let Some(previous) = previous {
            if is_known {
                self.switch_to(previous, None);
            } else {
                self.revert_to(previous);
            }
        } else if is_known {
            self.facts.failure = Some(PathFailure::TooNarrow);
        } else {
            self.facts.failure = Some(PathFailure::Unreachable);
        }
    }

    /// Small datagrams arrive and full challenges were lost, which may be chance: validates the path once
    /// more, with a PING beside the challenges, so that a path that fails differs from one with a smaller MTU.
    fn validate_full_size_again(&mut self) {
        let pto = self.probing_pto();
        let path = &mut *self.path;
        let next = path.space.ledger.next_number();
        path.network.acked_datagram_size = AckedDatagramSize::starting_at(next);
        path.network.validation.start(pto);
        path.space.ping = true;
    }

    /// The path in use did not answer: a server reverts to the previous path (section 9.3.2). That
    /// the address is not the peer's is not certain, though, as challenges and responses may all have
    /// been lost; and a peer that only receives would never show itself again. So the path is
    /// validated on, within its anti-amplification limit, until it answers or a non-probing packet
    /// shows that the peer is elsewhere.
    fn revert_to(&mut self, previous: usize) {
        let validation = std::mem::take(&mut self.path.network.validation);
        let mut unanswered = self.exchange(previous, None);
        unanswered.role = Role::Unanswered;
        unanswered.expires_at = None;
        unanswered.validation = validation;
        unanswered.validation.start(self.probing_pto());
        self.path.network.candidates.push(unanswered);
        // A peer that never left answers with a non-probing packet.
        self.path.space.ping = true;
    }
}
