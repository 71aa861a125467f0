//! What the opening and the end of paths concern beside the state of multipath itself: connection IDs, frames,
//! events, data that wait for a path (draft-ietf-quic-multipath-21, sections 2 to 4).
//!
//! Here are negotiation, frames and validation; `opening` has how a path begins, `closing` how it ends. The
//! state of multipath is in `multipath`, calls of the application are in `connection`.

mod closing;
mod opening;

use std::time::Duration;

use swiftwater_units::{Instant, PathId};
use swiftwater_wire::{DecodeError, Frame, MultipathVersion};

use crate::connection_ids::ConnectionIds;
use crate::control::Control;
use crate::crypto::EncryptionLevel;
use crate::datagrams::Datagrams;
use crate::error::TransportError;
use crate::events::Event;
use crate::handshake::Handshake;
use crate::identity::Identity;
use crate::monitor::Monitor;
use crate::multipath::{Multipath, agreed, violation_code};
use crate::observe::{Observation, Owner, PathStage};
use crate::outbox::Outbox;
use crate::path::PathSet;
use crate::policy::{PathPhase, PathStatus};
use crate::streams::Streams;

/// The owners that opening and ending of paths concern, borrowed for one event.
pub(crate) struct PathManagement<'a> {
    pub(crate) now: Instant,
    pub(crate) identity: &'a mut Identity,
    pub(crate) handshake: &'a Handshake,
    pub(crate) paths: &'a mut PathSet,
    /// `None` if it was not negotiated.
    pub(crate) multipath: &'a mut Option<Box<Multipath>>,
    pub(crate) streams: &'a mut Streams,
    pub(crate) datagrams: &'a mut Datagrams,
    pub(crate) control: &'a mut Control,
    pub(crate) outbox: &'a mut Outbox,
    pub(crate) monitor: &'a mut Monitor,
    /// The delay that the peer may add to acknowledgements.
    pub(crate) max_ack_delay: Duration,
    /// The connection is neither closing nor draining.
    pub(crate) is_open: bool,
}

fn violation(version: MultipathVersion, reason: &'static str) -> TransportError {
    TransportError::new(violation_code(version), reason)
}

