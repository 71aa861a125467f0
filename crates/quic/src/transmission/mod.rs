//! The transmission context: what building datagrams on one path needs of a connection, borrowed for a
//! batch of them.
//!
//! Only it writes packets. `choose` plans the packets of a datagram, `packet` numbers,
//! protects and records each of them, `fill` appends its frames.

mod acks;
mod batch;
mod choose;
mod close;
mod copies;
mod fill;
mod packet;
mod plan;
mod probing;

pub(crate) use self::batch::{Batch, BatchEnd};

use self::packet::{Destination, Target};
use self::plan::Plan;

use std::time::Duration;

use swiftwater_units::Instant;
use swiftwater_wire::MultipathVersion;

use crate::buffers::Workspace;
use crate::control::Control;
use crate::crypto::EncryptionLevel;
use crate::datagram_size::MIN_INITIAL_SIZE;
use crate::datagrams::Datagrams;
use crate::handshake::{Handshake, KeysUnavailable};
use crate::identity::Identity;
use crate::lifecycle::Lifecycle;
use crate::monitor::Monitor;
use crate::multipath::AckRoute;
use crate::path::{OtherPaths, PathState, discard_space};
use crate::policy_host::PolicyHost;
use crate::space::{HandshakeSpaces, Space, SpaceId};
use crate::streams::Streams;

/// The parts of a connection that one path's packets are written from and recorded in.
pub(crate) struct Transmission<'a> {
    pub(crate) now: Instant,
    pub(crate) identity: &'a mut Identity,
    pub(crate) handshake: &'a mut Handshake,
    pub(crate) handshake_spaces: &'a mut HandshakeSpaces,
    pub(crate) path: &'a mut PathState,
    /// Paths beside it, whose packets it may acknowledge.
    pub(crate) others: OtherPaths<'a>,
    /// Which paths carry acknowledgements, in PATH_ACK frames; `None` if there is no second path: ACK frames then.
    pub(crate) ack_route: Option<AckRoute>,
    pub(crate) multipath_version: MultipathVersion,
    pub(crate) streams: &'a mut Streams,
    pub(crate) control: &'a mut Control,
    pub(crate) datagrams: &'a mut Datagrams,
    pub(crate) policies: &'a mut PolicyHost,
    pub(crate) lifecycle: &'a mut Lifecycle,
    pub(crate) monitor: &'a mut Monitor,
    /// The delay that the peer may add to acknowledgements.
    pub(crate) max_ack_delay: Duration,
}

impl Transmission<'_> {
    /// The space that packets of `level` are numbered in.
    #[inline]
    pub(crate) fn space(&self, level: EncryptionLevel) -> Option<&Space> {
        match level {
            EncryptionLevel::OneRtt | EncryptionLevel::ZeroRtt => Some(&self.path.space),
            EncryptionLevel::Initial => self.handshake_spaces.get(SpaceId::Initial),
            EncryptionLevel::Handshake => self.handshake_spaces.get(SpaceId::Handshake),
        }
    }

    /// The same, to be changed.
    #[inline]
    pub(crate) fn space_mut(&mut self, level: EncryptionLevel) -> Option<&mut Space> {
        match level {
            EncryptionLevel::OneRtt | EncryptionLevel::ZeroRtt => Some(&mut self.path.space),
            EncryptionLevel::Initial => self.handshake_spaces.get_mut(SpaceId::Initial),
            EncryptionLevel::Handshake => self.handshake_spaces.get_mut(SpaceId::Handshake),
        }
    }

    /// Discards the keys and the space of an encryption level of the handshake.
    pub(crate) fn discard(&mut self, level: EncryptionLevel) {
        let id = SpaceId::of(level, self.path.id);
        if discard_space(id, self.handshake_spaces, self.path) {
            self.handshake.discard(level);
        }
    }

    /// Size of a datagram that is to be expanded, bytes.
    fn padded_size(&self, plan: &Plan) -> usize {
        let first = plan.packets().first();
        let has_initial = first.is_some_and(|packet| packet.level == EncryptionLevel::Initial);
        if has_initial && self.identity.side.is_client() {
            MIN_INITIAL_SIZE.max(self.identity.config.initial_padding.into())
        } else {
            MIN_INITIAL_SIZE
        }
    }

    /// Builds one datagram of the planned packets; returns its length, 0 if nothing came of it.
    fn build_datagram(
        &mut self,
        plan: &Plan,
        out: &mut [u8],
        workspace: &mut Workspace,
    ) -> Result<usize, KeysUnavailable> {
        let permitted = out.len().min(plan.budget);
        let out = &mut out[..permitted];
        let padded_size = self.padded_size(plan);
        let mut len = 0;
        for (nth, &packet) in plan.packets().iter().enumerate() {
            let is_last = nth + 1 == plan.packets().len();
            let target = Target {
                pad_to: if plan.pads {
                    padded_size.saturating_sub(len).min(out.len() - len)
                } else {
                    0
                },
                is_last,
                destination: Destination::InUse,
            };
            len += self.build_packet(packet, &target, &mut out[len..], workspace)?;
        }
        if len > 0 {
            self.path.network.on_datagram_sent(len);
            self.monitor.on_datagram_sent(len);
        }
        Ok(len)
    }
}
