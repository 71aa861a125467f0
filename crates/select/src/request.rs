//! What is known of a request before it is sent, and what was measured of it afterwards.

use std::time::Duration;

use crate::arm::Arm;
use crate::key::{NetworkId, OriginHash};

/// A request that is to be sent.
#[derive(Clone, Debug)]
pub struct RequestDescription {
    /// The network of the host now.
    pub network: NetworkId,
    /// Where it goes.
    pub origin: OriginHash,
    /// It may be sent twice: its method is GET or HEAD and it has no content, or the application says that
    /// it may be replayed. Only such requests take part in experiments and are hedged.
    pub replay_safe: bool,
    /// Arms that can be used for this origin, by their position in the selector's list; bit 0 is the first.
    /// Bits beyond the list are ignored, and no bit at all means all arms.
    pub available: u32,
}

impl RequestDescription {
    /// A request that may be replayed, over any arm.
    pub fn new(network: NetworkId, origin: OriginHash) -> Self {
        Self {
            network,
            origin,
            replay_safe: true,
            available: u32::MAX,
        }
    }

    /// The same request, but one that must not be sent twice.
    #[must_use]
    pub fn not_replay_safe(mut self) -> Self {
        self.replay_safe = false;
        self
    }
}

/// Names a request between [`crate::Selector::decide`] and [`crate::Selector::on_outcome`].
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct RequestId(pub(crate) u64);

impl RequestId {
    /// The number: requests are numbered from 0 in the order of their decisions.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// What a sender sent and sent again, in bytes or in packets: only the share of the second in the first is used.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Traffic {
    /// Sent, with what was sent again.
    pub sent: u64,
    /// Sent again.
    pub retransmitted: u64,
}

impl Traffic {
    /// What the receiver can tell of a TCP sender: `bytes` came in `segments` with data, of which `out_of_order` came
    /// ahead of a gap. Each of these stands for a retransmission of the mean size. That is too many where several segments come
    /// between a loss and its repair, and where the network reorders; a loss behind which nothing comes is not seen.
    pub fn of_segments(bytes: u64, segments: u64, out_of_order: u64) -> Self {
        let share = out_of_order as f64 / segments.max(1) as f64;
        Self {
            sent: bytes,
            retransmitted: (bytes as f64 * share.min(1.0)).round() as u64,
        }
    }

    /// What the receiver can tell of a QUIC sender, in packets: of those `expected` by their numbers, `missing` did not
    /// come. Each of them stands for a retransmission.
    pub fn of_packets(expected: u64, missing: u64) -> Self {
        Self {
            sent: expected,
            retransmitted: missing.min(expected),
        }
    }
}

/// Measurements of a request whose response is complete. Times count from the sending of the request on
/// the arm that answered. Whether the set-up of a connection counts is the caller's choice, the same one
/// for all arms.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Measured {
    /// To the first byte of the response.
    pub first_byte: Duration,
    /// To the last byte of the response (request completion time, RCT).
    pub completion: Duration,
    /// How long the request waited for its connection before it was sent; zero on an established one.
    pub waited: Duration,
    /// Bytes of content received.
    pub bytes: u64,
    /// Round-trip time of the connection now; `None` if it was not measured.
    pub rtt: Option<Duration>,
    /// What was sent and sent again during the request, by the server: its own count if it exports one, else an estimate
    /// of the receiver ([`Traffic::of_segments`], [`Traffic::of_packets`]). `None` if unknown.
    pub traffic: Option<Traffic>,
}

impl Measured {
    /// Whether the connection was made for this request, or for others at the same time: the wait was as long as half a round trip.
    pub(crate) fn waited_for_handshake(&self) -> bool {
        self.waited > self.rtt.unwrap_or_default() / 2 && !self.waited.is_zero()
    }
}

/// Why there is no complete response.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Failure {
    /// No connection could be made.
    Connect,
    /// The connection was lost, or the response broke off.
    Lost,
    /// Nothing came within the time limit, or the same request over another arm was answered first.
    TooSlow,
    /// The caller gave up for a reason that says nothing of the network: no value.
    Cancelled,
}

/// How a request ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The arm that answered, or that failed. Another one than decided if a hedge or a fallback answered:
    /// the decided arm then counts as too slow.
    pub arm: Arm,
    /// Measurements, or the failure.
    pub result: Result<Measured, Failure>,
    /// Whether nothing at all came on the decided arm's connection since the request was sent, or it had none: as where
    /// its packets are blocked. It counts if another arm answered, or if the decided one was too slow; otherwise it may
    /// be anything.
    pub silent: bool,
    /// Whether the request was sent over a second arm as well, as [`crate::Decision::hedge`] says.
    pub hedged: bool,
}

impl Outcome {
    /// An outcome, not silent, of a request that was not hedged.
    pub fn new(arm: Arm, result: Result<Measured, Failure>) -> Self {
        Self {
            arm,
            result,
            silent: false,
            hedged: false,
        }
    }
}
