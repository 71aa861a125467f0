//! Schedulers of several paths: each decision by itself, with the numbers of the formulas.

use std::time::Duration;

use swiftwater_policies::scheduler_by_name;
use swiftwater_policies::schedulers::{PathCapacity, finish_time};
use swiftwater_quic::policy::{
    CopyDemand, Demand, PathChoice, PathDecision, PathStatus, PathView, PathViewBuilder, Scheduler,
};
use swiftwater_units::{Bandwidth, ByteCount, Instant, PathId};

const NOW: Instant = Instant::from_millis(5_000);
/// Window of a path, bytes.
const WINDOW: u64 = 12_000;

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Path `id` with an RTT of `rtt` milliseconds that never varied, and a window of 12,000 bytes.
fn view(id: u32, rtt: u64) -> PathViewBuilder {
    PathView::builder(PathId::new(id))
        .rtt(millis(rtt))
        .rtt_var(Duration::ZERO)
}

fn full(view: PathViewBuilder) -> PathViewBuilder {
    view.bytes_in_flight(ByteCount::new(WINDOW))
}

fn new_data(bytes: u64) -> Demand<'static> {
    Demand::nothing().new_data(ByteCount::new(bytes))
}

fn on(id: u32) -> PathDecision {
    PathDecision::once(PathId::new(id))
}

/// The decision without the length of the batch.
fn path_of(decision: PathDecision) -> PathDecision {
    match decision {
        PathDecision::Path { id, .. } => PathDecision::once(id),
        other => other,
    }
}

fn ask(scheduler: &mut dyn Scheduler, paths: &[PathView], bytes: u64) -> PathDecision {
    path_of(scheduler.next(NOW, paths, &new_data(bytes)))
}

fn decision(scheduler: &str, paths: &[PathView], bytes: u64) -> PathDecision {
    ask(&mut *scheduler_by_name(scheduler).unwrap(), paths, bytes)
}

#[test]
fn ecf_waits_for_the_path_that_completes_earlier() {
    let near = full(view(0, 10)).build();
    let of = |far: u64, bytes| decision("ecf", &[near, view(1, far).build()], bytes);
    // One window: (1 + 1) * 10 < 21 and 21 >= 20.
    assert_eq!(of(21, WINDOW), PathDecision::Blocked);
    assert_eq!(
        of(21, 100),
        PathDecision::Blocked,
        "less counts as one window"
    );
    assert_eq!(of(20, WINDOW), on(1), "the first condition fails");
    // Three windows: (1 + 3) * 10 < 41.
    assert_eq!(of(41, 3 * WINDOW), PathDecision::Blocked);
    assert_eq!(of(39, 3 * WINDOW), on(1));
    // RTT variation counts for the slow path: 2 * 10 < 19 + 5, but 19 < 2 * 10 + 5.
    let uneven = view(1, 19).rtt_var(millis(5)).build();
    assert_eq!(decision("ecf", &[near, uneven], 100), on(1));
    // Whatever the fast path is, with room it is taken.
    assert_eq!(
        decision("ecf", &[view(0, 10).build(), view(1, 90).build()], 100),
        on(0)
    );
}

#[test]
fn ecf_ends_a_wait_only_for_a_clear_gain() {
    let paths = [full(view(0, 10)).build(), view(1, 41).build()];
    let mut ecf = scheduler_by_name("ecf").unwrap();
    assert_eq!(ask(&mut *ecf, &paths, 4 * WINDOW), on(1), "5 * 10 >= 41");
    assert_eq!(ask(&mut *ecf, &paths, 3 * WINDOW), PathDecision::Blocked);
    // 5 * 10 < 1.25 * 41 now, and 5.2 * 10 is not.
    assert_eq!(ask(&mut *ecf, &paths, 4 * WINDOW), PathDecision::Blocked);
    assert_eq!(ask(&mut *ecf, &paths, 4 * WINDOW + 2_400), on(1));
    assert_eq!(
        ask(&mut *ecf, &paths, 4 * WINDOW),
        on(1),
        "the wait is over"
    );
    let mut eager = scheduler_by_name("ecf:beta=0").unwrap();
    assert_eq!(ask(&mut *eager, &paths, 3 * WINDOW), PathDecision::Blocked);
    assert_eq!(ask(&mut *eager, &paths, 4 * WINDOW), on(1));
}

