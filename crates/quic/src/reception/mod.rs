//! The reception context: what removing the protection of one received packet needs of a connection,
//! borrowed (RFC 9000, sections 5.2 and 12.2; RFC 9001, section 5).
//!
//! `header` checks what can be seen without keys, `opening` removes the protection, `key_phase` follows
//! the peer's key updates, `authenticated` notes what a packet proves and records it. What became of a
//! packet is returned; the connection acts on it.

mod authenticated;
mod header;
mod key_phase;
mod opening;

use std::ops::Range;

use swiftwater_units::{Instant, PacketNumber, PathId};
use swiftwater_wire::{ConnectionId, PartialHeader};

use crate::crypto::EncryptionLevel;
use crate::establishment::Establishment;
use crate::handshake::Handshake;
use crate::identity::Identity;
use crate::monitor::Monitor;
use crate::path::{Address, PathSet};
use crate::policy_host::PolicyHost;
use crate::transmit::EcnCodepoint;

/// Where and when a packet came from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin<'a> {
    pub(crate) address: &'a Address,
    pub(crate) ecn: Option<EcnCodepoint>,
    /// Bytes of the whole datagram.
    pub(crate) datagram_len: usize,
    /// The connection ID it was sent to.
    pub(crate) dst_cid: ConnectionId,
    /// The path that this connection ID belongs to.
    pub(crate) path: PathId,
    /// The path is open only because this packet came, and only if the packet is authentic.
    pub(crate) opens_path: bool,
    /// When its datagram arrived: before now if it had to wait for its keys.
    pub(crate) received_at: Instant,
}

/// A packet whose protection is in place.
pub(crate) struct ProtectedPacket<'p> {
    pub(crate) level: EncryptionLevel,
    pub(crate) header: &'p PartialHeader,
    pub(crate) bytes: &'p mut [u8],
}

/// A packet that was opened: it is authentic, and no duplicate.
#[derive(Clone, Debug)]
pub(crate) struct OpenedPacket {
    pub(crate) level: EncryptionLevel,
    pub(crate) number: PacketNumber,
    /// Where its plaintext lies.
    pub(crate) payload: Range<usize>,
    /// Bytes of the whole packet.
    size: usize,
}

/// What became of a packet.
#[derive(Debug)]
pub(crate) enum Received {
    /// Its protection is removed, its frames are to be processed.
    Opened(OpenedPacket),
    /// It is kept until its keys come.
    Buffered {
        /// Received by a client without Handshake keys: the server's Initial packet is missing.
        misses_initial: bool,
    },
    /// It was dropped, which is counted and observed already.
    Dropped,
}

/// The parts of a connection that the protection of received packets depends on.
pub(crate) struct Reception<'a> {
    pub(crate) now: Instant,
    pub(crate) identity: &'a mut Identity,
    pub(crate) handshake: &'a mut Handshake,
    pub(crate) establishment: &'a mut Establishment,
    pub(crate) paths: &'a mut PathSet,
    pub(crate) policies: &'a mut PolicyHost,
    pub(crate) monitor: &'a mut Monitor,
}

impl Reception<'_> {
    /// Counts and observes that the packet is dropped.
    fn dropped(&mut self, reason: &'static str) -> Received {
        self.monitor.dropped(self.now, reason);
        Received::Dropped
    }
}
