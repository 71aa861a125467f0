//! What may wait at a proxy that reports.

use std::time::Duration;

use swiftwater_units::{Bandwidth, ByteCount};

/// The least limit.
const LEAST: ByteCount = ByteCount::new(64 << 10);
/// As much as is sent in this time may wait in any case: a tunnel without reports keeps payloads for as long.
const LEAST_TIME: Duration = Duration::from_millis(300);

/// Bytes of a tunnel that may wait at a proxy that reports: twice what `rate` fills in a round trip of `min_rtt`, what
/// it sends in 300 ms, or 64 KiB, whichever is most. What comes beyond is dropped.
///
/// There is no limit on the time for which they wait. A proxy without reports drops what has waited for long, since
/// the sender has sent it again; one that follows reports leaves it to the tunnel, and the queue to the law of its rate.
/// Where losses have made the rate low, a limit of time drops most of what a sender had sent before it knew.
pub fn queue_limit(rate: Bandwidth, min_rtt: Duration) -> ByteCount {
    let round_trips = min_rtt.saturating_mul(2).max(LEAST_TIME);
    ByteCount::new(rate.bytes_in(round_trips)).max(LEAST)
}
