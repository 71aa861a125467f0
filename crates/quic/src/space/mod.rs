//! Packet number spaces: which packets were received in one and which acknowledgement is due, and
//! which were sent in it, with what they carried (RFC 9000, section 12.3).
//!
//! RTT, windows and timers belong to the path (`recovery`), keys to the handshake.

mod arrivals;
mod handshake;
mod id;
mod ledger;
mod received;
#[cfg(test)]
mod received_tests;
mod settled;
#[cfg(test)]
mod tests;

pub use arrivals::Arrivals;
pub(crate) use handshake::HandshakeSpaces;
pub(crate) use id::SpaceId;
pub(crate) use ledger::{AckOutcome, LargestAcked, Ledger, SentPacket};
pub(crate) use received::{AckTiming, Received};

use swiftwater_units::Instant;

use crate::idle_memory::IdleMemory;

/// A packet-number space.
#[derive(Debug)]
pub(crate) struct Space {
    /// What arrived.
    pub(crate) received: Received,
    /// What was sent.
    pub(crate) ledger: Ledger,
    /// Ack-eliciting packets to send regardless of the congestion window (RFC 9002, section
    /// 6.2.4).
    pub(crate) probes: u8,
    /// When the oldest packet that is not acknowledged becomes lost by time.
    pub(crate) loss_time: Option<Instant>,
    /// A PING was asked for.
    pub(crate) ping: bool,
    /// After this packet number one is left out.
    pub(crate) skip_after: u64,
    /// Packets sent since the last ack-eliciting one.
    pub(crate) non_eliciting_run: u32,
    /// Non-ack-eliciting packets sent in a row while an ack-eliciting one was overdue for its
    /// acknowledgement.
    pub(crate) unacknowledged_run: u32,
}

impl Space {
    pub(crate) fn new() -> Self {
        Self {
            received: Received::new(),
            ledger: Ledger::new(),
            probes: 0,
            loss_time: None,
            ping: false,
            skip_after: 0,
            non_eliciting_run: 0,
            unacknowledged_run: 0,
        }
    }
}

impl IdleMemory for Space {
    fn release_idle_memory(&mut self) {
        let Self {
            received,
            ledger,
            probes: _,
            loss_time: _,
            ping: _,
            skip_after: _,
            non_eliciting_run: _,
            unacknowledged_run: _,
        } = self;
        received.release_idle_memory();
        ledger.release_idle_memory();
    }
}
