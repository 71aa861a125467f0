//! Connection migration and connection IDs as seen from outside: calls of the application and of the
//! endpoint, and where the facts of migration go (RFC 9000, sections 5.1 and 9).

use swiftwater_units::{Instant, PathId};
use swiftwater_wire::{ErrorCode, Frame};

use crate::connection_ids::ConnectionIds;
use crate::error::{ConnectionError, MigrateError, TransportError};
use crate::events::{CidCollision, Event};
use crate::lifecycle::Termination;
use crate::migration::{Arrival, Migration, MigrationFacts, Moved, PathFailure};
use crate::reception::Origin;
use crate::transmit::LocalAddress;

use super::Connection;

impl Connection {
    /// [`Connection::migrate_path`] of the path with the smallest identifier: of the only one, without
    /// multipath.
    ///
    /// # Errors
    ///
    /// As [`Connection::migrate_path`].
    pub fn migrate(&mut self, now: Instant, local: LocalAddress) -> Result<(), MigrateError> {
        self.migrate_path(now, self.paths.primary().id, local)
    }

    /// Moves a path to another local address, if it works: the new address is probed while the present one
    /// stays in use, and taken once it is validated ([`Event::Migrated`]). If the peer doesn't answer there
    /// within three probe timeouts of a new path (RFC 9000, section 8.2.4), nothing changes
    /// ([`Event::MigrationFailed`]). A second call for the path replaces a first one that is still being
    /// decided.
    ///
    /// At the new address, RTT and congestion window start afresh (section 9.4), and the server sees
    /// another connection ID (section 9.5).
    ///
    /// # Errors
    ///
    /// See [`MigrateError`]. With [`MigrateError::NoConnectionId`] a later call may succeed.
    pub fn migrate_path(
        &mut self,
        now: Instant,
        path: PathId,
        local: LocalAddress,
    ) -> Result<(), MigrateError> {
        self.check_open(path)?;
        let outcome = self.with_migration(now, path, |migration| migration.migrate(local));
        outcome.unwrap_or(Err(MigrateError::NotOpen(path)))
    }

    /// [`Connection::rebind_path`] of the path with the smallest identifier: of the only one, without
    /// multipath.
    ///
    /// # Errors
    ///
    /// As [`Connection::migrate_path`].
    pub fn rebind(&mut self, now: Instant, local: LocalAddress) -> Result<(), MigrateError> {
        self.rebind_path(now, self.paths.primary().id, local)
    }

    /// Moves a path to another local address at once, because the present one no longer works. The new
    /// address is validated while it is in use: [`Event::Migrated`] or [`Event::MigrationFailed`] report how
    /// that went. There is no way back but another call.
    ///
    /// # Errors
    ///
    /// As [`Connection::migrate_path`].
    pub fn rebind_path(
        &mut self,
        now: Instant,
        path: PathId,
        local: LocalAddress,
    ) -> Result<(), MigrateError> {
        self.check_open(path)?;
        let outcome = self.with_migration(now, path, |migration| migration.rebind(local));
        if let Some(preferred) = outcome.unwrap_or(Err(MigrateError::NotOpen(path)))? {
            self.with_migration(now, path, |migration| migration.probe_preferred(preferred));
        }
        Ok(())
    }

    fn check_open(&self, path: PathId) -> Result<(), MigrateError> {
        let is_open = self.paths.open().any(|open| open.id == path);
        is_open.then_some(()).ok_or(MigrateError::NotOpen(path))
    }

    /// Asks the peer to use fresh connection IDs on each path, and uses fresh ones of the peer's.
    pub fn rotate_connection_ids(&mut self) {
        if self.handshake.is_complete() && self.lifecycle.is_open() {
            let open: Vec<PathId> = self.open_paths().collect();
            for path in open {
                self.connection_ids().rotate(path);
            }
        }
    }

    /// Handles what [`Endpoint::handle_event`](crate::Endpoint::handle_event) returned: issues another ID in
    /// the place of one that a different connection has. An ID that was sent already is retired along with the
    /// others of its path. If hardly any IDs of the length are left, the peer gets fewer.
    ///
    /// Further events for the endpoint may follow.
    pub fn handle_cid_collision(&mut self, collision: &CidCollision) {
        self.connection_ids().on_collision(collision);
    }

