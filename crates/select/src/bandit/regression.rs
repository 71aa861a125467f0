//! How completion times depend on what the arms have in common: the size of the response, and how many
//! requests were in flight.

/// Number of covariates.
pub(super) const COVARIATES: usize = 2;

/// What a completion time depends on whatever the arm: ln(1 + bytes / 8 kB), ln(1 + requests in flight).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Covariates(pub(super) [f64; COVARIATES]);

impl Covariates {
    pub(super) fn new(bytes: f64, in_flight: f64) -> Self {
        Self([(bytes / 8192.0).ln_1p(), in_flight.ln_1p()])
    }

    /// What waits alone.
    pub(super) fn load(in_flight: f64) -> Self {
        Self([0.0, in_flight.ln_1p()])
    }

    pub(super) fn minus(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] - other.0[i]))
    }

    pub(super) fn towards(self, other: Self, share: f64) -> Self {
        let step = |i| self.0[i] + share * (other.0[i] - self.0[i]);
        Self(std::array::from_fn(step))
    }
}

/// Share of old observations that each new one keeps.
const MEMORY: f64 = 0.99;
/// Weight of the slopes that are assumed before there are observations.
const PRIOR: f64 = 1.0;
/// Those slopes.
const SLOPES: [f64; COVARIATES] = [0.3, 0.3];

/// Least squares over deviations from each arm's own means, with forgetting.
#[derive(Clone, Debug)]
pub(super) struct Regression {
    xx: [[f64; COVARIATES]; COVARIATES],
    xy: [f64; COVARIATES],
}

impl Default for Regression {
    fn default() -> Self {
        Self {
            xx: [[0.0; COVARIATES]; COVARIATES],
            xy: [0.0; COVARIATES],
        }
    }
}

impl Regression {
    pub(super) fn add(&mut self, x: Covariates, y: f64) {
        for i in 0..COVARIATES {
            for j in 0..COVARIATES {
                self.xx[i][j] = MEMORY * self.xx[i][j] + x.0[i] * x.0[j];
            }
            self.xy[i] = MEMORY * self.xy[i] + x.0[i] * y;
        }
    }

    /// The expected deviation of a log completion time for deviations `x`. Slopes stay between 0 and 1.5:
    /// larger and more crowded is never quicker.
    pub(super) fn effect(&self, x: Covariates) -> f64 {
        let [[first, mixed], [_, second]] = self.xx;
        let (first, second) = (first + PRIOR, second + PRIOR);
        let sides: [f64; COVARIATES] = std::array::from_fn(|i| self.xy[i] + PRIOR * SLOPES[i]);
        // Positive: both terms on the diagonal are at least the prior's.
        let determinant = (first * second - mixed * mixed).max(f64::MIN_POSITIVE);
        let slopes = [
            (sides[0] * second - sides[1] * mixed) / determinant,
            (sides[1] * first - sides[0] * mixed) / determinant,
        ];
        let effects = slopes.iter().zip(x.0);
        effects.map(|(slope, x)| slope.clamp(0.0, 1.5) * x).sum()
    }
}
