//! Proportional Rate Reduction (RFC 9937): how much may be sent while a loss-based controller is in
//! recovery, so that the flight ends at the reduced window and neither stalls nor bursts on the way.
//!
//! Holds one recovery period. When one begins and ends is decided by the transport's episodes; the
//! reduced window itself (`ssthresh`) belongs to the controller.

use swiftwater_units::{ByteCount, Instant};

use crate::controller::Env;
use crate::growth::MAX_WINDOW;
use crate::sample::{AckBatch, LossBatch};

/// One recovery period under PRR.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prr {
    began_at: Instant,
    /// `RecoverFS`: flight when recovery began, with what the ACK that revealed the loss delivered.
    recover_fs: ByteCount,
    /// `prr_delivered`: delivered since.
    delivered: ByteCount,
    /// `prr_out`: sent since.
    out: ByteCount,
    /// What may be in flight now: the flight after the last ACK and what that ACK allows to send.
    cwnd: ByteCount,
}

impl Prr {
    /// Recovery begins at `now`. Bytes in flight were `prior_inflight` before the lost packets were
    /// taken out, and are `inflight` now.
    ///
    /// Until the first ACK one packet may leave: the fast retransmission (RFC 9937, section 6).
    pub fn begin(
        now: Instant,
        prior_inflight: ByteCount,
        inflight: ByteCount,
        env: &Env<'_>,
    ) -> Self {
        Self {
            began_at: now,
            recover_fs: prior_inflight,
            delivered: ByteCount::ZERO,
            out: ByteCount::ZERO,
            cwnd: within_bounds(inflight + env.max_datagram_size, env),
        }
    }

    /// A packet of `bytes` left.
    pub fn on_sent(&mut self, bytes: ByteCount) {
        self.out += bytes;
    }

    /// More packets of the same period were lost, after the last ACK or together with the next:
    /// what they leave free in flight is no reason to send more before an ACK says so.
    pub fn on_loss(&mut self, loss: &LossBatch<'_>, env: &Env<'_>) {
        self.cwnd = within_bounds(self.cwnd - loss.lost_bytes, env);
    }

    /// Takes in an ACK of the period; `ssthresh` is the window to arrive at.
    pub fn on_ack(&mut self, ack: &AckBatch, ssthresh: ByteCount, env: &Env<'_>) {
        if ack.now == self.began_at {
            // The ACK that revealed the loss: what it delivered was in flight as well.
            self.recover_fs = self.recover_fs.max(ack.prior_inflight);
        }
        if ack.acked_bytes.is_zero() {
            return;
        }
        self.delivered += ack.acked_bytes;
        let mut send = if ack.inflight > ssthresh {
            proportional(self.delivered, ssthresh, self.recover_fs) - self.out
        } else {
            // Packet conservation, and one more datagram if nothing more was lost ("SafeACK").
            let conserved = (self.delivered - self.out).max(ack.acked_bytes);
            let safe = if ack.newly_lost_bytes.is_zero() {
                env.max_datagram_size
            } else {
                ByteCount::ZERO
            };
            (conserved + safe).min(ssthresh - ack.inflight)
        };
        if self.out.is_zero() && send.is_zero() {
            send = env.max_datagram_size;
        }
        self.cwnd = within_bounds(ack.inflight + send, env);
    }

    /// The bounds of every window may have changed.
    pub fn on_max_datagram_size_change(&mut self, env: &Env<'_>) {
        self.cwnd = within_bounds(self.cwnd, env);
    }

    /// Bytes that may be in flight.
    pub fn cwnd(&self) -> ByteCount {
        self.cwnd
    }
}

/// RFC 9002 lets no window fall below its minimum, also where RFC 9937 would for an ACK or two.
fn within_bounds(window: ByteCount, env: &Env<'_>) -> ByteCount {
    window.max(env.minimum_window).min(MAX_WINDOW)
}

/// `ceil(delivered * ssthresh / recover_fs)`.
fn proportional(delivered: ByteCount, ssthresh: ByteCount, recover_fs: ByteCount) -> ByteCount {
    let product = u128::from(delivered.get()) * u128::from(ssthresh.get());
    let share = product.div_ceil(u128::from(recover_fs.get().max(1)));
    ByteCount::new(u64::try_from(share).unwrap_or(u64::MAX))
}
