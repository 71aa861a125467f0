//! Losses that a queue of the path itself explains don't exclude it.

use std::time::Duration;

use swiftwater_policies::scheduler_by_name;
use swiftwater_quic::policy::{Demand, PathDecision, PathView};
use swiftwater_units::{ByteCount, Instant, PathId};

/// True if `scheduler` excludes a path of 40 ms that loses 30 % while its smoothed round-trip time is `smoothed`.
fn is_excluded(scheduler: &str, smoothed: u64) -> bool {
    let millis = Duration::from_millis;
    let view = |id, rtt| PathView::builder(PathId::new(id)).rtt(millis(rtt));
    let (queued, other) = (view(0, 40).smoothed_rtt(millis(smoothed)), view(1, 90));
    let mut lossy = queued.build();
    let mut busy = other.build();
    busy.bytes_in_flight = busy.cwnd;
    let mut scheduler = scheduler_by_name(scheduler).unwrap();
    let demand = Demand::nothing().new_data(ByteCount::new(100_000));
    let mut now = Instant::from_millis(5_000);
    for sent in 1..=100_u32 {
        now += millis(20);
        lossy.loss_rate = f64::from(sent * 3 / 10) / f64::from(sent);
        let _ = scheduler.next(now, &[lossy, busy], &demand);
        scheduler.on_sent(now, PathId::ZERO, ByteCount::new(1_200));
    }
    !matches!(scheduler.next(now, &[lossy, busy], &demand), PathDecision::Path { id, .. } if id == PathId::ZERO)
}

#[test]
fn a_queue_of_the_path_explains_losses() {
    for scheduler in ["min-rtt", "round-robin", "weighted"] {
        // A quarter of the least round-trip time, and more than 10 ms.
        assert!(is_excluded(scheduler, 40), "{scheduler}");
        assert!(is_excluded(scheduler, 50), "{scheduler}");
        assert!(!is_excluded(scheduler, 51), "{scheduler}");
        for always in ["loss-queue=none", "loss-queue-delay=20ms"] {
            assert!(
                is_excluded(&format!("{scheduler}:{always}"), 51),
                "{always}"
            );
        }
    }
}
