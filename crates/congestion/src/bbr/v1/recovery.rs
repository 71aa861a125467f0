//! Loss recovery as far as BBRv1 has any: it conserves packets for one round and then returns to
//! the window it had.

use swiftwater_units::{ByteCount, Instant};

use crate::sample::AckBatch;

/// What an ACK means for recovery.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum RecoveryStep {
    /// Nothing changes.
    Nothing,
    /// First ACK of a recovery.
    Entered,
    /// Everything sent before the last loss is settled.
    Ended,
}

/// Losses that follow within a round of each other are one recovery. Otherwise steady random loss
/// would begin a recovery each round, and conservation, meant for its first round, would never end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Recovery {
    last_loss: Option<Instant>,
    is_entered: bool,
    conserves: bool,
    lost_since_ack: ByteCount,
}

impl Recovery {
    /// Packets were lost.
    pub(super) fn on_loss(&mut self, now: Instant, bytes: ByteCount) {
        self.last_loss = Some(now);
        self.lost_since_ack += bytes;
    }

    /// A timeout: all that was in flight may be gone, and conserving it means nothing.
    pub(super) fn on_timeout(&mut self, now: Instant) {
        self.last_loss = Some(now);
        self.is_entered = true;
        self.conserves = false;
    }

    /// Bytes lost since the last ACK, which are discarded with it.
    pub(super) fn take_lost(&mut self) -> ByteCount {
        std::mem::take(&mut self.lost_since_ack)
    }

    pub(super) fn is_active(&self) -> bool {
        self.last_loss.is_some()
    }

    pub(super) fn conserves(&self) -> bool {
        self.conserves
    }

    pub(super) fn on_round(&mut self) {
        self.conserves = false;
    }

    pub(super) fn on_ack(&mut self, ack: &AckBatch) -> RecoveryStep {
        let Some(last_loss) = self.last_loss else {
            return RecoveryStep::Nothing;
        };
        if ack.largest_acked_sent_at >= last_loss {
            self.end();
            return RecoveryStep::Ended;
        }
        if self.is_entered {
            return RecoveryStep::Nothing;
        }
        self.is_entered = true;
        self.conserves = true;
        RecoveryStep::Entered
    }

    pub(super) fn end(&mut self) {
        *self = Self {
            lost_since_ack: self.lost_since_ack,
            ..Self::default()
        };
    }
}
