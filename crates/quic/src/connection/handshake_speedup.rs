//! Speeding up handshake completion: data repeated before its timeout, and in copies after it (RFC
//! 9002, sections 6.2.3 and 6.2.4).
//!
//! What is repeated is sent like any other data: the anti-amplification limit holds always, the congestion
//! window unless a probe timeout permits probes.

use std::time::Duration;

use swiftwater_units::Instant;

use crate::config::TransportConfig;
use crate::crypto::EncryptionLevel;
use crate::space::SpaceId;

use super::Connection;
use super::timers::PROBES;

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
pub(super) struct HandshakeSpeedup {
    /// Times that data may be repeated before its timeout.
    retransmissions_left: u8,
    /// Copies, beyond the first, that the last probe timeout caused and that did not leave yet, by
    /// encryption level.
    copies: [u8; 2],
}

impl HandshakeSpeedup {
    pub(super) fn new(config: &TransportConfig) -> Self {
        Self {
            retransmissions_left: config.handshake_early_retransmissions,
            copies: [0; 2],
        }
    }
}

impl Connection {
    /// The peer shows that it misses handshake data: it repeats its own, or uses keys that we can't
    /// have without what got lost.
    pub(super) fn speed_up_handshake(&mut self, now: Instant) {
        let speedup = &mut self.establishment.speedup;
        if speedup.retransmissions_left == 0 || self.handshake.is_confirmed() {
            return;
        }
        let missed = HANDSHAKE.map(|(id, _)| {
            let ledger = self.paths.space(id).map(|space| &space.ledger);
            ledger.is_some_and(|ledger| {
                let sent_at = ledger.last_eliciting_sent_at();
                ledger.eliciting_in_flight() > 0 && sent_at.is_some_and(|at| at + FRESH <= now)
            })
        });
        if missed == [false; 2] {
            return;
        }
        speedup.retransmissions_left -= 1;
        let (mut fates, buffers) = self.fates(now);
        for ((id, _), is_missed) in HANDSHAKE.into_iter().zip(missed) {
            if is_missed {
                fates.repeat_oldest(id, usize::MAX, &mut buffers.loss);
            }
        }
    }

    /// A probe timeout expired during the handshake.
    pub(super) fn request_handshake_copies(&mut self) {
        let copies = self.identity.config.handshake_pto_copies;
        self.establishment.speedup.copies = [copies.clamp(1, MAX_COPIES) - 1; 2];
    }

    /// Queues the next copy of handshake data, once the one before has left. Copies leave with the
    /// probes; those beyond need `has_room` in the window.
    pub(super) fn copy_handshake(&mut self, now: Instant, has_room: bool) {
        if self.establishment.speedup.copies == [0; 2] {
            return;
        }
        for (nth, (id, level)) in HANDSHAKE.into_iter().enumerate() {
            let copies = &mut self.establishment.speedup.copies[nth];
            let Some(space) = self.paths.space(id) else {
                *copies = 0;
                continue;
            };
            let may_go = space.probes > 0 || has_room;
            if may_go && *copies > 0 && !self.handshake.has_pending(level) {
                *copies -= 1;
                let (mut fates, buffers) = self.fates(now);
                fates.repeat_oldest(id, usize::from(PROBES), &mut buffers.loss);
            }
        }
    }
}
