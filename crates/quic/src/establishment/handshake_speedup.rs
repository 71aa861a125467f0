//! Speeding up handshake completion: data repeated before its timeout, and in copies after it (RFC
//! 9002, sections 6.2.3 and 6.2.4).
//!
//! What is repeated is sent like any other data: the anti-amplification limit holds always, the congestion
//! window unless a probe timeout permits probes.

use std::time::Duration;

use crate::config::TransportConfig;
use crate::crypto::EncryptionLevel;
use crate::space::SpaceId;

use crate::fates::Fates;
use crate::path::LossFacts;

/// Ack-eliciting packets sent when a probe timeout expires (RFC 9002, section 6.2.4).
pub(crate) const PROBES: u8 = 2;

/// Copies of handshake data that one probe timeout may cause.
const MAX_COPIES: u8 = 3;

/// Data sent more recently are not taken for missing: packets of the peer that seem to say so are copies of
/// the one that was answered.
const FRESH: Duration = Duration::from_millis(10);

/// The packet number spaces of the handshake, with their encryption levels.
const HANDSHAKE: [(SpaceId, EncryptionLevel); 2] = [
    (SpaceId::Initial, EncryptionLevel::Initial),
    (SpaceId::Handshake, EncryptionLevel::Handshake),
];

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
            retransmissions_left: config.handshake_early_retransmissions,
            copies: [0; 2],
        }
    }

    /// A probe timeout expired during the handshake, which sends handshake data `copies` times.
    pub(crate) fn request_copies(&mut self, copies: u8) {
        self.copies = [copies.clamp(1, MAX_COPIES) - 1; 2];
    }
}

impl Fates<'_> {
    /// The peer shows that it misses handshake data: it repeats its own, or uses keys that we can't
    /// have without what got lost.
    pub(crate) fn speed_up_handshake(&mut self, facts: &mut LossFacts) {
        if self.speedup.retransmissions_left == 0 || self.handshake.is_confirmed() {
            return;
        }
        let missed = HANDSHAKE.map(|(id, _)| {
            let ledger = self.paths.space(id).map(|space| &space.ledger);
            ledger.is_some_and(|ledger| {
                let sent_at = ledger.last_eliciting_sent_at();
                let is_old = sent_at.is_some_and(|at| at + FRESH <= self.now);
                ledger.eliciting_in_flight() > 0 && is_old
            })
        });
        if missed == [false; 2] {
            return;
        }
        self.speedup.retransmissions_left -= 1;
        for ((id, _), is_missed) in HANDSHAKE.into_iter().zip(missed) {
            if is_missed {
                self.repeat_oldest(id, usize::MAX, facts);
            }
        }
    }

    /// Queues the next copy of handshake data, once the one before has left. Copies leave with the
    /// probes; those beyond need `has_room` in the window.
    pub(crate) fn copy_handshake(&mut self, has_room: bool, facts: &mut LossFacts) {
        for (nth, (id, level)) in HANDSHAKE.into_iter().enumerate() {
            if self.speedup.copies[nth] == 0 {
                continue;
            }
            let Some(space) = self.paths.space(id) else {
                self.speedup.copies[nth] = 0;
                continue;
            };
            let may_go = space.probes > 0 || has_room;
            if may_go && !self.handshake.has_pending(level) {
                self.speedup.copies[nth] -= 1;
                self.repeat_oldest(id, usize::from(PROBES), facts);
            }
        }
    }
}
