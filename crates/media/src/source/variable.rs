//! A model of a variable-rate encoder: frame sizes with a distribution like those of real encodes.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use super::FrameSource;
use super::encoding::{Encoding, RateControl};
use super::error::EncodingError;
use crate::frame::Frame;

/// An endless stream whose frame sizes are independent lognormal variates of mean one times the rate
/// control's value, so that the mean rate is met over some groups of pictures.
///
/// The shape is a choice: sizes of encoded frames have a long right tail, and a single parameter sets
/// its length. Sizes of consecutive frames are not correlated, unlike in real encodes (scenes); use a
/// recording where that matters.
#[derive(Clone, Debug)]
pub struct Variable {
    control: RateControl,
    sigma: f64,
    random: ChaCha8Rng,
    /// Box and Muller's method gives two variates at a time.
    spare: Option<f64>,
}

impl Variable {
    /// A stream with the settings `encoding`. `sigma`, 0 to 2, is the standard deviation of the
    /// logarithm of the sizes (0.3: two thirds of the frames within about 30 % of the usual size).
    /// The same `seed` gives the same stream.
    pub fn new(encoding: Encoding, sigma: f64, seed: u64) -> Result<Self, EncodingError> {
        if !(0.0..=2.0).contains(&sigma) {
            return Err(EncodingError::Sigma(sigma));
        }
        Ok(Self {
            control: RateControl::new(encoding)?,
            sigma,
            random: ChaCha8Rng::seed_from_u64(seed),
            spare: None,
        })
    }

    /// Uniform in (0, 1].
    fn unit(&mut self) -> f64 {
        ((self.random.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// A standard normal variate, by functions that give identical results on every platform.
    fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let radius = libm::sqrt(-2.0 * libm::log(self.unit()));
        let angle = std::f64::consts::TAU * self.unit();
        self.spare = Some(radius * libm::sin(angle));
        radius * libm::cos(angle)
    }
}

impl FrameSource for Variable {
    fn next_frame(&mut self) -> Option<Frame> {
        // A lognormal variate of mean one has its median at exp(-sigma^2 / 2).
        let factor = libm::exp(self.sigma * self.normal() - self.sigma * self.sigma / 2.0);
        Some(self.control.next(factor))
    }

    fn force_key_frame(&mut self) {
        self.control.force_key_frame();
    }
}
