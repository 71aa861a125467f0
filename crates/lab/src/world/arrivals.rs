//! Random times: Poisson arrivals of transfers, bursts and pauses.

use std::ops::Range;
use std::time::Duration;

use rand_chacha::ChaCha20Rng;
use rand_core::Rng;
use swiftwater_units::Instant;

use crate::scenario::{SizeDistribution, Spread};

/// A transfer between hosts chosen by index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planned {
    pub(super) start: Instant,
    pub(super) sender: usize,
    pub(super) receiver: usize,
    pub(super) bytes: u64,
}

/// Transfers at exponentially distributed intervals, `per_second` in the mean, from `time.start` to
/// `time.end`, at most `limit`; hosts are drawn uniformly.
pub(super) fn poisson(
    mut rng: ChaCha20Rng,
    sizes: &SizeDistribution,
    per_second: f64,
    limit: Option<u64>,
    time: Range<Instant>,
    (senders, receivers): (usize, usize),
) -> Vec<Planned> {
    let mut plan = Vec::new();
    let mut start = time.start;
    while limit.is_none_or(|limit| (plan.len() as u64) < limit) {
        let wait = exponential(&mut rng) / per_second;
        start += Duration::try_from_secs_f64(wait).unwrap_or(Duration::MAX);
        if start >= time.end {
            break;
        }
        plan.push(Planned {
            start,
            sender: below(&mut rng, senders),
            receiver: below(&mut rng, receivers),
            bytes: sizes.quantile(unit(&mut rng)),
        });
    }
    plan
}

/// Bursts of length `on`, the first at `start`, with pauses of length `off` between them.
pub(super) fn bursts(
    mut rng: ChaCha20Rng,
    start: Instant,
    on: Spread,
    off: Spread,
) -> impl Iterator<Item = Range<Instant>> + 'static {
    let mut next = start;
    std::iter::from_fn(move || {
        let begin = next;
        let end = begin + draw(&mut rng, on);
        next = end + draw(&mut rng, off);
        Some(begin..end)
    })
}

/// A random time from zero to `at_most`.
pub(super) fn up_to(rng: &mut ChaCha20Rng, at_most: Duration) -> Duration {
    let nanos = (at_most.as_nanos() * u128::from(rng.next_u64())) >> 64;
    Duration::from_nanos(nanos as u64)
}

fn draw(rng: &mut ChaCha20Rng, spread: Spread) -> Duration {
    match spread {
        Spread::Constant(time) => time,
        Spread::Exponential(mean) => {
            let time = exponential(rng) * mean.as_secs_f64();
            Duration::try_from_secs_f64(time).unwrap_or(Duration::MAX)
        }
    }
}

/// Exponentially distributed with mean 1.
fn exponential(rng: &mut ChaCha20Rng) -> f64 {
    // Not the platform's logarithm, whose last bit may differ between platforms.
    -libm::log(1.0 - unit(rng))
}

/// Uniform from 0 to just below 1.
fn unit(rng: &mut ChaCha20Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// Uniform below `n`, which is above zero.
fn below(rng: &mut ChaCha20Rng, n: usize) -> usize {
    ((n as u128 * u128::from(rng.next_u64())) >> 64) as usize
}