#[test]
fn blest_waits_while_a_slow_path_would_block_the_window() {
    // In 40 ms the fast path sends (10 + 3 / 2) * 4 packets = 55,200 bytes.
    let paths = [full(view(0, 10)).build(), view(1, 40).build()];
    // 12,000 are in flight, 1200 would be on the slow path.
    let limit = 55_200 + 1_200 - 12_000;
    assert_eq!(decision("blest", &paths, limit), on(1));
    assert_eq!(decision("blest", &paths, limit - 1), PathDecision::Blocked);
    assert_eq!(decision("blest:lambda=0.5", &paths, limit / 2), on(1));
    assert_eq!(
        decision("blest:lambda=2", &paths, limit),
        PathDecision::Blocked
    );
    assert_eq!(decision("blest:lambda=0", &paths, 1), on(1));
    // What is in flight on the slow path blocks as well, and counts in the window.
    let busy = view(1, 40).bytes_in_flight(ByteCount::new(6_000)).build();
    assert_eq!(
        decision("blest", &[paths[0], busy], limit - 1),
        PathDecision::Blocked
    );
    assert_eq!(decision("blest", &[paths[0], busy], limit), on(1));
}

#[test]
fn nobody_waits_for_a_path_that_may_be_dead() {
    for scheduler in ["ecf", "blest", "weighted"] {
        let of = |near: PathViewBuilder| {
            let decision = decision(scheduler, &[near.build(), view(1, 200).build()], 1_000);
            match decision {
                PathDecision::Path { id, .. } => Ok(id.get()),
                wait => Err(wait),
            }
        };
        let near = full(view(0, 10));
        assert_eq!(of(near), Err(PathDecision::Blocked), "{scheduler}");
        assert_eq!(of(near.pto_count(1)), Ok(1), "{scheduler}");
        // A window that is too small for a datagram, with nothing in flight, never opens.
        let stuck = view(0, 10).cwnd(ByteCount::new(500));
        assert_eq!(of(stuck), Ok(1), "{scheduler}");
        let paced = view(0, 10).pacing_release(NOW + millis(1));
        let wait = PathDecision::Wait(NOW + millis(1));
        assert_eq!(of(paced), Err(wait), "{scheduler}");
    }
}

#[test]
fn nobody_waits_for_acknowledgements_while_nothing_is_in_flight() {
    // A standby path is ready; the available one is held back by its pacer, or for ever by its window.
    let standby = view(1, 80).peer_status(PathStatus::Backup).build();
    let paced = view(0, 10).pacing_release(NOW + millis(3)).build();
    let stuck = view(0, 10).cwnd(ByteCount::new(500)).build();
    for scheduler in [
        "min-rtt",
        "round-robin",
        "weighted",
        "ecf",
        "blest",
        "redundant",
        "backup",
    ] {
        let wait = PathDecision::Wait(NOW + millis(3));
        assert_eq!(
            decision(scheduler, &[paced, standby], 1_000),
            wait,
            "{scheduler}"
        );
        assert_eq!(
            decision(scheduler, &[stuck, standby], 1_000),
            on(1),
            "{scheduler}"
        );
        let busy = full(view(0, 10)).build();
        assert_eq!(
            decision(scheduler, &[busy, standby], 1_000),
            PathDecision::Blocked
        );
    }
}