    /// Hands a frame about connection IDs or path validation to its owner (RFC 9000, sections 19.15 to
    /// 19.18).
    pub(super) fn on_path_frame(
        &mut self,
        now: Instant,
        origin: &Origin<'_>,
        frame: &Frame<'_>,
    ) -> Result<(), TransportError> {
        let path = origin.path;
        match *frame {
            Frame::NewConnectionId(ref new) => {
                let path = self.path_management(now).path_named(new.path)?;
                self.connection_ids().on_new_connection_id(path, new)?;
                self.with_migration(now, path, |migration| {
                    migration.replace_retired_cids();
                });
                self.path_management(now).report_available_paths();
            }
            Frame::RetireConnectionId {
                path: named,
                sequence,
            } => {
                let path = self.path_management(now).path_named(named)?;
                let max_ack_delay = self.peer_max_ack_delay();
                let lifetime = self.paths.retired_cid_lifetime(path, max_ack_delay);
                let kept_until = lifetime.map(|lifetime| now + lifetime);
                let (mut cids, used) = (self.connection_ids(), &origin.dst_cid);
                cids.on_retire_connection_id(path, used, sequence, kept_until)?;
            }
            Frame::PathChallenge { .. } if !self.paths.admit_challenge(now, path) => {
                self.monitor.dropped(now, "too many challenges");
            }
            Frame::PathChallenge { data } => {
                let packet = arrival(origin);
                self.with_migration(now, path, |migration| migration.on_challenge(data, &packet));
            }
            Frame::PathResponse { data } => {
                if let Some(path) = self.paths.challenged_with(data) {
                    self.with_migration(now, path, |migration| migration.on_response(data));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The owners that connection IDs concern.
    pub(super) fn connection_ids(&mut self) -> ConnectionIds<'_> {
        ConnectionIds {
            identity: &mut self.identity,
            paths: &mut self.paths,
            control: &mut self.control,
            outbox: &mut self.outbox,
        }
    }

    /// Runs a step of migration on a path, and hands its facts to their owners; `None` if the path is not
    /// open.
    pub(super) fn with_migration<T>(
        &mut self,
        now: Instant,
        path: PathId,
        step: impl FnOnce(&mut Migration<'_>) -> T,
    ) -> Option<T> {
        let max_ack_delay = self.peer_max_ack_delay();
        let mut migration = Migration {
            now,
            identity: &mut self.identity,
            handshake: &self.handshake,
            path: self.paths.get_mut(path)?,
            control: &mut self.control,
            outbox: &mut self.outbox,
            monitor: &mut self.monitor,
            max_ack_delay,
            is_open: self.lifecycle.is_open(),
            facts: MigrationFacts::default(),
        };
        let outcome = step(&mut migration);
        let facts = migration.facts;
        self.route_migration(now, path, &facts);
        Some(outcome)
    }

    /// Hands the facts of migration to their owners.
    fn route_migration(&mut self, now: Instant, path: PathId, facts: &MigrationFacts) {
        self.connection_ids().sync_reset_tokens();
        if facts.has_switched {
            self.sync_mtu(now, path);
        }
        if facts.works {
            self.path_management(now).on_validated(path);
        }
        match facts.moved {
            Some(Moved::Local(address)) => self.outbox.event(Event::Migrated { path, address }),
            Some(Moved::Peer(remote)) => {
                // A token for the new address takes the place of that for the old one (section 9.3); a
                // token is valid whatever the port.
                let token_ip = self.identity.token_ip;
                if token_ip.is_some_and(|ip| ip != remote.ip()) {
                    self.issue_token(now, remote.ip());
                }
                self.outbox.event(Event::PeerMoved { path, remote });
            }
            None => {}
        }
        let is_abandoned = facts.failure.is_some() && self.abandon_failed_path(now, path);
        match facts.failure {
            _ if is_abandoned => {}
            Some(PathFailure::TooNarrow) => {
                let reason = "the path does not carry datagrams of 1200 bytes";
                self.fail(now, TransportError::new(ErrorCode::NO_VIABLE_PATH, reason));
            }
            Some(PathFailure::Unreachable) => {
                let reason = ConnectionError::TimedOut;
                self.terminate(now, Termination::Silent { reason });
            }
            None => {}
        }
    }

    /// Acts on deadlines of path validation, on every path.
    pub(super) fn on_path_timeouts(&mut self, now: Instant) {
        let mut next = self.paths.next_in_validation(None);
        while let Some(path) = next {
            self.with_migration(now, path, |migration| {
                migration.on_validation_timeout();
            });
            self.with_migration(now, path, |migration| {
                migration.on_candidate_timeouts();
            });
            next = self.paths.next_in_validation(Some(path));
        }
    }
}

/// What migration depends on of where a packet came from.
pub(super) fn arrival(origin: &Origin<'_>) -> Arrival {
    Arrival {
        address: *origin.address,
        dst_cid: origin.dst_cid,
        datagram_len: origin.datagram_len,
    }
}
