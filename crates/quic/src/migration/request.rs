//! A client moves: to another local address on request, or to the server's preferred address (RFC
//! 9000, sections 9.1, 9.2 and 9.6).

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::error::MigrateError;
use crate::path::{Address, Amplification, CandidatePath, Role};
use crate::transmit::LocalAddress;

use super::{Migration, Moved};

impl Migration<'_> {
    /// Probes the path from another local address, to use it once it is validated.
    pub(crate) fn migrate(&mut self, local: LocalAddress) -> Result<(), MigrateError> {
        let address = self.check_migration(local)?;
        self.abandon(Role::Chosen);
        let preferred = self.abandon(Role::Preferred);
        self.probe(address, Role::Chosen)?;
        if let Some(remote) = preferred {
            // From the new address, both are tried at once (section 9.6.3).
            self.probe_preferred(Address { remote, local });
        }
        Ok(())
    }

    /// Uses another local address at once, and validates the path from there meanwhile. Returns the path
    /// to the preferred address that is to be probed instead of the one from the old address.
    pub(crate) fn rebind(&mut self, local: LocalAddress) -> Result<Option<Address>, MigrateError> {
        let address = self.check_migration(local)?;
        self.abandon(Role::Chosen);
        let preferred = self.abandon(Role::Preferred);
        self.probe(address, Role::Chosen)?;
        if let Some(at) = self.path.network.candidates.in_role(Role::Chosen) {
            self.switch_to(at, None);
        }
        self.abandon(Role::Previous);
        // What was in flight may be lost, and a client that only receives would send nothing: the
        // server must receive a packet from the new address now.
        self.path.space.ping = true;
        Ok(preferred.map(|remote| Address { remote, local }))
    }

    /// The path to the server from `local`, if this end may take it.
    fn check_migration(&self, local: LocalAddress) -> Result<Address, MigrateError> {
        if self.identity.side.is_server() {
            return Err(MigrateError::NotClient);
        }
        if !self.is_open {
            return Err(MigrateError::Closed);
        }
        if !self.handshake.is_confirmed() {
            return Err(MigrateError::NotConfirmed);
        }
        let current = self.path.network.address;
        // The parameter is about the address that the server had in the handshake (section 18.2).
        let terms = self.handshake.peer_terms();
        let is_disabled = terms.is_some_and(|peer| peer.disable_active_migration);
        if is_disabled && self.identity.first_remote() == Some(current.remote) {
            return Err(MigrateError::Disabled);
        }
        if self.path.cids.remote.is_empty() {
            return Err(MigrateError::WithoutConnectionIds);
        }
        if local == current.local {
            return Err(MigrateError::SameAddress);
        }
        Ok(Address {
            remote: current.remote,
            local,
        })
    }

    /// Starts to probe a path with a connection ID of its own.
    fn probe(&mut self, address: Address, role: Role) -> Result<(), MigrateError> {
        if let Some(known) = self.path.network.candidates.find(&address) {
            // The previous path: back there, with another connection ID.
            self.drop_candidate(known);
        }
        let cid = self.path.cids.remote.assign();
        let cid = cid.ok_or(MigrateError::NoConnectionId)?;
        // The server's address is known to be its own; a preferred one only because the server says
        // so. Probing it takes no more than starting a connection does (section 21.5.3).
        let candidate = CandidatePath::new(address, role, Some(cid), Amplification::validated());
        let added = self.add(candidate);
        added.map(|_| ()).ok_or(MigrateError::NoConnectionId)
    }

    /// Gives up the candidate path in this role; returns the peer's address there.
    fn abandon(&mut self, role: Role) -> Option<SocketAddr> {
        let candidates = &self.path.network.candidates;
        let at = candidates.in_role(role)?;
        let remote = candidates.get(at)?.address.remote;
        self.drop_candidate(at);
        Some(remote)
    }

    /// A path that this end chose is validated: from now on it is the one in use.
    pub(super) fn arrive(&mut self, at: usize, rtt: Duration) {
        self.switch_to(at, Some(rtt));
        // Once at the preferred address, the old one is not tried any more, from wherever (section
        // 9.6.3); and what was preferred stays so after a migration by this end.
        let address = self.path.network.address;
        if self.identity.first_remote() != Some(address.remote) {
            self.abandon(Role::Chosen);
        }
        // A client that only receives would send nothing: the server follows non-probing packets.
        self.path.space.ping = true;
        self.facts.moved = Some(Moved::Local(address));
    }

    /// The handshake is confirmed: tries the server's preferred address of the family in use
    /// (section 9.6.1).
    pub(crate) fn on_handshake_confirmed(&mut self) {
        let wanted = self.identity.side.is_client()
            && self.identity.config.use_preferred_address
            && self.identity.cids.len() > 0;
        let parameters = self.handshake.peer_parameters();
        let preferred = parameters.and_then(|peer| peer.preferred_address.as_ref());
        let Some(preferred) = preferred.filter(|_| wanted) else {
            return;
        };
        let current = self.path.network.address;
        let remote: Option<SocketAddr> = match current.remote {
            SocketAddr::V4(_) => preferred.ipv4.map(Into::into),
            SocketAddr::V6(_) => preferred.ipv6.map(Into::into),
        };
        let is_eligible =
            |to: &SocketAddr| *to != current.remote && is_plausible(*to, current.remote);
        if let Some(remote) = remote.filter(is_eligible) {
            self.probe_preferred(Address {
                remote,
                local: current.local,
            });
        }
    }

    /// Probes the path to the preferred address. Without a connection ID to spare the client stays where
    /// it is.
    pub(crate) fn probe_preferred(&mut self, path: Address) {
        let _ = self.probe(path, Role::Preferred);
    }
}

/// True if a server at `current` may be at `preferred` too. It must not make this end send to an
/// address that only this end can reach, or to many at once (RFC 9000, section 21.5.6).
fn is_plausible(preferred: SocketAddr, current: SocketAddr) -> bool {
    let ip = preferred.ip();
    let is_broadcast = matches!(ip, IpAddr::V4(v4) if v4.is_broadcast());
    preferred.port() != 0
        && !ip.is_unspecified()
        && !ip.is_multicast()
        && !is_broadcast
        && (!ip.is_loopback() || current.ip().is_loopback())
}
