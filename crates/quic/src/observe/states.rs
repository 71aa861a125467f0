//! States, outcomes and causes that the protocol sets and observers see.
//!
//! They live here so that observation depends on no part of the protocol.

use swiftwater_units::Instant;
use swiftwater_wire::ErrorCode;

/// What a path does with ECN marks, as far as it is known (RFC 9000, appendix A.4).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum EcnState {
    /// The first packets are marked to find out; on a new path once those of the path before have
    /// arrived or are lost.
    Testing,
    /// The test packets are sent, and none is marked until the peer has acknowledged one.
    Unknown,
    /// The path carries marks: all packets are marked.
    Capable,
    /// The path drops, clears or changes marks, or the peer doesn't report them, or ECN is switched
    /// off: nothing is marked.
    #[default]
    Failed,
}

/// A stage in the life of a path, in a connection with several.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum PathStage {
    /// It is opened; its addresses are being validated.
    Opened,
    /// It carries data.
    Active,
    /// It is abandoned, and carries late packets at most.
    Abandoned {
        /// The code of the first `PATH_ABANDON`.
        error: ErrorCode,
        /// The peer was the first to abandon it.
        by_peer: bool,
    },
}

/// What became of early data.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum EarlyDataOutcome {
    /// The server took them.
    Accepted,
    /// The server dropped them. The client's connection sends everything anew, datagrams excepted.
    Rejected,
}

/// What became of a datagram.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum DatagramFate {
    /// The packet that carried it was acknowledged: it arrived at the peer's transport, which does not
    /// mean that the application there has read it (RFC 9221, section 5.2).
    Acknowledged,
    /// The packet that carried it was declared lost. It is not sent again. If it arrived all the same,
    /// `Acknowledged` may follow.
    Lost {
        /// When that packet left. How long the datagram waited before is no part of the time until its loss was found.
        sent_at: Instant,
    },
    /// Its deadline came before it was sent.
    Expired,
    /// The path carries only smaller packets than when it was queued, or the peer accepts only smaller
    /// datagrams; it was dropped unsent.
    TooLarge,
}

/// Why a stream was reset.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ResetCause {
    /// The local application gave it up.
    Application,
    /// The peer asked for it with `STOP_SENDING`.
    StopSending,
    /// Its data was not delivered before it expired.
    Expired,
    /// The peer gave it up.
    Peer,
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