/// The share of the first path by Eq. 7 of Chorus.
fn equation_7(bytes: f64, fast: PathCapacity, slow: PathCapacity) -> f64 {
    let sum = fast.rate + slow.rate;
    let shift = fast.rate * slow.rate * (slow.delay - fast.delay) / (bytes * sum);
    (fast.rate / sum + shift).clamp(0.0, 1.0)
}

#[test]
fn shares_of_two_paths_are_those_of_chorus() {
    let fast = PathCapacity {
        rate: 10e6,
        delay: 0.02,
    };
    let slow = PathCapacity {
        rate: 1.25e6,
        delay: 0.08,
    };
    for bytes in [1e3, 1e5, 6e5, 1e6, 1e7] {
        let finish = finish_time(bytes, &mut [slow, fast]).unwrap();
        let share = fast.share(finish) / bytes;
        let wanted = equation_7(bytes, fast, slow);
        assert!((share - wanted).abs() < 1e-9, "{bytes}: {share} {wanted}");
    }
    // 600,000 bytes take the fast path as long as the slow one is ahead of it; 1,725,000 take 0.18 s: 160 ms at
    // 10 MB/s and 100 ms at 1.25 MB/s.
    let finish = finish_time(1_725_000.0, &mut [slow, fast]).unwrap();
    assert!((finish - 0.18).abs() < 1e-9, "{finish}");
    assert!((equation_7(600_000.0, fast, slow) - 1.0).abs() < 1e-9);
    assert_eq!(finish_time(1.0, &mut []), None);
}

#[test]
fn three_paths_join_one_after_the_other() {
    let path = |rate, delay| PathCapacity { rate, delay };
    let all = || [path(100.0, 3.0), path(200.0, 1.0), path(300.0, 2.0)];
    // Until 2 s the second path delivers 200 bytes alone, until 3 s two of them 500 more, then all 600 a second.
    for (bytes, finish) in [
        (100.0, 1.5),
        (200.0, 2.0),
        (450.0, 2.5),
        (700.0, 3.0),
        (1_300.0, 4.0),
    ] {
        let got = finish_time(bytes, &mut all()).unwrap();
        assert!((got - finish).abs() < 1e-9, "{bytes}: {got}");
    }
}

#[test]
fn weighted_leaves_the_end_to_the_fast_path() {
    // 80 Mbit/s and 20 ms, full; 10 Mbit/s and 80 ms with room.
    let rate = |mbps| Some(Bandwidth::from_mbps(mbps));
    let window = ByteCount::new(400_000);
    let fast = view(0, 20).cwnd(window).bytes_in_flight(window);
    let fast = fast.smoothed_rtt(millis(40));
    let fast = fast.delivery_rate(rate(80)).build();
    // Never full so far: two windows of 50,000 bytes in a round trip are 10 Mbit/s, whatever was delivered.
    let slow = view(1, 80).cwnd(ByteCount::new(50_000));
    let slow = slow.delivery_rate(rate(1)).build();
    // What is in flight on the fast path beyond its 200,000 bytes is a queue of 20 ms; a byte arrives after 30 ms
    // there and after 40 ms here. In 10 ms the fast path delivers 100,000 bytes; the datagram here takes 0.96 ms.
    let of = |bytes| match decision("weighted", &[fast, slow], bytes) {
        PathDecision::Path { id, .. } => Some(id.get()),
        PathDecision::Blocked => None,
        PathDecision::Wait(_) => panic!("no pacer holds anything"),
    };
    assert_eq!(of(2_000_000), Some(1));
    assert_eq!(of(112_000), Some(1));
    assert_eq!(of(108_000), None);
    assert_eq!(of(1_000), None);
}

