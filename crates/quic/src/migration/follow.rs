//! A server follows its client to another address (RFC 9000, sections 9.1 to 9.3 and 9.6).

use crate::path::{Amplification, CandidatePath, Role};

use super::{Arrival, Migration, Moved};

impl Migration<'_> {
    /// The newest packet came with more than probing frames: the peer is where it came from, and not on
    /// a path whose validation failed.
    pub(crate) fn follow_peer(&mut self, packet: &Arrival) {
        if self.identity.side.is_client() {
            // A client chooses its path itself, and a server never moves.
            return;
        }
        let (from, current) = (packet.address, self.path.network.address);
        if current.matches(&from) {
            return self.drop_unanswered_except(packet);
        }
        let local_differs = !from.local.matches(&current.local);
        if local_differs
            && self.identity.is_at_preferred_address(&current)
            && !self.identity.is_at_preferred_address(&from)
        {
            // Once a client is at the preferred address, what comes to the old one is late.
            return;
        }
        self.drop_unanswered_except(packet);
        match self.path.network.candidates.find(&from) {
            Some(at) => self.follow_to_candidate(packet, at, local_differs),
            None => self.follow_to_new(packet, local_differs),
        }
    }

    /// A non-probing packet shows the peer's address: a path to another one whose validation failed is abandoned.
    fn drop_unanswered_except(&mut self, packet: &Arrival) {
        if let Some(at) = (self.path.network.candidates).unanswered_besides(&packet.address) {
            self.drop_candidate(at);
        }
    }

    /// The peer sends from the address of candidate path `at`.
    fn follow_to_candidate(&mut self, packet: &Arrival, at: usize, local_differs: bool) {
        let Some(candidate) = self.path.network.candidates.get_mut(at) else {
            return;
        };
        let is_validated = candidate.amplification.is_validated();
        match candidate.role {
            // The peer is back; or it never left, and the move was a forgery.
            Role::Previous => self.switch_to(at, None),
            _ if local_differs && candidate.validation.is_running() => {
                candidate.role = Role::PeerMoved;
            }
            _ => {
                self.switch_to(at, None);
                self.validate_previous();
                if is_validated {
                    self.facts.moved = Some(Moved::Peer(packet.address.remote));
                } else {
                    // What did not answer before may answer now.
                    let pto = self.probing_pto();
                    self.path.network.validation.start(pto);
                }
            }
        }
    }

    /// The peer sends from an address of which nothing is known.
    fn follow_to_new(&mut self, packet: &Arrival, local_differs: bool) {
        let role = if local_differs {
            // A server answers from its old address until the new one is validated (section
            // 9.6.1).
            Role::PeerMoved
        } else {
            Role::Probed
        };
        self.make_room();
        let Some(at) = self.add_from_peer(packet, role, false) else {
            return;
        };
        if role == Role::Probed {
            self.switch_to(at, None);
            self.validate_previous();
        }
    }

    /// The peer probes from an address of which nothing is known. A server validates it at once, so
    /// that nothing holds it back should the peer move there.
    pub(super) fn add_probed(&mut self, packet: &Arrival) {
        if self.identity.side.is_server() {
            self.add_from_peer(packet, Role::Probed, true);
        }
    }

    /// Adds a candidate path for where a packet came from, and validates it. `None` if there are too
    /// many, or if the peer only probes from there, with another of the local connection IDs, but gave none
    /// to answer with.
    fn add_from_peer(&mut self, packet: &Arrival, role: Role, is_probe: bool) -> Option<usize> {
        let path = &mut *self.path;
        let (from, current) = (packet.address, path.network.address);
        let is_deliberate = packet.dst_cid != path.cids.last_dst_cid;
        let cid = if is_deliberate || !from.is_same_host(&current) {
            path.cids.remote.assign()
        } else {
            None
        };
        if cid.is_none() && is_deliberate {
            if is_probe {
                // Using the old one there would show who moved (section 9.5).
                return None;
            }
            // A peer that has moved without giving any to use there must not be lost over it: a NAT
            // may have moved it just when it changed the local ID. The next one that it gives is used.
            path.cids.needs_fresh_remote = true;
        }
        let is_validated =
            from.remote == current.remote && path.network.amplification.is_validated();
        let limit = Amplification::of_candidate(is_validated, packet.datagram_len);
        self.add(CandidatePath::new(from, role, cid, limit))
    }

    /// A path that the peer uses already has precedence over one that it only probed.
    fn make_room(&mut self) {
        let candidates = &self.path.network.candidates;
        if candidates.place().is_err()
            && let Some(probed) = candidates.in_role(Role::Probed)
        {
            self.drop_candidate(probed);
        }
    }

    /// Validates the previous path, to find out whether the peer really left it (section 9.3.3): if it is
    /// still there, it answers with a packet that leads back to it.
    pub(super) fn validate_previous(&mut self) {
        if let Some(at) = self.path.network.candidates.in_role(Role::Previous) {
            self.validate(at);
        }
    }
}
