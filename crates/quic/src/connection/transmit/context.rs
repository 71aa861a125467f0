//! The transmission context: what building one datagram on one path needs of a connection, borrowed.
//!
//! Only it writes packets. `fill` appends frames, `seal` numbers, protects and records.

use std::time::Duration;

use swiftwater_units::{Instant, PathId};

use crate::control::Control;
use crate::crypto::EncryptionLevel;
use crate::datagrams::Datagrams;
use crate::handshake::Handshake;
use crate::path::{PathState, discard_space};
use crate::space::{HandshakeSpaces, Space, SpaceId};
use crate::streams::Streams;

use super::super::Connection;
use super::super::buffers::PacketBuffers;
use super::super::identity::Identity;
use super::super::lifecycle::Lifecycle;
use super::super::monitor::Monitor;
use super::super::policy_host::PolicyHost;

/// The parts of a connection that write packets or hear of them, for one path.
pub(in crate::connection) struct Transmission<'a> {
    pub(super) now: Instant,
    pub(super) identity: &'a mut Identity,
    pub(super) handshake: &'a mut Handshake,
    pub(super) handshake_spaces: &'a mut HandshakeSpaces,
    pub(super) path: &'a mut PathState,
    pub(super) streams: &'a mut Streams,
    pub(super) control: &'a mut Control,
    pub(super) datagrams: &'a mut Datagrams,
    pub(super) policies: &'a mut PolicyHost,
    pub(super) lifecycle: &'a mut Lifecycle,
    pub(super) monitor: &'a mut Monitor,
    /// The delay that the peer may add to acknowledgements.
    pub(super) max_ack_delay: Duration,
}

impl Connection {
    /// What builds packets on a path, and the buffers for them; `None` if the path is not open.
    pub(super) fn transmission(
        &mut self,
        now: Instant,
        path: PathId,
    ) -> Option<(Transmission<'_>, &mut PacketBuffers)> {
        let max_ack_delay = self.peer_max_ack_delay();
        let (path, handshake_spaces) = self.paths.with_handshake_spaces(path)?;
        let transmission = Transmission {
            now,
            identity: &mut self.identity,
            handshake: &mut self.handshake,
            handshake_spaces,
            path,
            streams: &mut self.streams,
            control: &mut self.control,
            datagrams: &mut self.datagrams,
            policies: &mut self.policies,
            lifecycle: &mut self.lifecycle,
            monitor: &mut self.monitor,
            max_ack_delay,
        };
        Some((transmission, &mut self.buffers.need().packet))
    }
}

impl Transmission<'_> {
    /// The space that packets of `level` are numbered in.
    pub(super) fn space(&self, level: EncryptionLevel) -> Option<&Space> {
        match SpaceId::of(level, self.path.id) {
            SpaceId::Data(_) => Some(&self.path.space),
            id => self.handshake_spaces.get(id),
        }
    }

    /// The same, to be changed.
    pub(super) fn space_mut(&mut self, level: EncryptionLevel) -> Option<&mut Space> {
        match SpaceId::of(level, self.path.id) {
            SpaceId::Data(_) => Some(&mut self.path.space),
            id => self.handshake_spaces.get_mut(id),
        }
    }

    /// Forgets the keys and the space of an encryption level of the handshake.
    pub(super) fn discard(&mut self, level: EncryptionLevel) {
        let id = SpaceId::of(level, self.path.id);
        if discard_space(id, self.handshake_spaces, self.path) {
            self.handshake.discard(level);
        }
    }

    /// Bytes for frames in a full packet with application data.
    pub(super) fn data_room(&self) -> usize {
        let keys = self.handshake.keys();
        let sends_early_data = self.identity.side.is_client()
            && !self.handshake.is_complete()
            && keys.has(EncryptionLevel::ZeroRtt);
        let level = if sends_early_data {
            EncryptionLevel::ZeroRtt
        } else {
            EncryptionLevel::OneRtt
        };
        self.path.frame_room(level, keys.tag_len(level))
    }
}
