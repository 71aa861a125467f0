//! Repetition of the CRYPTO data in flight: which packets are repeated once the peer shows that it misses
//! them, and which by copies (RFC 9002, sections 6.2.3 and 6.2.4). How often is up to `HandshakeSpeedup`.

use std::time::Duration;

use crate::crypto::EncryptionLevel;
use crate::establishment::PROBES;
use crate::path::LossFacts;
use crate::space::SpaceId;

use super::Fates;

/// Data sent more recently are not taken for missing: packets of the peer that seem to say so are copies of
/// the one that was answered.
const FRESH: Duration = Duration::from_millis(10);

/// The packet number spaces of the handshake, with their encryption levels.
const HANDSHAKE: [(SpaceId, EncryptionLevel); 2] = [
    (SpaceId::Initial, EncryptionLevel::Initial),
    (SpaceId::Handshake, EncryptionLevel::Handshake),
];

impl Fates<'_> {
    /// The peer shows that it misses handshake data: it repeats its own, or uses keys that this end
    /// can't have without what got lost.
    pub(crate) fn speed_up_handshake(&mut self, facts: &mut LossFacts) {
        if !self.speedup.has_retransmission() || self.handshake.is_confirmed() {
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
        if missed == [false; 2] || !self.speedup.take_retransmission() {
            return;
        }
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
            if self.speedup.copies_mut()[nth] == 0 {
                continue;
            }
            let Some(space) = self.paths.space(id) else {
                self.speedup.copies_mut()[nth] = 0;
                continue;
            };
            let may_go = space.probes > 0 || has_room;
            if may_go && !self.handshake.has_pending(level) {
                self.speedup.copies_mut()[nth] -= 1;
                self.repeat_oldest(id, usize::from(PROBES), facts);
            }
        }
    }
}