#[test]
fn weighted_answers_where_a_datagram_arrives_first() {
    let rate = |mbps| Some(Bandwidth::from_mbps(mbps));
    let window = ByteCount::new(400_000);
    let idle = |id, rtt, mbps| view(id, rtt).cwnd(window).delivery_rate(rate(mbps));
    let near = idle(0, 20, 5);
    let of = |near: PathViewBuilder| {
        let full = |view: PathViewBuilder, rtt| {
            let full = view.bytes_in_flight(window).smoothed_rtt(millis(rtt));
            full.build()
        };
        let mut scheduler = scheduler_by_name("weighted").unwrap();
        let far = idle(1, 60, 50);
        // Both have been full.
        let before = [full(near, 40), full(far, 120)];
        let _ = scheduler.next(Instant::ZERO, &before, &new_data(1_000_000));
        let now = Instant::ZERO + millis(2);
        match scheduler.next(now, &[near.build(), far.build()], &new_data(1_000_000)) {
            PathDecision::Path { id, .. } => id.get(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(of(near), 0);
    // 10 ms and a queue of 20 ms, 12,500 bytes beyond the 12,500 of a round trip.
    assert_eq!(of(near.bytes_in_flight(ByteCount::new(24_500))), 0);
    assert_eq!(of(near.bytes_in_flight(ByteCount::new(25_500))), 1);
    // The same queue, of others.
    assert_eq!(of(near.smoothed_rtt(millis(41))), 1);
}

/// Sends `datagrams` on each path, one each 20 ms.
fn carry(scheduler: &mut dyn Scheduler, paths: &mut [PathView], now: &mut Instant, datagrams: u32) {
    for _ in 0..datagrams {
        *now += millis(20);
        let _ = scheduler.next(*now, paths, &new_data(100_000));
        for path in &*paths {
            scheduler.on_sent(*now, path.id, ByteCount::new(1_200));
        }
    }
}

/// The order in which `scheduler` uses paths as each in turn has no room.
fn order(scheduler: &mut dyn Scheduler, now: Instant, paths: &[PathView]) -> Vec<u32> {
    let mut paths = paths.to_vec();
    let mut order = Vec::new();
    while let PathDecision::Path { id, .. } = scheduler.next(now, &paths, &new_data(100_000)) {
        order.push(id.get());
        let path = paths.iter_mut().find(|path| path.id == id).unwrap();
        path.bytes_in_flight = path.cwnd;
    }
    order
}

#[test]
fn classes_come_before_round_trip_times() {
    let standby = |view: PathViewBuilder| view.peer_status(PathStatus::Backup);
    // Three times the least RTT is 60 ms.
    let high = view(0, 50).build();
    let standby_high = standby(view(1, 20)).build();
    let mid = view(2, 61).build();
    let standby_mid = standby(view(3, 90)).build();
    let low = view(4, 30).pto_count(2).build();
    let standby_low = standby(view(5, 30)).pto_count(3).build();
    let all = [high, standby_high, mid, standby_mid, low, standby_low];
    let of = |scheduler: &str, paths: &[PathView]| {
        order(&mut *scheduler_by_name(scheduler).unwrap(), NOW, paths)
    };
    assert_eq!(of("min-rtt:standby=room", &all), [0, 1, 2, 3]);
    assert_eq!(of("min-rtt", &all), [0, 2], "standby paths are not needed");
    assert_eq!(of("min-rtt", &[standby_high, standby_mid, low]), [1, 3]);
    assert_eq!(of("min-rtt", &[low, standby_low]), [4]);
    assert_eq!(of("min-rtt", &[standby_low]), [5]);
    // HIGH before MID, although one is a standby path, and MID if the other has no room.
    assert_eq!(of("min-rtt:standby=class", &[standby_high, mid]), [1, 2]);
    assert_eq!(of("min-rtt:standby=class", &all), [0, 2]);
    assert_eq!(of("min-rtt", &[standby_high, mid]), [2]);
}

#[test]
fn round_trip_times_and_rates_make_classes() {
    let of = |scheduler: &str, paths: &[PathView]| {
        order(&mut *scheduler_by_name(scheduler).unwrap(), NOW, paths)
    };
    let far = view(0, 2_001).build();
    let near = view(1, 900).build();
    assert_eq!(of("min-rtt", &[far, near]), [1], "above two seconds is low");
    assert_eq!(of("min-rtt:rtt-high=3s", &[far, near]), [1, 0]);
    let recovering = view(0, 2_001).latest_rtt(millis(40)).build();
    assert_eq!(of("min-rtt", &[recovering, near]), [1, 0]);
    let unmeasured = view(0, 2_001).has_rtt_sample(false).build();
    assert_eq!(of("min-rtt", &[unmeasured, near]), [0, 1], "an assumption");
    // 12,000 bytes in 40 and in 20 ms: 2.4 and 4.8 Mbit/s.
    let standby = view(2, 20).peer_status(PathStatus::Backup).build();
    let slow = view(3, 40).build();
    assert_eq!(of("min-rtt:standby=class", &[standby, slow]), [3]);
    assert_eq!(
        of("min-rtt:standby=class,rate-low=3mbps", &[standby, slow]),
        [2, 3]
    );
}

#[test]
fn a_loss_rate_that_lasts_makes_a_path_low() {
    let mut now = NOW;
    let mut min_rtt = scheduler_by_name("min-rtt").unwrap();
    let mut paths = [view(0, 20).build(), view(1, 30).build()];
    let mut lost = 0.0;
    let mut sent = 0.0;
    // A period is 20 datagrams, in 400 ms. Of the first ten periods none loses anything.
    let mut period = |scheduler: &mut dyn Scheduler, losses: f64| {
        for _ in 0..20 {
            (sent, lost) = (sent + 1.0, lost + losses / 20.0);
            carry(scheduler, &mut paths, &mut now, 1);
            paths[0].loss_rate = lost / sent;
        }
        now += millis(20);
        (order(scheduler, now, &paths), now)
    };
    for _ in 0..10 {
        assert_eq!(period(&mut *min_rtt, 0.0).0, [0, 1]);
    }
    // 15 % lately, 1.4 % since the start.
    assert_eq!(period(&mut *min_rtt, 3.0).0, [1, 0], "mid comes last");
    assert_eq!(period(&mut *min_rtt, 0.0).0, [1, 0]);
    assert_eq!(period(&mut *min_rtt, 0.0).0, [0, 1]);
    // Half of one period, as at the end of slow start.
    assert_eq!(period(&mut *min_rtt, 10.0).0, [1, 0], "not low");
    assert_eq!(period(&mut *min_rtt, 0.0).0, [1, 0]);
    // Three tenths in two periods, ...
    assert_eq!(period(&mut *min_rtt, 6.0).0, [1, 0]);
    let (excluded, now) = period(&mut *min_rtt, 6.0);
    assert_eq!(excluded, [1]);
    // ... until the path wasn't used for ten seconds; then one more period is enough.
    let at = |time: u64| now + millis(time);
    assert_eq!(order(&mut *min_rtt, at(9_900), &paths), [1]);
    assert_eq!(order(&mut *min_rtt, at(10_000), &paths), [1, 0]);
    let (mut now, mut lost) = (at(10_000), paths[0].loss_rate * sent);
    for _ in 0..20 {
        carry(&mut *min_rtt, &mut paths, &mut now, 1);
        (sent, lost) = (sent + 1.0, lost + 0.3);
        paths[0].loss_rate = lost / sent;
    }
    assert_eq!(order(&mut *min_rtt, now + millis(20), &paths), [1]);
}

#[test]
fn the_backup_scheduler_stays_where_it_is() {
    let mut backup = scheduler_by_name("backup").unwrap();
    let chosen = |backup: &mut dyn Scheduler, paths: &[PathView]| match backup.next(
        NOW,
        paths,
        &new_data(1_000),
    ) {
        PathDecision::Path { id, .. } => id.get(),
        other => panic!("{other:?}"),
    };
    let (first, second) = (view(0, 40), view(1, 30));
    assert_eq!(chosen(&mut *backup, &[first.build(), second.build()]), 1);
    let slower = second.rtt(millis(90)).build();
    assert_eq!(chosen(&mut *backup, &[first.build(), slower]), 1);
    assert_eq!(
        chosen(&mut *backup, &[first.build(), second.cost(1).build()]),
        0
    );
    let failing = second.pto_count(2).build();
    assert_eq!(chosen(&mut *backup, &[first.build(), failing]), 0);
    let late = second.rtt(millis(2_100)).build();
    assert_eq!(
        chosen(&mut *backup, &[first.build(), late]),
        0,
        "a low class fails"
    );
}

#[test]
fn copies_of_redundant_transmission_leave_first() {
    let copies = [CopyDemand::new(
        PathChoice::On(PathId::new(1)),
        ByteCount::new(1_000),
    )];
    let demand = new_data(5_000).copies(&copies);
    let (near, far) = (view(0, 10), view(1, 80));
    let of = |near: PathViewBuilder, far: PathViewBuilder, demand| {
        let mut redundant = scheduler_by_name("redundant").unwrap();
        path_of(redundant.next(NOW, &[near.build(), far.build()], &demand))
    };
    assert_eq!(of(near, far, demand), on(1));
    assert_eq!(of(near, full(far), demand), on(0));
    assert_eq!(of(near, far, new_data(5_000)), on(0));
    assert_eq!(of(full(near), far, new_data(5_000)), on(1));
}

/// Bytes of the batch on the path that is chosen.
fn batch_of(scheduler: &str, paths: &[PathView], demand: &Demand<'_>) -> (u32, u64) {
    let mut scheduler = scheduler_by_name(scheduler).unwrap();
    match scheduler.next(NOW, paths, demand) {
        PathDecision::Path { id, max_bytes } => (id.get(), max_bytes.get()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_batch_is_whole_on_the_path_that_stays_the_best() {
    let window = ByteCount::new(1_000_000);
    let [near, far] = [view(0, 10), view(1, 20)].map(|view| view.cwnd(window));
    let paths = [near.build(), far.build()];
    let much = new_data(10_000_000);
    for scheduler in ["min-rtt", "ecf", "blest", "redundant"] {
        assert_eq!(
            batch_of(scheduler, &paths, &much),
            (0, 65_536),
            "{scheduler}"
        );
        let single = format!("{scheduler}:batch=0");
        assert_eq!(batch_of(&single, &paths, &much), (0, 0), "{scheduler}");
    }
    let copies = [CopyDemand::new(
        PathChoice::On(PathId::new(1)),
        ByteCount::new(3_000),
    )];
    let copies = much.copies(&copies);
    assert_eq!(batch_of("redundant", &paths, &copies), (1, 3_000));
}

#[test]
fn a_batch_is_part_of_window_and_data_where_each_datagram_counts() {
    let window = |bytes| ByteCount::new(bytes);
    let near = |bytes| view(0, 10).cwnd(window(bytes)).build();
    let far = view(1, 20).cwnd(window(1_000_000)).build();
    for scheduler in ["weighted", "round-robin"] {
        let of = |paths: &[PathView], bytes| batch_of(scheduler, paths, &new_data(bytes));
        assert_eq!(of(&[near(1_000_000), far], 10_000_000), (0, 65_536));
        assert_eq!(of(&[near(40_000), far], 10_000_000), (0, 10_000));
        assert_eq!(of(&[near(1_000_000), far], 40_000), (0, 5_000));
    }
    // The path that stands in for one without room.
    let busy = view(0, 10).cwnd(window(40_000));
    let busy = busy.bytes_in_flight(window(40_000)).build();
    for scheduler in ["ecf", "blest"] {
        let of = |bytes| batch_of(scheduler, &[busy, far], &new_data(bytes));
        assert_eq!(of(10_000_000), (1, 65_536), "{scheduler}");
        assert_eq!(of(400_000), (1, 50_000), "{scheduler}");
    }
}

#[test]
fn a_path_with_losses_carries_data_while_the_other_is_silent() {
    let mut now = NOW;
    let mut min_rtt = scheduler_by_name("min-rtt").unwrap();
    let mut paths = [view(0, 40).build(), view(1, 20).build()];
    for _ in 0..2 {
        carry(&mut *min_rtt, &mut paths, &mut now, 20);
        paths[0].loss_rate = 0.3;
        now += millis(20);
        let _ = min_rtt.next(now, &paths, &new_data(100_000));
    }
    assert_eq!(order(&mut *min_rtt, now, &paths), [1], "30 % is too much");
    // One probe timeout of the other has gone unanswered, and it has room.
    paths[1].pto_count = 1;
    assert_eq!(order(&mut *min_rtt, now, &paths), [0]);
    paths[0].pto_count = 1;
    assert_eq!(
        order(&mut *min_rtt, now, &paths),
        [1, 0],
        "nothing is better"
    );
}

#[test]
fn acknowledgements_on_an_excluded_path_do_not_put_off_its_trial() {
    let mut now = NOW;
    let mut min_rtt = scheduler_by_name("min-rtt:retry=4s").unwrap();
    let mut paths = [view(0, 20).build(), view(1, 30).build()];
    for _ in 0..2 {
        carry(&mut *min_rtt, &mut paths, &mut now, 20);
        paths[0].loss_rate = 0.3;
        now += millis(20);
        let _ = min_rtt.next(now, &paths, &new_data(100_000));
    }
    assert_eq!(order(&mut *min_rtt, now, &paths), [1], "30 % is too much");
    let excluded_at = now;
    while now < excluded_at + millis(3_900) {
        now += millis(100);
        min_rtt.on_sent(now, PathId::ZERO, ByteCount::new(40));
        assert_eq!(order(&mut *min_rtt, now, &paths), [1]);
    }
    now = excluded_at + millis(4_000);
    assert_eq!(order(&mut *min_rtt, now, &paths), [1, 0]);
}

#[test]
fn an_acknowledgement_elsewhere_does_not_change_the_path_in_use() {
    let mut backup = scheduler_by_name("backup").unwrap();
    let paths = [view(0, 30), view(1, 40)].map(PathViewBuilder::build);
    assert_eq!(ask(&mut *backup, &paths, 1_000), on(0));
    backup.on_sent(NOW, PathId::new(1), ByteCount::new(40));
    let slower = [view(0, 50).build(), paths[1]];
    assert_eq!(ask(&mut *backup, &slower, 1_000), on(0));
}

#[test]
fn an_idle_path_that_fell_silent_carries_data_only_if_no_other_has_room() {
    let at = |ms| Some(NOW - millis(ms));
    for scheduler in ["min-rtt", "round-robin", "weighted", "ecf", "blest"] {
        let of = |scheduler: &str, near: PathViewBuilder, far: PathViewBuilder| match decision(
            scheduler,
            &[near.build(), far.last_confirmed(at(1)).build()],
            1_000,
        ) {
            PathDecision::Path { id, .. } => id.get(),
            other => panic!("{other:?}"),
        };
        let (near, far) = (view(0, 30), view(1, 50));
        assert_eq!(
            of(scheduler, near.last_confirmed(at(60)), far),
            0,
            "{scheduler}"
        );
        let silent = near.last_confirmed(at(62));
        assert_eq!(of(scheduler, silent, far), 1, "{scheduler}");
        assert_eq!(of(scheduler, silent, full(far)), 0, "{scheduler}");
        let always = format!("{scheduler}:silence=none");
        assert_eq!(of(&always, silent, far), 0, "{scheduler}");
        // An answer is awaited.
        let busy = silent.bytes_in_flight(ByteCount::new(1_200));
        assert_eq!(of("min-rtt", busy, far), 0);
    }
}
