//! What a datagram is to consist of, before anything is written.

use crate::crypto::EncryptionLevel;
use crate::recovery::SendPurpose;

/// Data of a PATH_CHALLENGE and of a PATH_RESPONSE frame to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ValidationFrames {
    pub(crate) challenge: Option<[u8; 8]>,
    pub(crate) response: Option<[u8; 8]>,
}

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
    /// It is for a candidate path, with these frames and nothing else.
    pub(crate) candidate: Option<ValidationFrames>,
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
            candidate: None,
            mtu_probe: false,
        }
    }

    /// A packet for a candidate path, with a challenge, a response or both.
    pub(crate) fn validation(frames: ValidationFrames) -> Self {
        Self {
            candidate: Some(frames),
            ..Self::new(EncryptionLevel::OneRtt, false, false)
        }
    }

    /// A packet that tests whether the path carries its size.
    pub(crate) fn mtu_probe() -> Self {
        Self {
            mtu_probe: true,
            ..Self::new(EncryptionLevel::OneRtt, true, false)
        }
    }

    /// Its purpose, for recovery.
    pub(crate) fn purpose(&self) -> SendPurpose {
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
    pub(crate) pads: bool,
    pub(crate) budget: usize,
}

impl Plan {
    pub(crate) fn nothing() -> Self {
        Self {
            packets: [Packet::new(EncryptionLevel::OneRtt, false, false); 3],
            len: 0,
            pads: false,
            budget: 0,
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

    /// Bytes that the receiver's address permits.
    pub(crate) fn budget(&self) -> usize {
        self.budget
    }

    /// True if the datagram must have 1200 bytes.
    pub(crate) fn pads(&self) -> bool {
        self.pads
    }
}
