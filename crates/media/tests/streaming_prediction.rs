//! Throughput predictors, by values computed by hand.

use std::time::Duration;

use swiftwater_media::streaming::predictor::{
    ChunkDelivery, PathBytes, PathEstimate, PredictorKind, STALE_AFTER, ServerReport,
    ThroughputPredictor,
};
use swiftwater_units::{Bandwidth, Instant, PathId};

const fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// A chunk that took a second, with these Mbit on paths 0, 1, ...
fn chunk(mbits: &[u64]) -> ChunkDelivery {
    let paths = mbits.iter().enumerate().map(|(path, mbit)| PathBytes {
        path: PathId::new(path as u32),
        bytes: mbit * 125_000,
    });
    ChunkDelivery {
        took: Duration::from_secs(1),
        paths: paths.collect(),
    }
}

/// A report of shares and bandwidths in Mbit/s of paths 0, 1, ...
fn report(received: Instant, paths: &[(f64, u64)]) -> ServerReport {
    let paths = paths
        .iter()
        .enumerate()
        .map(|(path, (share, rate))| PathEstimate {
            path: PathId::new(path as u32),
            share: *share,
            rate: Bandwidth::from_mbps(*rate),
            rtt: Duration::from_millis(50),
        });
    ServerReport {
        received,
        paths: paths.collect(),
    }
}

fn predicted(predictor: &dyn ThroughputPredictor, now: Instant) -> f64 {
    predictor.predict(now).expect("a prediction").as_mbps_f64()
}

fn assert_near(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() < 1e-5,
        "{found}, expected {expected}"
    );
}

#[test]
fn nothing_is_predicted_from_nothing() {
    for kind in PredictorKind::ALL {
        let mut predictor = kind.build();
        assert_eq!(predictor.predict(at(0)), None);
        predictor.on_chunk(&chunk(&[]));
        let instant = ChunkDelivery {
            took: Duration::ZERO,
            ..chunk(&[5])
        };
        predictor.on_chunk(&instant);
        assert_eq!(predictor.predict(at(0)), None, "{kind}");
    }
}

#[test]
fn the_harmonic_mean_is_of_the_last_five_chunks() {
    let mut predictor = PredictorKind::HarmonicMean.build();
    for mbit in [1, 10, 20, 20, 10, 4] {
        predictor.on_chunk(&chunk(&[mbit / 2, mbit - mbit / 2]));
    }
    let inverse = 0.1 + 0.05 + 0.05 + 0.1 + 0.25;
    assert_near(predicted(&*predictor, at(0)), 5.0 / inverse);
}

#[test]
fn the_robust_mean_is_divided_by_its_largest_recent_error() {
    let mut predictor = PredictorKind::RobustHarmonicMean.build();
    predictor.on_chunk(&chunk(&[10]));
    assert_near(predicted(&*predictor, at(0)), 10.0);
    // Predicted 10, so an error of 1; then the mean of 10 and 5 is 6.67.
    predictor.on_chunk(&chunk(&[5]));
    assert_near(predicted(&*predictor, at(0)), 2.0 / 0.3 / 2.0);
    // Six chunks later the error is forgotten, and the mean is exact.
    for _ in 0..12 {
        predictor.on_chunk(&chunk(&[5]));
    }
    assert_near(predicted(&*predictor, at(0)), 5.0);
}

#[test]
fn the_receive_rate_is_that_of_the_path_that_is_complete_last() {
    let mut predictor = PredictorKind::ReceiveRate.build();
    predictor.on_chunk(&chunk(&[8, 2]));
    // 8 / 0.6 = 13.3 and 2 / 0.4 = 5, but at least 8.
    predictor.on_report(&report(at(0), &[(0.6, 99), (0.4, 99)]));
    assert_near(predicted(&*predictor, at(0)), 8.0);
    // 8 / 0.75 = 10.67 and 2 / 0.25 = 8.
    predictor.on_report(&report(at(0), &[(0.75, 99), (0.25, 99)]));
    assert_near(predicted(&*predictor, at(0)), 8.0);
    // 8 / 0.82 = 9.76 and 2 / 0.18 = 11.1.
    predictor.on_report(&report(at(0), &[(0.82, 99), (0.18, 99)]));
    assert_near(predicted(&*predictor, at(0)), 8.0 / 0.82);
    // All on the second path: 2 / 1, but at least 8.
    predictor.on_report(&report(at(0), &[(0.0, 99), (1.0, 99)]));
    assert_near(predicted(&*predictor, at(0)), 8.0);
}

