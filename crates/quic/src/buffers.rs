//! Buffers that keep their capacity between packets, so that no packet allocates.
//!
//! They hold nothing between calls, and are borrowed beside the other parts of a connection.

use crate::frame_writer::Carried;
use crate::observe::SentFrame;
use crate::path::LossFacts;

/// Buffers of a connection; given up while it is idle.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    /// What an ACK frame or the loss timer brought about.
    pub(crate) loss: LossFacts,
    pub(crate) packet: PacketBuffers,
}

/// Buffers for building one packet.
#[derive(Debug, Default)]
pub(crate) struct PacketBuffers {
    /// What the packet carries.
    pub(crate) carried: Vec<Carried>,
    /// The same for the observer.
    pub(crate) frames: Vec<SentFrame>,
    /// The packet's plaintext for the observer.
    pub(crate) payload: Vec<u8>,
}
