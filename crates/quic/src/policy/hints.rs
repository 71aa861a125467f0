//! Hints of the application about its data, for policies.

use swiftwater_units::{Bandwidth, ByteCount, Instant, StreamId};

use super::qoe_signals::{ChunkExpectation, PlayerSignal, RangeDeadline};

/// Hints of the application about the whole connection; every field is optional and none touches
/// loss recovery. Priority and deadline of stream ranges come with the data
/// ([`OutstandingRange`](super::OutstandingRange), [`Demand`](super::Demand)).
///
/// `player`, `expectation` and `range_deadline` are about media that this end plays: a feedback policy
/// sends them to the peer. `response` and `first_frame` are about media that this end sends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hints {
    /// Rate that the application can use.
    pub target_rate: Option<Bandwidth>,
    /// Bytes of the first video frame, at the start of the first stream.
    pub first_frame: Option<ByteCount>,
    /// State of the player.
    pub player: Option<PlayerSignal>,
    /// When the chunk is expected that is requested next, or was last.
    pub expectation: Option<ChunkExpectation>,
    /// A range of a stream that is of no use from some time on.
    pub range_deadline: Option<RangeDeadline>,
    /// The newest response of known size.
    pub response: Option<ResponseStart>,
}

/// A response of known size starts (Chorus' interface for servers).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ResponseStart {
    /// The stream that carries it.
    pub stream: StreamId,
    /// Bytes that will be written to the stream.
    pub bytes: ByteCount,
    /// When the request had arrived. Stream and time identify the response: giving the same hint again
    /// changes nothing.
    pub requested_at: Instant,
}
