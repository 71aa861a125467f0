//! A server follows its client to another address (RFC 9000, sections 9.1 to 9.3 and 9.6).

use swiftwater_units::Instant;

use crate::path::{Address, CandidatePath, Role};
use crate::reception::Origin;

use super::super::Connection;
use super::amplification;

impl Connection {
    /// A packet came on the path in use: notes which of our connection IDs the peer uses there, to
    /// distinguish a deliberate change of path from a NAT rebinding. `shows_peer` if it is a
    /// non-probing packet with the largest number so far: then the peer is here and not on a doubtful
    /// path.
    pub(in crate::connection) fn note_reached(&mut self, origin: &Origin<'_>, shows_peer: bool) {
        let path = self.paths.primary_mut();
        if path.link.address.matches(origin.address) {
            path.cids.reached_by = origin.dst_cid;
            if shows_peer {
                self.drop_doubtful_but(origin.address);
            }
        }
    }

    /// The peer has shown itself at `address`: a doubtful path to another one is given up.
    #[inline]
    fn drop_doubtful_but(&mut self, address: &Address) {
        let candidates = &self.paths.primary().link.candidates;
        if let Some(at) = candidates.in_role(Role::Doubtful)
            && candidates.find(address) != Some(at)
        {
            self.drop_candidate(at);
        }
    }

    /// True if datagrams from there reach us at an address that we prefer to that of the handshake:
    /// clients may use it whatever `disable_active_migration` says (section 18.2).
    pub(in crate::connection) fn is_at_preferred_address(&self, from: &Address) -> bool {
        let home = self.identity.first_local();
        home.is_some_and(|home| !from.local.matches(&home))
    }

    /// The newest packet came on another path with more than probing frames.
    pub(in crate::connection) fn follow_peer(&mut self, now: Instant, origin: &Origin<'_>) {
        if self.identity.side.is_client() {
            // A client chooses its path itself, and a server never moves.
            return;
        }
        let from = *origin.address;
        let path = self.paths.primary();
        let ours_differs = !from.local.matches(&path.link.address.local);
        if ours_differs
            && self.is_at_preferred_address(&path.link.address)
            && !self.is_at_preferred_address(&from)
        {
            // Once a client is at the preferred address, what comes to the old one is late.
            return;
        }
        self.drop_doubtful_but(&from);
        let path = self.paths.primary();
        let Some(at) = path.link.candidates.find(&from) else {
            return self.follow_to_new(now, origin, ours_differs);
        };
        let Some(candidate) = path.link.candidates.get(at) else {
            return;
        };
        let proven = candidate.amplification.is_validated();
        match candidate.role {
            // The peer is back; or it never left, and the move was a forgery.
            Role::Previous => self.switch_to(now, at, None),
            _ if ours_differs && candidate.validation.is_running() => {
                if let Some(candidate) = self.paths.primary_mut().link.candidates.get_mut(at) {
                    candidate.role = Role::Awaited;
                }
            }
            _ => {
                self.switch_to(now, at, None);
                self.probe_previous();
                if proven {
                    self.on_peer_moved(now, from);
                } else {
                    // What did not answer before may answer now.
                    let pto = self.probing_pto();
                    self.paths.primary_mut().link.validation.start(pto);
                }
            }
        }
    }

    /// The peer sends from an address of which nothing is known.
    fn follow_to_new(&mut self, now: Instant, origin: &Origin<'_>, ours_differs: bool) {
        let role = if ours_differs {
            // A server answers from its old address until the new one is validated (section
            // 9.6.1).
            Role::Awaited
        } else {
            Role::Probed
        };
        self.make_room();
        let Some(at) = self.add_from_peer(now, origin, role, false) else {
            return;
        };
        if role == Role::Probed {
            self.switch_to(now, at, None);
            self.probe_previous();
        }
    }

    /// The peer probes from an address of which nothing is known. A server validates it at once, so
    /// that nothing holds it back should the peer move there.
    pub(super) fn add_probed(&mut self, now: Instant, origin: &Origin<'_>) -> Option<usize> {
        if self.identity.side.is_client() {
            return None;
        }
        self.add_from_peer(now, origin, Role::Probed, true)
    }

    /// Adds a candidate path for where a packet came from, and validates it. `None` if there are too
    /// many, or if the peer only probes from there, with another of our connection IDs, but gave none
    /// to answer with.
    fn add_from_peer(
        &mut self,
        now: Instant,
        origin: &Origin<'_>,
        role: Role,
        is_probe: bool,
    ) -> Option<usize> {
        let path = self.paths.primary_mut();
        let from = *origin.address;
        let is_deliberate = origin.dst_cid != path.cids.reached_by;
        let cid = if is_deliberate || !from.is_same_host(&path.link.address) {
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
            // may have moved it just when it changed our ID. The next one that it gives is used.
            path.cids.needs_fresh_remote = true;
        }
        let validated =
            from.remote == path.link.address.remote && path.link.amplification.is_validated();
        let limit = amplification(validated, origin.datagram_len);
        let at = self.add_candidate(now, CandidatePath::new(from, role, cid, limit))?;
        self.validate_candidate(at);
        Some(at)
    }

    /// A path that the peer has already taken needs a place more than any that it only probed.
    fn make_room(&mut self) {
        let candidates = &self.paths.primary().link.candidates;
        if candidates.place().is_err()
            && let Some(probed) = candidates.in_role(Role::Probed)
        {
            self.drop_candidate(probed);
        }
    }

    /// Asks on the previous path whether the peer really left it (section 9.3.3): if it is still there, it
    /// answers with a packet that brings us back.
    pub(super) fn probe_previous(&mut self) {
        let candidates = &self.paths.primary().link.candidates;
        if let Some(at) = candidates.in_role(Role::Previous) {
            self.validate_candidate(at);
        }
    }

    /// The client's new address is validated. A token for it takes the place of that for the old one
    /// (section 9.3); a token is valid whatever the port.
    pub(super) fn on_peer_moved(&mut self, now: Instant, to: Address) {
        let remote = to.remote;
        let token_ip = self.identity.token_ip;
        if token_ip.is_some_and(|ip| ip != remote.ip()) {
            self.issue_token(now, remote.ip());
        }
        let event = super::Event::PeerMoved { remote };
        self.outbox.events.push_back(event);
    }
}
