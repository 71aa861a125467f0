//! Observers: who wants to know what happens, without a part in it.

use std::fmt;
use std::time::Duration;

use swiftwater_units::{ByteCount, Instant, PacketNumber, PathId, Side};

use crate::crypto::Epoch;
use crate::error::ConnectionError;

/// Something that happened on a connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Observation<'a> {
    /// A packet left.
    PacketSent {
        /// Path it left on.
        path: PathId,
        /// Encryption level.
        epoch: Epoch,
        /// Packet number.
        number: PacketNumber,
        /// Bytes on the wire.
        size: usize,
        /// True if the peer must acknowledge it.
        ack_eliciting: bool,
    },
    /// A packet was authenticated.
    PacketReceived {
        /// Path it arrived on.
        path: PathId,
        /// Encryption level.
        epoch: Epoch,
        /// Packet number.
        number: PacketNumber,
        /// Bytes on the wire.
        size: usize,
    },
    /// A packet was thrown away.
    PacketDropped {
        /// Why.
        reason: &'static str,
    },
    /// A packet is considered lost.
    PacketLost {
        /// Path it left on.
        path: PathId,
        /// Encryption level.
        epoch: Epoch,
        /// Packet number.
        number: PacketNumber,
        /// Bytes on the wire.
        size: usize,
    },
    /// State of recovery after an ACK, a loss or a timeout.
    Metrics {
        /// The path.
        path: PathId,
        /// `smoothed_rtt`.
        smoothed_rtt: Duration,
        /// Last sample.
        latest_rtt: Duration,
        /// Smallest sample.
        min_rtt: Duration,
        /// Congestion window.
        cwnd: ByteCount,
        /// Bytes in flight.
        bytes_in_flight: ByteCount,
        /// Probe timeouts in a row.
        pto_count: u32,
    },
    /// A probe timeout expired.
    ProbeTimeout {
        /// The path.
        path: PathId,
        /// Expirations in a row.
        count: u32,
    },
    /// Our or the peer's 1-RTT keys changed phase.
    KeyUpdated {
        /// Number of updates so far.
        generation: u64,
    },
    /// The connection ended.
    Closed {
        /// Why.
        reason: &'a ConnectionError,
    },
}

/// Is told of every [`Observation`]; affects nothing.
pub trait Observer: Send {
    /// Something happened at `now`.
    fn observe(&mut self, now: Instant, observation: &Observation<'_>);
}

/// Makes an observer for each new connection.
pub trait ObserverFactory: Send + Sync + fmt::Debug {
    /// The observer of a connection, or `None` to leave it alone.
    fn observer(&self, side: Side) -> Option<Box<dyn Observer>>;
}