#[test]
fn the_receive_rate_needs_a_fresh_report_and_bytes_on_each_path() {
    let mut predictor = PredictorKind::ReceiveRate.build();
    predictor.on_chunk(&chunk(&[8, 2]));
    predictor.on_report(&report(at(100), &[(0.9, 99), (0.1, 99)]));
    let last = at(100) + STALE_AFTER;
    assert_near(predicted(&*predictor, last), 8.0 / 0.9);
    assert_near(
        predicted(&*predictor, last + Duration::from_millis(1)),
        10.0,
    );
    // Nothing has arrived on a third path.
    predictor.on_report(&report(last, &[(0.8, 99), (0.1, 99), (0.1, 99)]));
    assert_near(predicted(&*predictor, last), 10.0);
    predictor.on_report(&report(last, &[(0.9, 99), (0.1, 99), (0.0, 99)]));
    assert_near(predicted(&*predictor, last), 8.0 / 0.9);
}

#[test]
fn a_path_without_bytes_of_a_chunk_keeps_its_mean() {
    let mut predictor = PredictorKind::ReceiveRate.build();
    predictor.on_chunk(&chunk(&[8, 2]));
    predictor.on_chunk(&chunk(&[8, 0]));
    predictor.on_report(&report(at(0), &[(0.82, 99), (0.18, 99)]));
    assert_near(predicted(&*predictor, at(0)), 8.0 / 0.82);
}

#[test]
fn the_send_rate_is_the_last_report_and_its_mean_that_of_chunks() {
    let mut last = PredictorKind::SendRate.build();
    let mut mean = PredictorKind::SendRateHarmonicMean.build();
    for rate in [10, 20, 30] {
        let report = report(at(0), &[(0.5, rate), (0.5, 60)]);
        for predictor in [&mut last, &mut mean] {
            predictor.on_report(&report);
            // The second report of a chunk isn't a sample.
            predictor.on_chunk(&chunk(&[4]));
        }
    }
    let later = report(at(0), &[(0.5, 40), (0.5, 60)]);
    last.on_report(&later);
    mean.on_report(&later);
    assert_near(predicted(&*last, at(0)), 80.0);
    let of_first = 3.0 / (1.0 / 10.0 + 1.0 / 20.0 + 1.0 / 30.0);
    assert_near(predicted(&*mean, at(0)), of_first / 0.5);
    for predictor in [last, mean] {
        assert_near(predicted(&*predictor, at(1001)), 4.0);
    }
}

#[test]
fn predictors_have_names() {
    for kind in PredictorKind::ALL {
        assert_eq!(kind.to_string().parse(), Ok(kind));
    }
    assert!("fast".parse::<PredictorKind>().is_err());
}

#[test]
fn the_robust_receive_rate_discounts_mean_over_estimation() {
    let mut predictor = PredictorKind::RobustReceiveRate.build();
    let mut plain = PredictorKind::ReceiveRate.build();
    for each in [&mut predictor, &mut plain] {
        each.on_chunk(&chunk(&[10, 10]));
        each.on_report(&report(at(0), &[(0.5, 10), (0.5, 10)]));
    }
    // Without an error so far both predict 20 Mbit/s.
    assert_near(predicted(&*predictor, at(0)), 20.0);
    // Then 10 arrive: an error of 1.
    for each in [&mut predictor, &mut plain] {
        each.on_chunk(&chunk(&[5, 5]));
    }
    let by_equation = predicted(&*plain, at(0));
    assert_near(predicted(&*predictor, at(0)), by_equation / 2.0);
    // Five chunks without an error later the discount is gone.
    for _ in 0..12 {
        for each in [&mut predictor, &mut plain] {
            each.on_chunk(&chunk(&[5, 5]));
        }
    }
    assert_near(predicted(&*predictor, at(0)), predicted(&*plain, at(0)));
}
