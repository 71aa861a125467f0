//! Cubic+: growth into capacity that others have left.

use std::time::Duration;

use crate::support::MDS;
use crate::support::script::{BASE_MS, Script};
use swiftwater_congestion::{CubicPlusConfig, Tunable};

/// The window of the last reduction.
const LIMIT: u64 = 100 * MDS;
/// Round trips without a queue past it before the window grows faster than CUBIC's: the two of the
/// default, and the one in which the limit was passed.
const WAIT: usize = 3;

/// 95 packets after a loss at 100, on a path on which CUBIC is back there in a few round trips.
fn flow(settings: &str) -> Script {
    let mut config = CubicPlusConfig::paper();
    config
        .set_all("beta=0.95,c=100,drain=off")
        .and_then(|()| config.set_all(settings))
        .expect("settings of the test");
    Script::after_first_event(&config)
}

/// A round trip in which the whole window is acknowledged; the window after it.
fn round_trip(s: &mut Script) -> u64 {
    s.round_of(0);
    s.wait(BASE_MS);
    let packets = s.cwnd() / MDS;
    s.ack_packets(packets);
    s.cwnd()
}

/// Round trips until the window has passed the limit.
fn pass_limit(s: &mut Script) {
    for _ in 0..50 {
        if round_trip(s) >= LIMIT {
            return;
        }
    }
    panic!("the window stays below the limit");
}

/// Growth in each of the next `n` round trips, as a share of the window.
fn growth(s: &mut Script, n: usize) -> Vec<f64> {
    let share = |s: &mut Script| {
        let before = s.cwnd() as f64;
        round_trip(s) as f64 / before - 1.0
    };
    (0..n).map(|_| share(s)).collect()
}

#[test]
fn past_the_last_limit_the_window_grows_by_a_share_that_doubles() {
    let mut s = flow("spare_gain=0.4");
    pass_limit(&mut s);
    let shares = growth(&mut s, WAIT + 5);
    assert!(
        shares[..WAIT - 1].iter().all(|share| *share < 0.05),
        "{shares:?}"
    );
    for (share, expected) in shares[WAIT - 1..]
        .iter()
        .zip([0.0625, 0.125, 0.25, 0.4, 0.4])
    {
        assert!((share - expected).abs() < 0.03, "{shares:?}");
    }
}

#[test]
fn below_it_and_when_switched_off_growth_is_cubics() {
    let (mut with, mut without) = (flow("spare_gain=0.4"), flow("spare_gain=0"));
    while with.cwnd() < LIMIT {
        assert_eq!(round_trip(&mut with), round_trip(&mut without));
    }
    assert!(
        growth(&mut without, WAIT + 5)
            .iter()
            .all(|share| *share < 0.1)
    );
}

#[test]
fn a_queue_or_a_loss_ends_it() {
    let disturb: [fn(&mut Script); 2] = [
        |s| s.rtt = Duration::from_millis(BASE_MS + 5),
        |s| {
            // Rare enough to be held.
            for _ in 0..40 {
                s.round_of(1_000);
            }
            s.lose(1);
            s.settle();
            assert_eq!(s.detail("random_holds") as u64, 1);
        },
    ];
    for disturb in disturb {
        let mut s = flow("spare_gain=0.4,k_low=1,c=0.4,beta=0.95");
        for _ in 0..200 {
            if s.cwnd() >= LIMIT {
                break;
            }
            round_trip(&mut s);
        }
        growth(&mut s, WAIT + 1);
        disturb(&mut s);
        let shares = growth(&mut s, WAIT - 1);
        assert!(shares.iter().all(|share| *share < 0.05), "{shares:?}");
    }
}
