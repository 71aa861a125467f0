//! Pseudo-random numbers from a seed, the same on every machine.

/// A pseudo-random number generator (SplitMix64; Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
pub struct RandomNumbers {
    state: u64,
}

impl RandomNumbers {
    /// The sequence of this seed.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Any number.
    pub const fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = self.state;
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform from 0, inclusive, to 1, exclusive.
    pub fn unit(&mut self) -> f64 {
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Exponential with this mean: the time between arrivals of a Poisson process.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// Log-normal: its logarithm is normal with standard deviation `sigma`. (The sum of twelve uniform
    /// variates approximates the normal one.)
    pub fn log_normal(&mut self, median: f64, sigma: f64) -> f64 {
        let normal = (0..12).map(|_| self.unit()).sum::<f64>() - 6.0;
        median * (sigma * normal).exp()
    }

    /// `size` bytes that don't compress.
    pub fn bytes(&mut self, size: usize) -> Vec<u8> {
        let mut data = Vec::with_capacity(size + 8);
        while data.len() < size {
            data.extend_from_slice(&self.number().to_le_bytes());
        }
        data.truncate(size);
        data
    }
}
