//! Hints of the application about its data, for policies.

use std::time::Duration;

use swiftwater_units::{Bandwidth, ByteCount};

/// Hints of the application about the whole connection; every field is optional and none touches
/// loss recovery. Priority and deadline of stream ranges come with the data
/// ([`OutstandingRange`](super::OutstandingRange), [`Demand`](super::Demand)).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hints {
    /// Media buffered at the player, in playing time.
    pub buffered_play_time: Option<Duration>,
    /// Rate that the application can use.
    pub target_rate: Option<Bandwidth>,
    /// Bytes of the first video frame, at the start of the first stream.
    pub first_frame: Option<ByteCount>,
    /// When the running transfer should be complete, from now.
    pub expected_time: Option<Duration>,
}
