//! What may wait at a proxy, and for how long.

use std::time::Duration;

use swiftwater_units::{Bandwidth, ByteCount};

/// How long a payload may wait for its turn at a proxy that does not report: what is older, its sender has sent again.
pub const MAX_QUEUE_DELAY: Duration = Duration::from_millis(300);

/// The least limit.
const LEAST: ByteCount = ByteCount::new(64 << 10);

/// Bytes of a tunnel that may wait at a proxy that reports: twice what `rate` fills in a round trip of `min_rtt`, what
/// it sends in [`MAX_QUEUE_DELAY`], or 64 KiB, whichever is most. What comes beyond is dropped.
///
/// There is no limit on the time for which they wait. A proxy without reports drops what has waited for long, since
/// the sender has sent it again; one that follows reports leaves it to the tunnel, whose rate law keeps the queue short.
/// Where losses have made the rate low, a limit of time drops most of what a sender had sent before it knew.
pub fn queue_limit(rate: Bandwidth, min_rtt: Duration) -> ByteCount {
    let round_trips = min_rtt.saturating_mul(2).max(MAX_QUEUE_DELAY);
    ByteCount::new(rate.bytes_in(round_trips)).max(LEAST)
}
