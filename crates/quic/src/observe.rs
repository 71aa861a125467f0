//! Observers: who wants to know what happens, without a part in it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use swiftwater_units::{ByteCount, Instant, PacketNumber, PathId, Side, StreamId};

use crate::crypto::Epoch;
use crate::error::ConnectionError;
use crate::policy::{Copied, Datum, ReinjectorReport, RepairCause};

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
        /// What it carried, as far as the sender keeps account of it.
        frames: &'a [SentFrame],
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
    /// Stream data was declared lost for the first time.
    DataLost {
        /// Which data.
        datum: Datum,
        /// Time from its first transmission until now.
        detection_time: Duration,
        /// What made it suspicious.
        cause: RepairCause,
    },
    /// Data under repair arrived: a copy was acknowledged.
    DataRecovered {
        /// Which data.
        datum: Datum,
        /// The copy that was acknowledged first.
        by: Copied,
        /// From its first retransmission to the sending of that copy; zero if that was the first
        /// retransmission or the original (AutoRec, section III-C).
        recovery_latency: Duration,
        /// From its first transmission to its first retransmission (`T_unit` of this datum).
        detection_time: Duration,
        /// Retransmissions that it took.
        retransmissions: u32,
        /// Replicas that were sent of it.
        replicas: u32,
    },
    /// A re-injector changed its mind about how much to repeat.
    Redundancy {
        /// What it reckons with now.
        report: &'a ReinjectorReport,
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

/// Why stream bytes are in a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Purpose {
    /// They are sent for the first time.
    New,
    /// They were lost, or a probe timeout repeats them.
    Retransmission,
    /// A re-injector asked for one more copy.
    Replica,
}

/// A frame of a packet that was sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum SentFrame {
    /// ACK.
    Ack {
        /// Largest packet number that it acknowledges.
        largest: PacketNumber,
    },
    /// CRYPTO.
    Crypto {
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u32,
    },
    /// STREAM.
    Stream {
        /// The stream.
        id: StreamId,
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u32,
        /// True if the stream ends with it.
        fin: bool,
        /// Why it was sent.
        purpose: Purpose,
    },
    /// A frame that carries a small value, such as MAX_DATA.
    Control,
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

/// Two factories whose observers are both told of everything, the first one's first.
#[derive(Clone, Debug)]
pub struct Both(pub Arc<dyn ObserverFactory>, pub Arc<dyn ObserverFactory>);

impl ObserverFactory for Both {
    fn observer(&self, side: Side) -> Option<Box<dyn Observer>> {
        match (self.0.observer(side), self.1.observer(side)) {
            (Some(first), Some(second)) => Some(Box::new(Pair(first, second))),
            (one, other) => one.or(other),
        }
    }
}

struct Pair(Box<dyn Observer>, Box<dyn Observer>);

impl Observer for Pair {
    fn observe(&mut self, now: Instant, observation: &Observation<'_>) {
        self.0.observe(now, observation);
        self.1.observe(now, observation);
    }
}
