//! Speeding the handshake up: data repeated before its timeout, and in copies after it (RFC 9002,
//! sections 6.2.3 and 6.2.4).
//!
//! What is repeated waits like any other data: the amplification limit holds always, the congestion
//! window unless a probe timeout permits probes.

use std::time::Duration;

use swiftwater_units::Instant;

use crate::config::TransportConfig;
use crate::crypto::EncryptionLevel;

use super::Connection;
use super::timers::PROBES;

/// Copies of handshake data that one probe timeout may ask for.
const MAX_COPIES: u8 = 3;

/// What was sent more recently isn't missed: the peer's packets that seem to say so are copies of the
/// one that was answered.
const FRESH: Duration = Duration::from_millis(10);

/// Encryption levels of the handshake.
const EARLY: [EncryptionLevel; 2] = [EncryptionLevel::Initial, EncryptionLevel::Handshake];

/// What may still be repeated.
#[derive(Clone, Copy, Debug)]
pub(super) struct HandshakeSpeedup {
    /// Times that data may be repeated before its timeout.
    retransmissions_left: u8,
    /// Copies, beyond the first, that the last probe timeout asked for and that did not leave yet,
    /// by encryption level.
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
        if self.handshake_speedup.retransmissions_left == 0 || self.handshake.is_confirmed() {
            return;
        }
        let is_missed = |connection: &Self, level| {
            let ledger = &connection.space(level)?.ledger;
            let sent_at = ledger.last_eliciting_sent_at()?;
            (ledger.eliciting_in_flight() > 0 && sent_at + FRESH <= now).then_some(())
        };
        let missed = EARLY.map(|level| is_missed(self, level).is_some());
        if missed == [false; 2] {
            return;
        }
        self.handshake_speedup.retransmissions_left -= 1;
        for (level, is_missed) in EARLY.into_iter().zip(missed) {
            if is_missed {
                self.repeat_oldest(now, level, usize::MAX);
            }
        }
    }

    /// A probe timeout expired during the handshake.
    pub(super) fn ask_for_copies(&mut self) {
        let copies = self.identity.config.handshake_pto_copies;
        self.handshake_speedup.copies = [copies.clamp(1, MAX_COPIES) - 1; 2];
    }

    /// Lets the next copy of handshake data wait to be sent, once the one before has left. Copies go
    /// with the probes; those beyond need `has_room` in the window.
    pub(super) fn copy_handshake(&mut self, now: Instant, has_room: bool) {
        if self.handshake_speedup.copies == [0; 2] {
            return;
        }
        for level in EARLY {
            let Some(space) = self.space(level) else {
                self.handshake_speedup.copies[level as usize] = 0;
                continue;
            };
            let may_go = space.probes > 0 || has_room;
            if may_go
                && self.handshake_speedup.copies[level as usize] > 0
                && !self.handshake.has_pending(level)
            {
                self.handshake_speedup.copies[level as usize] -= 1;
                self.repeat_oldest(now, level, usize::from(PROBES));
            }
        }
    }
}
