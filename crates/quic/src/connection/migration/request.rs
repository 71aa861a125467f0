//! A client moves: to another local address on request, or to the server's preferred address (RFC
//! 9000, sections 9.1, 9.2 and 9.6).

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use swiftwater_units::Instant;

use crate::error::MigrateError;
use crate::path::{Address, Amplification, CandidatePath, Role};
use crate::transmit::LocalAddress;

use super::super::Connection;
use crate::events::Event;

impl Connection {
    /// Moves to another local address, if it works: the path from there is probed while the present
    /// one stays in use, and taken once it is validated ([`Event::Migrated`]). If it doesn't answer
    /// within three probe timeouts of a new path (RFC 9000, section 8.2.4), nothing changes
    /// ([`Event::MigrationFailed`]). A second call replaces a first one that is still being decided.
    ///
    /// From the new path on, RTT and congestion window start afresh (section 9.4), and the server
    /// sees another connection ID (section 9.5).
    ///
    /// # Errors
    ///
    /// See [`MigrateError`]. With [`MigrateError::NoConnectionId`] a later call may succeed.
    pub fn migrate(&mut self, now: Instant, local: LocalAddress) -> Result<(), MigrateError> {
        let address = self.check_migration(local)?;
        self.abandon_probe(Role::Chosen);
        let preferred = self.abandon_probe(Role::Preferred);
        self.probe(now, address, Role::Chosen)?;
        if let Some(remote) = preferred {
            // From the new address, both are tried at once (section 9.6.3).
            let _ = self.probe(now, Address { remote, local }, Role::Preferred);
        }
        Ok(())
    }

    /// Moves to another local address at once, because the present one no longer works. The path is
    /// validated while it is in use: [`Event::Migrated`] or [`Event::MigrationFailed`] tell how that
    /// went. There is no way back but another call.
    ///
    /// # Errors
    ///
    /// As [`Connection::migrate`].
    pub fn rebind(&mut self, now: Instant, local: LocalAddress) -> Result<(), MigrateError> {
        let address = self.check_migration(local)?;
        self.abandon_probe(Role::Chosen);
        let preferred = self.abandon_probe(Role::Preferred);
        self.probe(now, address, Role::Chosen)?;
        if let Some(at) = self.paths.primary().link.candidates.in_role(Role::Chosen) {
            self.switch_to(now, at, None);
        }
        let candidates = &self.paths.primary().link.candidates;
        if let Some(previous) = candidates.in_role(Role::Previous) {
            self.drop_candidate(previous);
        }
        // What was in flight may be lost, and a client that only receives would say nothing: the
        // server must hear of the new address now.
        self.ping();
        if let Some(remote) = preferred {
            let _ = self.probe(now, Address { remote, local }, Role::Preferred);
        }
        Ok(())
    }

    /// The path to the server from `local`, if we may take it.
    fn check_migration(&self, local: LocalAddress) -> Result<Address, MigrateError> {
        if self.identity.side.is_server() {
            return Err(MigrateError::NotClient);
        }
        if !self.lifecycle.is_open() {
            return Err(MigrateError::Closed);
        }
        if !self.handshake.is_confirmed() {
            return Err(MigrateError::NotConfirmed);
        }
        let path = self.paths.primary();
        // The server's wish is about the address that it had in the handshake (section 18.2).
        let is_disabled = self
            .handshake
            .peer_terms()
            .is_some_and(|peer| peer.disable_active_migration);
        if is_disabled && self.identity.first_remote() == Some(path.link.address.remote) {
            return Err(MigrateError::Disabled);
        }
        if path.cids.remote.is_empty() {
            return Err(MigrateError::WithoutConnectionIds);
        }
        if local == path.link.address.local {
            return Err(MigrateError::SameAddress);
        }
        Ok(Address {
            remote: path.link.address.remote,
            local,
        })
    }

    /// Starts to probe a path with a connection ID of its own.
    fn probe(&mut self, now: Instant, address: Address, role: Role) -> Result<(), MigrateError> {
        let path = self.paths.primary_mut();
        if let Some(known) = path.link.candidates.find(&address) {
            // The previous path: back there, with another connection ID.
            self.drop_candidate(known);
        }
        let cids = &mut self.paths.primary_mut().cids.remote;
        let cid = cids.assign().ok_or(MigrateError::NoConnectionId)?;
        // The server's address is known to be its own; a preferred one only because the server says
        // so. Probing it takes no more than starting a connection does (section 21.5.3).
        let candidate = CandidatePath::new(address, role, Some(cid), Amplification::validated());
        let at = self
            .add_candidate(now, candidate)
            .ok_or(MigrateError::NoConnectionId)?;
        self.validate_candidate(at);
        Ok(())
    }

    /// Gives up a path that we are probing; returns the peer's address there.
    fn abandon_probe(&mut self, role: Role) -> Option<SocketAddr> {
        let candidates = &self.paths.primary().link.candidates;
        let at = candidates.in_role(role)?;
        let remote = candidates.get(at)?.address.remote;
        self.drop_candidate(at);
        Some(remote)
    }

    /// A path that we chose is validated: from now on it is the one in use.
    pub(super) fn arrive(&mut self, now: Instant, at: usize, rtt: Duration) {
        self.switch_to(now, at, Some(rtt));
        // Once at the preferred address, the old one is not tried any more, from wherever (section
        // 9.6.3); and what was preferred stays so after a move of our own.
        let address = self.paths.primary().link.address;
        if self.identity.first_remote() != Some(address.remote) {
            self.abandon_probe(Role::Chosen);
        }
        // A client that only receives would say nothing: the server follows non-probing packets.
        self.ping();
        self.emit_migrated(address);
    }

    pub(super) fn emit_migrated(&mut self, path: Address) {
        self.outbox.events.push_back(Event::Migrated { path });
    }

    /// The handshake is confirmed: tries the server's preferred address of the family in use
    /// (section 9.6.1).
    pub(in crate::connection) fn probe_preferred_address(&mut self, now: Instant) {
        let path = self.paths.primary();
        let wanted = self.identity.side.is_client()
            && self.identity.config.use_preferred_address
            && self.identity.cids.len() > 0;
        let parameters = self.handshake.peer_parameters();
        let preferred = parameters.and_then(|peer| peer.preferred_address.as_ref());
        let Some(preferred) = preferred.filter(|_| wanted) else {
            return;
        };
        let remote: Option<SocketAddr> = match path.link.address.remote {
            SocketAddr::V4(_) => preferred.ipv4.map(Into::into),
            SocketAddr::V6(_) => preferred.ipv6.map(Into::into),
        };
        let local = path.link.address.local;
        let current = path.link.address.remote;
        if let Some(remote) = remote.filter(|&to| to != current && is_plausible(to, current)) {
            // Without a connection ID to spare the client stays where it is.
            let _ = self.probe(now, Address { remote, local }, Role::Preferred);
        }
    }
}

/// True if a server at `current` may be at `preferred` too. It must not make us send to whom only we
/// can reach, or to many at once (RFC 9000, section 21.5.6).
fn is_plausible(preferred: SocketAddr, current: SocketAddr) -> bool {
    let ip = preferred.ip();
    let is_broadcast = matches!(ip, IpAddr::V4(v4) if v4.is_broadcast());
    preferred.port() != 0
        && !ip.is_unspecified()
        && !ip.is_multicast()
        && !is_broadcast
        && (!ip.is_loopback() || current.ip().is_loopback())
}
