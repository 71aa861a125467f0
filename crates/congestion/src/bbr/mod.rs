//! BBR: rate and window from a model of the path (bandwidth, propagation delay, bounds on what may
//! be in flight) instead of from losses alone.
//!
//! - `v1`: BBRv1 as in Linux, and the tuning of it for live video.
//! - `v3`: BBRv3 as in the IETF draft, and BBRv2, which is the same machine with other constants.
//!
//! The model's parts are a file each and shared by all versions. Measurement (delivery-rate
//! samples, application-limited marks, the pacer) is the transport's.
//!
//! Sources: "BBR: Congestion-Based Congestion Control" (ACM Queue 2016),
//! draft-cardwell-iccrg-bbr-congestion-control-00 and -02, draft-ietf-ccwg-bbr-06.

mod aggregation;
mod bandwidth;
mod full_pipe;
mod gain;
mod min_rtt;
mod pacing;
mod probe_rtt;
mod rounds;
mod v1;
mod v3;
mod window;

pub use aggregation::AckAggregation;
pub use bandwidth::MaxBandwidth;
pub use full_pipe::FullPipe;
pub use gain::Gain;
pub use min_rtt::{MinRtt, Refresh};
pub use pacing::PacingRate;
pub use probe_rtt::{ProbeRtt, ProbeRttStep};
pub use rounds::Rounds;
pub use v1::{Bbr1, Bbr1Config};
pub use v3::{Bbr3, Bbr3Config, Bbr3Version, EcnConfig};

use std::ops::RangeInclusive;
use std::time::Duration;

use rand_core::Rng;
use swiftwater_units::Bandwidth;

/// A number from 0 to `n - 1`.
fn random_below(rng: &mut dyn Rng, n: u64) -> u64 {
    let scaled = (u128::from(rng.next_u64()) * u128::from(n)) >> 64;
    u64::try_from(scaled).unwrap_or_default()
}

/// Times between probes, and windows of memory, that make sense.
const INTERVALS: RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(86_400);
/// Lengths of a probe that make sense.
const PROBE_TIMES: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(10);
/// Bandwidths that can be expected.
const EXPECTED: RangeInclusive<Bandwidth> =
    Bandwidth::from_bps(1_000)..=Bandwidth::from_mbps(10_000_000);

/// `time` moved into `range`.
fn within(time: Duration, range: &RangeInclusive<Duration>) -> Duration {
    time.clamp(*range.start(), *range.end())
}