impl PathManagement<'_> {
    /// The owners that connection IDs concern.
    fn connection_ids(&mut self) -> ConnectionIds<'_> {
        ConnectionIds {
            identity: self.identity,
            paths: self.paths,
            control: self.control,
            outbox: self.outbox,
        }
    }

    fn version(&self) -> Option<MultipathVersion> {
        self.multipath.as_deref().map(|multipath| multipath.version)
    }

    /// Both ends have declared how many paths they accept: exchanges connection IDs for them (section
    /// 3.2.1).
    ///
    /// # Errors
    ///
    /// The peer declares multipath, but has empty connection IDs (section 2.1; -10, section 2).
    pub(crate) fn negotiate(&mut self) -> Result<(), TransportError> {
        let local = self.identity.config.multipath;
        let Some(local) = local.filter(|_| self.identity.cids.len() > 0) else {
            return Ok(());
        };
        let peer = self.handshake.peer_parameters();
        let Some(peer) = peer else {
            return Ok(());
        };
        let Some((version, remote)) = agreed(local.versions, peer) else {
            return Ok(());
        };
        if self.paths.primary().cids.remote.is_empty() {
            let reason = "multipath was declared with empty connection IDs";
            return Err(violation(version, reason));
        }
        let multipath = Multipath::new(&local, version, remote, peer);
        *self.multipath = Some(Box::new(multipath));
        for id in 1..=local.initial_max_path_id() {
            self.add_unopened(PathId::new(id));
        }
        Ok(())
    }

    /// Checks that a frame of the extension belongs to the version in use. For frames of the other one, and in
    /// packets other than 1-RTT for all frames of draft 10, it is unknown (RFC 9000, section 12.4; -10, section
    /// 7).
    ///
    /// # Errors
    ///
    /// It does not.
    pub(crate) fn check_version(
        &self,
        level: EncryptionLevel,
        frame_type: u64,
    ) -> Result<(), TransportError> {
        let Some(version) = MultipathVersion::of_frame(frame_type) else {
            return Ok(());
        };
        let in_use = self.version();
        let in_use = in_use.filter(|_| level == EncryptionLevel::OneRtt);
        if version != in_use.unwrap_or_default() {
            return Err(DecodeError::UnknownFrame(frame_type).into());
        }
        Ok(())
    }

    /// Checks the path that a frame names.
    ///
    /// # Errors
    ///
    /// Multipath was not negotiated, or this end does not accept the identifier.
    pub(crate) fn check_path_id(&self, id: PathId) -> Result<(), TransportError> {
        match self.multipath.as_deref() {
            Some(multipath) => multipath.ids.check(id),
            None => Err(violation(
                MultipathVersion::default(),
                "multipath was not negotiated",
            )),
        }
    }

    /// The path that a frame is about: without a name, that of the handshake (draft-ietf-quic-multipath-21,
    /// section 3.2).
    ///
    /// # Errors
    ///
    /// As [`PathManagement::check_path_id`].
    pub(crate) fn path_named(&self, named: Option<PathId>) -> Result<PathId, TransportError> {
        if let Some(path) = named {
            self.check_path_id(path)?;
        }
        Ok(named.unwrap_or(PathId::ZERO))
    }

    /// A frame of multipath arrived, other than PATH_ABANDON.
    pub(crate) fn on_frame(&mut self, frame: &Frame<'_>) -> Result<(), TransportError> {
        match *frame {
            Frame::PathStatus {
                path,
                sequence,
                backup,
            } => {
                self.check_path_id(path)?;
                self.on_path_status(path, sequence, backup);
                Ok(())
            }
            Frame::MaxPathId { max } => self.on_max_path_id(max),
            Frame::PathsBlocked { max } => {
                self.check_path_id(PathId::ZERO)?;
                let multipath = self.multipath.as_deref();
                multipath.map_or(Ok(()), |multipath| multipath.ids.on_paths_blocked(max))
            }
            Frame::PathCidsBlocked {
                path,
                next_sequence,
            } => {
                self.check_path_id(path)?;
                let issued = self.paths.local_cids(path);
                if issued.is_some_and(|cids| next_sequence > cids.next_sequence()) {
                    let reason = "PATH_CIDS_BLOCKED beyond what was issued";
                    return Err(violation(MultipathVersion::default(), reason));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn on_path_status(&mut self, id: PathId, sequence: u64, backup: bool) {
        let is_known = self.paths.local_cids(id).is_some();
        let Some(multipath) = self.multipath.as_deref_mut().filter(|_| is_known) else {
            return;
        };
        let status = if backup {
            PathStatus::Backup
        } else {
            PathStatus::Available
        };
        if !multipath.records.of(id).on_status(sequence, status) {
            return;
        }
        let declared = Observation::PathStatusDeclared {
            path: id,
            owner: Owner::Remote,
            backup,
        };
        self.monitor.observe(self.now, &declared);
        if let Some(path) = self.paths.get_mut(id) {
            path.peer_status = status;
            self.outbox
                .event(Event::PathStatusChanged { path: id, status });
        }
    }

    fn on_max_path_id(&mut self, max: PathId) -> Result<(), TransportError> {
        self.check_path_id(PathId::ZERO)?;
        let Some(multipath) = self.multipath.as_deref_mut() else {
            return Ok(());
        };
        if !multipath.ids.on_max_path_id(max)? {
            return Ok(());
        }
        for unopened in self.paths.unopened_mut() {
            if unopened.id <= max {
                unopened.local.set_limit(1);
            }
        }
        self.connection_ids().issue();
        self.report_available_paths();
        Ok(())
    }

    /// The addresses of a path are validated for the first time: it carries data.
    pub(crate) fn on_validated(&mut self, id: PathId) {
        let Some(path) = self.paths.get_mut(id) else {
            return;
        };
        if path.phase != PathPhase::Validating || !path.network.amplification.is_validated() {
            return;
        }
        path.phase = PathPhase::Active;
        let address = path.network.address;
        // The peer may move the path (RFC 9000, section 5.1.1).
        self.connection_ids().issue();
        // Others with the same addresses need no validation of their own (RFC 9000, section 8).
        for other in self.paths.iter_mut() {
            if other.network.address.matches(&address) {
                other.network.amplification.set_validated();
            }
        }
        let room = self.paths.data_room(self.handshake);
        let count = self.datagrams.drop_too_large(room);
        if count > 0 {
            let max = self.datagrams.max_size(room).unwrap_or(0);
            self.outbox.event(Event::DatagramsTooLarge { count, max });
        }
        let progress = Observation::PathProgress {
            path: id,
            address,
            stage: PathStage::Active,
        };
        self.monitor.observe(self.now, &progress);
        self.outbox.event(Event::PathOpened { path: id, address });
    }
}
