//! Loss recovery as far as BBRv1 has any: it conserves packets for one round and then returns to
//! the window it had.
//!
//! While recovery holds the flow back, rate samples show what recovery let leave, not what the path
//! can carry. Linux counts them like any other. Here, unless
//! [`Bbr1Config::recovery_counts`](super::Bbr1Config::recovery_counts) is set, a round sampled from
//! conserved packets is only a weak sign of a full pipe (if few were lost before), and a flow that the
//! application limits otherwise is sampled as limited by it until the window is back.

use swiftwater_units::{ByteCount, Instant};

use crate::bbr::gain::Gain;
use crate::sample::AckBatch;

/// Rounds after which it shows whether the application limits a flow that recovery held back: one of
/// conservation, one of growth back to the window before it, one until packets sent since are
/// acknowledged. Up to then it is taken to limit the flow as before.
const HELD_ROUNDS: u64 = 3;

/// Losses of a round, as a share of what it delivered, beyond which they show that the path was full.
const MANY_LOST: Gain = Gain::new(0.125);

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
    /// Packets were conserved in the running round, and in the one before it without many losses.
    conserved: [bool; 2],
    /// Bytes lost in the running round, and delivered in all when it began.
    lost_in_round: ByteCount,
    delivered_before: ByteCount,
    /// The round that ended last had samples of conserved packets.
    sampled_conserved: bool,
    /// The last round in which the application limited the flow.
    app_limited_in: Option<u64>,
}

impl Recovery {
    /// Packets were lost.
    pub(super) fn on_loss(&mut self, now: Instant, bytes: ByteCount) {
        self.last_loss = Some(now);
        self.lost_since_ack += bytes;
        self.lost_in_round += bytes;
    }

    /// A timeout: all that was in flight may be gone, and conserving it means nothing.
    pub(super) fn on_timeout(&mut self, now: Instant) {
        self.last_loss = Some(now);
        self.is_entered = true;
        self.conserves = false;
    }

    /// The application limited the flow in `round`.
    pub(super) fn on_app_limited(&mut self, round: u64) {
        self.app_limited_in = Some(round);
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

    /// True if the round that ended last had samples of packets that conservation had held back, for
    /// a few losses: that the rate didn't grow in it says little about the path.
    pub(super) fn sampled_conserved(&self) -> bool {
        self.sampled_conserved
    }

    /// True in a recovery of a flow that the application limits otherwise, as far as known in `round`.
    pub(super) fn is_of_limited_flow(&self, round: u64) -> bool {
        let is_recent = |last: u64| round <= last.saturating_add(HELD_ROUNDS);
        self.is_active() && self.app_limited_in.is_some_and(is_recent)
    }

    /// A round ended, with `delivered` bytes delivered in all. No more than `few` lost bytes are many.
    pub(super) fn on_round(&mut self, delivered: ByteCount, few: ByteCount) {
        self.conserves = false;
        let lost = std::mem::take(&mut self.lost_in_round);
        let in_round = delivered - std::mem::replace(&mut self.delivered_before, delivered);
        let many_lost = lost > few && lost > MANY_LOST.of_bytes(in_round);
        // Samples are taken a round after the packet left.
        let [running, before] = self.conserved;
        self.sampled_conserved = before;
        self.conserved = [false, running && !many_lost];
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
        self.conserved[0] = true;
        RecoveryStep::Entered
    }

    pub(super) fn end(&mut self) {
        self.last_loss = None;
        self.is_entered = false;
        self.conserves = false;
    }
}
