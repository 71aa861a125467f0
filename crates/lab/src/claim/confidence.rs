//! Confidence intervals over repeats.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Half the width of the 95 % confidence interval of the mean of `values`, by Student's t
/// distribution with one degree of freedom less than there are values. `None` for fewer than two
/// values, or if one isn't finite.
pub fn half_width(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    if values.len() < 2 || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = (squares / (count - 1.0)).sqrt();
    let t = StudentsT::new(0.0, 1.0, count - 1.0).ok()?;
    Some(t.inverse_cdf(0.975) * deviation / count.sqrt()).filter(|width| width.is_finite())
}
