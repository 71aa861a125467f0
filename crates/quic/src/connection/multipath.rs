//! Several paths as seen from outside: calls of the application, and the frames of multipath
//! (draft-ietf-quic-multipath-21, sections 2 and 3). What they bring about is in `path_management`; when paths
//! end, in `path_closing`.

use swiftwater_units::{Instant, PathId, StreamId};
use swiftwater_wire::{Frame, MultipathVersion};

use crate::control::{ControlKey, ControlValue};
use crate::error::{OpenPathError, StreamPathError, TransportError};
use crate::path::PathState;
use crate::path_management::PathManagement;
use crate::policy::{PathPreference, PathStatus};
use crate::space::SpaceId;
use crate::transmit::PathAddress;

use super::Connection;

impl Connection {
    /// True if both ends have declared multipath and the handshake is complete.
    pub fn is_multipath(&self) -> bool {
        self.multipath.is_some()
    }

    /// The version of the multipath extension in use; `None` if it was not negotiated, or not yet.
    pub fn multipath_version(&self) -> Option<MultipathVersion> {
        self.multipath.as_deref().map(|multipath| multipath.version)
    }

    /// The paths that are open, by identifier; those that are being validated are among them.
    pub fn open_paths(&self) -> impl Iterator<Item = PathId> {
        self.paths.open().map(|path| path.id)
    }

    /// Both ends of a path; `None` if it is not open.
    pub fn address_of(&self, path: PathId) -> Option<PathAddress> {
        self.paths.get(path).map(|path| path.network.address)
    }

    /// Opens another path, between `address.local` and `address.remote`, beside those that are open. It is
    /// validated first; [`Event::PathOpened`] says that it carries data, [`Event::PathAbandoned`] that it
    /// does not work. Several paths may have the same addresses.
    ///
    /// # Errors
    ///
    /// See [`OpenPathError`]. With [`OpenPathError::NoConnectionId`] and [`OpenPathError::Limit`] a later
    /// call may succeed: [`Event::PathsAvailable`] says when.
    ///
    /// [`Event::PathOpened`]: crate::Event::PathOpened
    /// [`Event::PathAbandoned`]: crate::Event::PathAbandoned
    /// [`Event::PathsAvailable`]: crate::Event::PathsAvailable
    pub fn open_path(
        &mut self,
        now: Instant,
        address: PathAddress,
    ) -> Result<PathId, OpenPathError> {
        self.path_management(now).open(address)
    }

    /// Sets what schedulers see as status and cost of `path`, and announces a new status to the peer if
    /// multipath was negotiated (section 3.3); false if the path is not open.
    pub fn set_path_preference(&mut self, path: PathId, preference: PathPreference) -> bool {
        let Some(state) = self.paths.get_mut(path).filter(|path| !path.is_closing()) else {
            return false;
        };
        let before = std::mem::replace(&mut state.preference, preference);
        if let Some(multipath) = &mut self.multipath
            && before.status != preference.status
        {
            let value = ControlValue::Status {
                sequence: multipath.records.of(path).next_sequence(),
                backup: preference.status == PathStatus::Backup,
            };
            self.control.set(ControlKey::PathStatus(path), value);
        }
        true
    }

    /// Assigns the data of a stream to a path: they leave there and nowhere else for as long as the path
    /// works, whatever the scheduler prefers, and beside other data of the same urgency first. While probes of
    /// the path go unanswered and after its end, as with `None`, they leave on any path. Copies that a
    /// re-injector asks for are not concerned.
    ///
    /// # Errors
    ///
    /// The path is not open, or nothing can be sent on the stream.
    pub fn set_stream_path(
        &mut self,
        stream: StreamId,
        path: Option<PathId>,
    ) -> Result<(), StreamPathError> {
        if let Some(path) = path
            && !self.paths.open().any(|open| open.id == path)
        {
            return Err(StreamPathError::NotOpen(path));
        }
        Ok(self.streams.set_path(stream, path)?)
    }

    /// The path that the data of a stream are assigned to; `None` if any may carry them.
    pub fn stream_path(&self, stream: StreamId) -> Option<PathId> {
        self.streams.path_of(stream)
    }

    /// The system could not send on `path`: its interface is down, its address gone, or no route left. While another
    /// path works, the probe timeout of this one counts as expired: what is in flight there leaves on others, and
    /// schedulers avoid the path until something is acknowledged.
    ///
    /// Nothing else follows, and no more than once in a probe timeout, since the report may come from an ICMP message
    /// that anybody can forge (RFC 9000, section 21.1.1).
    pub fn on_path_unreachable(&mut self, now: Instant, path: PathId) {
        let works = |path: &PathState| path.carries_data() && path.recovery.pto_count() == 0;
        let has_other = self
            .paths
            .open()
            .any(|other| other.id != path && works(other));
        let is_suspected = !self.paths.open().any(|open| open.id == path && works(open));
        let record = (self.multipath.as_deref()).and_then(|it| it.records.get(path));
        let pto = self.paths.pto(path, self.peer_max_ack_delay());
        let is_recent = record
            .and_then(|record| record.first_pto)
            .is_some_and(|at| now < at + pto);
        if self.lifecycle.is_open() && has_other && !is_suspected && !is_recent {
            self.on_probe_timeout(now, SpaceId::Data(path));
        }
    }

    /// A frame of multipath arrived.
    pub(super) fn on_multipath_frame(
        &mut self,
        now: Instant,
        frame: &Frame<'_>,
    ) -> Result<(), TransportError> {
        match *frame {
            Frame::PathAbandon { path, error, .. } => {
                self.path_management(now).check_path_id(path)?;
                self.on_path_abandoned(now, path, error);
                Ok(())
            }
            ref other => self.path_management(now).on_frame(other),
        }
    }

    /// The owners that opening and ending of paths concern.
    pub(super) fn path_management(&mut self, now: Instant) -> PathManagement<'_> {
        let max_ack_delay = self.peer_max_ack_delay();
        PathManagement {
            now,
            identity: &mut self.identity,
            handshake: &self.handshake,
            paths: &mut self.paths,
            multipath: &mut self.multipath,
            streams: &mut self.streams,
            datagrams: &mut self.datagrams,
            control: &mut self.control,
            outbox: &mut self.outbox,
            monitor: &mut self.monitor,
            max_ack_delay,
            is_open: self.lifecycle.is_open(),
        }
    }
}
