//! What a datagram is to consist of, before anything is written.

use crate::crypto::EncryptionLevel;
use crate::recovery::SendPurpose;

/// One packet to build.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub(crate) level: EncryptionLevel,
    /// Ack-eliciting frames may be written.
    pub(crate) data: bool,
    /// Only path validation may be written of them: the window is full.
    pub(crate) only_validation: bool,
    /// It answers a probe timeout: outside the window, and ack-eliciting whatever there is to say.
    pub(crate) probe: bool,
    /// It tests whether the path carries a packet of its size.
    pub(crate) mtu_probe: bool,
}

impl Packet {
    pub(crate) fn new(level: EncryptionLevel, data: bool, probe: bool) -> Self {
        Self {
            level,
            data,
            only_validation: false,
            probe,
            mtu_probe: false,
        }
    }

    /// A packet for a candidate path: what it carries is in its target.
    pub(crate) fn validation() -> Self {
        Self::new(EncryptionLevel::OneRtt, false, false)
    }

    /// A packet that tests whether the path carries its size.
    pub(crate) fn mtu_probe() -> Self {
        Self {
            mtu_probe: true,
            ..Self::new(EncryptionLevel::OneRtt, true, false)
        }
    }

    /// Its purpose, for recovery.
    pub(crate) fn purpose(self) -> SendPurpose {
        match (self.mtu_probe, self.probe) {
            (true, _) => SendPurpose::MtuProbe,
            (false, true) => SendPurpose::TimeoutProbe,
            (false, false) => SendPurpose::Data,
        }
    }
}

/// The packets of one datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    packets: [Packet; 3],
    len: usize,
    /// The datagram is to be expanded.
    pub(crate) pads: bool,
    /// Bytes that the receiver's address permits.
    pub(crate) budget: usize,
}

impl Plan {
    /// No packet, with `budget` bytes for packets.
    pub(crate) fn empty(budget: usize) -> Self {
        Self {
            packets: [Packet::new(EncryptionLevel::OneRtt, false, false); 3],
            len: 0,
            pads: false,
            budget,
        }
    }

    pub(crate) fn push(&mut self, packet: Packet) {
        self.packets[self.len] = packet;
        self.len += 1;
    }

    pub(crate) fn packets(&self) -> &[Packet] {
        &self.packets[..self.len]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }
}
