//! Limits of speeding up handshake completion: how often handshake data may still be repeated before its
//! timeout, and in how many copies after it (RFC 9002, sections 6.2.3 and 6.2.4).
//!
//! What is repeated is sent like any other data: the anti-amplification limit holds always, the congestion
//! window unless a probe timeout permits probes.

use crate::config::TransportConfig;

/// Ack-eliciting packets sent when a probe timeout expires (RFC 9002, section 6.2.4).
pub(crate) const PROBES: u8 = 2;

/// Copies of handshake data that one probe timeout may cause.
const MAX_COPIES: u8 = 3;

/// What may still be repeated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandshakeSpeedup {
    /// Times that data may be repeated before its timeout.
    retransmissions_left: u8,
    /// Copies, beyond the first, that the last probe timeout caused and that did not leave yet, by
    /// encryption level.
    copies: [u8; 2],
}

impl HandshakeSpeedup {
    pub(crate) fn new(config: &TransportConfig) -> Self {
        Self {
            retransmissions_left: config.handshake_retransmissions_before_timeout,
            copies: [0; 2],
        }
    }

    /// Takes the permission to repeat data before their timeout; false if there is none left.
    pub(crate) fn take_retransmission(&mut self) -> bool {
        let left = self.retransmissions_left.checked_sub(1);
        self.retransmissions_left = left.unwrap_or(0);
        left.is_some()
    }

    pub(crate) fn has_retransmission(self) -> bool {
        self.retransmissions_left > 0
    }

    /// A probe timeout expired during the handshake, which sends handshake data `copies` times.
    pub(crate) fn request_copies(&mut self, copies: u8) {
        self.copies = [copies.clamp(1, MAX_COPIES) - 1; 2];
    }

    /// Copies that did not leave yet, of Initial and of Handshake packets.
    pub(crate) fn copies_mut(&mut self) -> &mut [u8; 2] {
        &mut self.copies
    }
}
