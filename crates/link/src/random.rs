//! Random numbers of a link: one independent stream per purpose, all from one seed.
//!
//! Only integer and basic floating-point arithmetic, so that results are the same on every platform.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// Purpose of a random stream. The numbers are part of a seed's meaning: never reuse one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    Loss = 1,
    TraceLoss = 2,
    Jitter = 3,
    Reorder = 4,
    Duplicate = 5,
    Corrupt = 6,
    SyntheticTrace = 7,
    Red = 8,
    FlowHash = 9,
    LossState = 10,
    Condition = 11,
}

/// One stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Stream(ChaCha8Rng);

impl Stream {
    pub(crate) fn new(seed: u64, purpose: Purpose) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        let mut rng = ChaCha8Rng::from_seed(key);
        rng.set_stream(purpose as u64);
        Self(rng)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in `0..n`; `n` must not be zero. The bias is below `n / 2^64`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        scale(self.next(), n)
    }

    /// Uniform in [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Approximately a standard normal variate: the sum of twelve uniform ones, which ends at six
    /// standard deviations and needs no function whose last bit depends on the platform.
    pub(crate) fn normal(&mut self) -> f64 {
        let sum: u64 = (0..3).map(|_| sum_of_lanes(self.next())).sum();
        (sum as f64 + 6.0) / 65_536.0 - 6.0
    }
}

/// Random numbers by index, in any order: the same for each index.
#[derive(Clone, Debug)]
pub(crate) struct IndexedStream(Stream);

impl IndexedStream {
    pub(crate) fn new(seed: u64, purpose: Purpose) -> Self {
        Self(Stream::new(seed, purpose))
    }

    /// The number of `index`, uniform in [0, 1).
    pub(crate) fn unit(&mut self, index: u64) -> f64 {
        // A number takes two words of the generator.
        self.0.0.set_word_pos(u128::from(index) * 2);
        self.0.unit()
    }
}

/// `random`, uniform over all 64-bit numbers, mapped to `0..n`.
pub(crate) fn scale(random: u64, n: u64) -> u64 {
    ((u128::from(random) * u128::from(n)) >> 64) as u64
}

fn sum_of_lanes(word: u64) -> u64 {
    (0..4).map(|lane| (word >> (16 * lane)) & 0xffff).sum()
}

/// An event of fixed probability; draws nothing if it's impossible or certain.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Chance {
    Never,
    Always,
    Below(u64),
}

impl Chance {
    /// `probability` outside 0..=1 is clamped, NaN is 0.
    pub(crate) fn new(probability: f64) -> Self {
        // 2^64; the cast saturates.
        let threshold = (probability * 18_446_744_073_709_551_616.0) as u64;
        match threshold {
            0 => Self::Never,
            u64::MAX => Self::Always,
            _ => Self::Below(threshold),
        }
    }

    pub(crate) fn is_never(self) -> bool {
        matches!(self, Self::Never)
    }

    pub(crate) fn draw(self, stream: &mut Stream) -> bool {
        match self {
            Self::Never => false,
            Self::Always => true,
            Self::Below(threshold) => stream.next() < threshold,
        }
    }
}
