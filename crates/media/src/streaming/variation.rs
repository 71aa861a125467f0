//! Videos of variable bitrate: generated chunk sizes with the spread of real encodes.

use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use super::error::VideoError;
use super::ladder::Ladder;
use super::video::{ChunkedVideo, nominal};

/// Smallest generated chunk, as a share of the nominal size.
const SMALLEST: f64 = 0.05;

/// Spread of the chunk sizes of a video, and how slowly they change.
///
/// Sizes of a generated video are the nominal sizes times a factor for each chunk, which all levels
/// share, because a complex scene is complex at every bitrate. Factors are lognormal variates with
/// first-order autocorrelation, moved and scaled so that their mean over the video is one and their
/// standard deviation is `spread`. What is generated has the spread of a film and none of its data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variation {
    /// Coefficient of variation: standard deviation over mean of the chunk sizes of a level, 0 to 1.
    pub spread: f64,
    /// Correlation of the logarithms of consecutive factors, 0 up to 1.
    pub correlation: f64,
    /// Play time of the whole video, rounded up to whole chunks.
    pub length: Duration,
}

impl Variation {
    /// Correlation of the films: a choice, scenes of two or three chunks of 4 s.
    const SCENES: f64 = 0.6;

    /// Bytes of a chunk of 4 s at 16 Mbit/s, of which the films' standard deviations are known.
    const TOP_CHUNK_KB: f64 = 8000.0;

    /// As Big Buck Bunny in Chorus' evaluation: a standard deviation of 2756 KB in chunks of 8 MB;
    /// 9:56 min.
    pub const BIG_BUCK_BUNNY: Self = Self {
        spread: 2756.0 / Self::TOP_CHUNK_KB,
        correlation: Self::SCENES,
        length: Duration::from_secs(596),
    };

    /// As Elephants Dream in Chorus' evaluation: 4276 KB in chunks of 8 MB; 10:54 min.
    pub const ELEPHANTS_DREAM: Self = Self {
        spread: 4276.0 / Self::TOP_CHUNK_KB,
        correlation: Self::SCENES,
        length: Duration::from_secs(654),
    };

    /// As Sintel in Chorus' evaluation: 3597 KB in chunks of 8 MB; 14:48 min.
    pub const SINTEL: Self = Self {
        spread: 3597.0 / Self::TOP_CHUNK_KB,
        correlation: Self::SCENES,
        length: Duration::from_secs(888),
    };

    /// A video of chunks of `duration`. The same `seed` gives the same sizes.
    pub fn video(
        &self,
        ladder: Ladder,
        duration: Duration,
        seed: u64,
    ) -> Result<ChunkedVideo, VideoError> {
        if !(0.0..=1.0).contains(&self.spread) {
            return Err(VideoError::Variation(self.spread));
        }
        if duration.is_zero() {
            return Err(VideoError::Duration(0));
        }
        let count = self.length.as_nanos().div_ceil(duration.as_nanos());
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let mut chunks = nominal(&ladder, duration, count)?;
        for (chunk, factor) in chunks.iter_mut().zip(self.factors(count, seed)) {
            for bytes in &mut chunk.bytes {
                *bytes = ((*bytes as f64 * factor + 0.5) as u64).max(1);
            }
        }
        ChunkedVideo::new(ladder, chunks)
    }

    /// One factor for each of `count` chunks, of mean 1 and standard deviation `spread`.
    fn factors(&self, count: usize, seed: u64) -> Vec<f64> {
        // Of a lognormal variate with this sigma the coefficient of variation is `spread`.
        let sigma = libm::sqrt(libm::log(1.0 + self.spread * self.spread));
        let correlation = self.correlation.clamp(0.0, 0.999);
        let fresh = libm::sqrt(1.0 - correlation * correlation);
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut log = normal(&mut random);
        let mut factors = Vec::with_capacity(count);
        for _ in 0..count {
            factors.push(libm::exp(sigma * log));
            log = correlation * log + fresh * normal(&mut random);
        }
        let mean = factors.iter().sum::<f64>() / count as f64;
        let square = |factor: &f64| (factor - mean) * (factor - mean);
        let deviation = libm::sqrt(factors.iter().map(square).sum::<f64>() / count as f64);
        for factor in &mut factors {
            let standard = if deviation > 0.0 {
                (*factor - mean) / deviation
            } else {
                0.0
            };
            *factor = (1.0 + self.spread * standard).max(SMALLEST);
        }
        factors
    }
}

/// A standard normal variate, by functions that give identical results on every platform.
fn normal(random: &mut ChaCha8Rng) -> f64 {
    let mut unit = || ((random.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    let radius = libm::sqrt(-2.0 * libm::log(unit()));
    radius * libm::cos(std::f64::consts::TAU * unit())
}
