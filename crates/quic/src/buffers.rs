//! The buffers in which packets are built and their fates collected, and the count of frames sent. The
//! buffers keep their capacity, so that no packet allocates.

use crate::frame_counts::FrameCounter;
use crate::frame_writer::Carried;
use crate::lazy_box::LazyBox;
use crate::observe::SentFrame;
use crate::path::LossFacts;

/// The buffers of a connection, and the count of frames that it has sent.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    pub(crate) frames_sent: FrameCounter,
    /// They hold nothing between calls.
    pub(crate) buffers: LazyBox<Buffers>,
}

impl Workspace {
    /// What a packet is recorded in while it is written.
    pub(crate) fn for_packet(&mut self) -> (&mut PacketBuffers, &mut FrameCounter) {
        (&mut self.buffers.need().packet, &mut self.frames_sent)
    }
}

/// Buffers; released while the connection is idle.
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
