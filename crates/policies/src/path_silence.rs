//! When a receiver with a single path takes it for dead, so that its connection migrates.

use std::time::Duration;

use swiftwater_quic::PathStats;

/// Silence that is always tolerated: shorter pauses occur on networks that work, such as at a change of the
/// base station.
const SHORTEST: Duration = Duration::from_millis(500);

/// Probe timeouts of silence.
const PROBE_TIMEOUTS: u32 = 4;

/// The peer's longest delay of acknowledgements (RFC 9000, section 18.2).
const MAX_ACK_DELAY: Duration = Duration::from_millis(25);

/// How long a receiver that waits for data sees no new ones before it takes the path for dead: 4 probe timeouts
/// of the path (RFC 9002, section 6.2.1), 500 ms at least.
///
/// A receiver has little else to go by: it sends acknowledgements, for which it expects no answer.
pub fn tolerated_silence(path: &PathStats) -> Duration {
    let variation = (path.rtt_var * 4).max(Duration::from_millis(1));
    let probe_timeout = path.smoothed_rtt + variation + MAX_ACK_DELAY;
    SHORTEST.max(probe_timeout * PROBE_TIMEOUTS)
}
