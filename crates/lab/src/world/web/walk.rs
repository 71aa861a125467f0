//! A random walk of a link over a grid of conditions.

use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use swiftwater_link::{LinkConfig, Trace, TraceSample, TraceUse};
use swiftwater_units::Bandwidth;

use crate::world::RunError;

/// Rates of the grid, kbit/s.
pub const RATES_KBPS: [u64; 8] = [250, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000];
/// Round-trip times of the grid, ms.
pub const RTTS_MS: [u64; 6] = [10, 30, 60, 100, 200, 400];
/// Loss rates of the grid, in each direction, per mille of the packets.
pub const LOSSES_PER_MILLE: [u64; 6] = [0, 5, 10, 20, 50, 100];

/// A walk: in each step each of the three values stays or moves to a neighbour, with equal probability.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    trace: Trace,
}

impl Walk {
    /// A walk of `length` with steps of `step`.
    pub(super) fn new(seed: u64, step: Duration, length: Duration) -> Result<Self, RunError> {
        let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0x57a1_4b00);
        let mut below = |end: usize| random.next_u32() as usize % end;
        let lengths = [RATES_KBPS.len(), RTTS_MS.len(), LOSSES_PER_MILLE.len()];
        let mut at = lengths.map(&mut below);
        let steps = length.as_nanos().div_ceil(step.as_nanos().max(1)).max(1) as u32;
        let mut samples = Vec::new();
        for nth in 0..steps {
            samples.push(TraceSample {
                at: step * nth,
                rate: Some(Bandwidth::from_kbps(RATES_KBPS[at[0]])),
                rtt: Some(Duration::from_millis(RTTS_MS[at[1]])),
                loss: Some(LOSSES_PER_MILLE[at[2]] as f64 / 1e3),
            });
            for (place, length) in at.iter_mut().zip(lengths) {
                // 0, 1 or 2: down, nowhere, up.
                *place = (*place + below(3)).saturating_sub(1).min(length - 1);
            }
        }
        let trace = Trace::from_samples(&samples, Some(step));
        let trace = trace.map_err(|_| RunError::out_of_range("a walk", "at most a year"))?;
        Ok(Self { trace })
    }

    /// A link in these conditions, whose rate, delay and loss are replaced.
    pub(super) fn link(&self, link: &LinkConfig) -> LinkConfig {
        let link = link.clone().delay(Duration::ZERO);
        link.trace(&self.trace, TraceUse::all(&self.trace))
    }
}
