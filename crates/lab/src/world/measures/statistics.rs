//! Means, percentiles and the like.

use std::time::Duration;

use hdrhistogram::Histogram;

/// Significant decimal digits of percentiles over time.
const DIGITS: u8 = 3;

/// Times sampled at fixed intervals, in bounded memory: the mean is exact, percentiles are to 0.1 %.
#[derive(Debug, Default)]
pub(in crate::world) struct TimeMeter {
    /// Microseconds; `None` before the first.
    histogram: Option<Histogram<u64>>,
    /// Nanoseconds.
    sum: u128,
    count: u64,
}

impl TimeMeter {
    pub(in crate::world) fn add(&mut self, time: Duration) {
        self.add_weighed(time, 1);
    }

    /// Adds a duration with `weight`.
    pub(in crate::world) fn add_weighed(&mut self, time: Duration, weight: u32) {
        let weight = u64::from(weight);
        self.sum += time.as_nanos() * u128::from(weight);
        self.count += weight;
        if self.histogram.is_none() {
            // Only an invalid number of digits is an error.
            self.histogram = Histogram::new(DIGITS).ok();
        }
        if let Some(histogram) = &mut self.histogram {
            let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
            // It grows automatically, so no value is rejected.
            let _ = histogram.record_n(micros, weight);
        }
    }

    pub(super) fn mean_ms(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / 1e6 / self.count as f64)
    }

    pub(super) fn quantile_ms(&self, quantile: f64) -> Option<f64> {
        let histogram = self.histogram.as_ref()?;
        Some(histogram.value_at_quantile(quantile) as f64 / 1e3).filter(|_| self.count > 0)
    }
}

/// Mean; `None` of no values.
pub(super) fn mean(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().sum();
    (!values.is_empty()).then(|| sum / values.len() as f64)
}

/// Percentile by nearest rank: of `n` values in order, number `ceil(share n)`; `None` of no values.
pub(super) fn percentile(mut values: Vec<f64>, share: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let rank = (values.len() as f64 * share).ceil() as usize;
    values.get(rank.max(1) - 1).copied()
}

/// Coefficient of variation: standard deviation (of the population) over mean; `None` of no values,
/// or for a mean of zero.
pub(super) fn variation(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|mean| *mean > 0.0)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / values.len() as f64).sqrt() / mean)
}

/// Jain's index of fairness: the square of the sum over the number times the sum of squares (Jain,
/// Chiu, Hawe, DEC-TR-301, 1984); `None` if all are zero.
pub(in crate::world) fn jain(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|value| value * value).sum();
    (squares > 0.0).then(|| sum * sum / (values.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{TimeMeter, jain, percentile, variation};

    #[test]
    fn percentiles_are_values_that_occur() {
        let values = vec![4.0, 1.0, 3.0, 2.0];
        let at = |share| percentile(values.clone(), share);
        assert_eq!(at(0.25), Some(1.0));
        assert_eq!(at(0.5), Some(2.0));
        assert_eq!(at(0.51), Some(3.0));
        assert_eq!(at(1.0), Some(4.0));
        assert_eq!(percentile(Vec::new(), 0.5), None);
    }

    #[test]
    fn percentiles_over_time_are_to_a_thousandth() {
        let mut meter = TimeMeter::default();
        for millis in 1..=1_000 {
            meter.add(Duration::from_millis(millis));
        }
        let p95 = meter.quantile_ms(0.95).unwrap_or_default();
        assert!((p95 / 950.0 - 1.0).abs() <= 0.001, "{p95}");
        meter.add(Duration::from_secs(1_000_000_000));
        assert!(meter.quantile_ms(1.0) >= Some(1e12));
    }

    #[test]
    fn weights_count_as_so_many() {
        let mut meter = TimeMeter::default();
        meter.add_weighed(Duration::from_millis(10), 960);
        meter.add_weighed(Duration::from_millis(110), 40);
        assert_eq!(meter.mean_ms(), Some(14.0));
        let at = |share| meter.quantile_ms(share).unwrap_or_default();
        assert!((at(0.95) / 10.0 - 1.0).abs() <= 0.001, "{}", at(0.95));
        assert!((at(0.97) / 110.0 - 1.0).abs() <= 0.001, "{}", at(0.97));
    }

    #[test]
    fn fairness_is_between_one_for_equal_shares_and_the_share_of_one() {
        assert_eq!(jain(&[2.0, 2.0, 2.0]), Some(1.0));
        assert_eq!(jain(&[3.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[0.0, 0.0]), None);
    }

    #[test]
    fn variation_is_relative() {
        assert_eq!(variation(&[5.0, 5.0]), Some(0.0));
        assert_eq!(variation(&[1.0, 3.0]), Some(0.5));
        assert_eq!(variation(&[]), None);
    }
}
