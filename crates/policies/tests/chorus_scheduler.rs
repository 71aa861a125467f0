//! Chorus: parts of a response, which path carries what, and what corrects the division.

use std::time::Duration;

use proptest::prelude::*;
use swiftwater_policies::chorus::shares::{apportion, finishing_together, proportional};
use swiftwater_policies::chorus::{ChorusScheduler, ChorusSchedulerConfig, PathRates, RateSource};
use swiftwater_policies::schedulers::PathCapacity;
use swiftwater_quic::Priority;
use swiftwater_quic::policy::{
    CopyDemand, Demand, Hints, PathChoice, PathDecision, PathPhase, PathStatus, PathView, Rank,
    ResponseStart, Scheduler,
};
use swiftwater_units::{Bandwidth, ByteCount, Dir, Instant, PathId, Side, StreamId};

const NOW: Instant = Instant::from_millis(5_000);
const A: PathId = PathId::ZERO;
const B: PathId = PathId::new(1);
/// What a datagram of 1200 bytes carries, as the scheduler counts it.
const PAYLOAD: u64 = 1_164;

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn stream(nth: u64) -> StreamId {
    StreamId::new(Side::Server, Dir::Uni, nth)
}

/// A path of this rate and RTT, with a window of one round trip.
fn view(id: PathId, mbps: u64, rtt: u64, in_flight: u64) -> PathView {
    let rate = Bandwidth::from_mbps(mbps);
    PathView::builder(id)
        .rtt(millis(rtt))
        .cwnd(ByteCount::new(rate.bytes_in(millis(rtt))))
        .bytes_in_flight(ByteCount::new(in_flight))
        .delivery_rate(Some(rate))
        .build()
}

fn response(bytes: u64) -> Hints {
    Hints {
        response: Some(ResponseStart {
            stream: stream(0),
            bytes: ByteCount::new(bytes),
            requested_at: NOW,
        }),
        ..Hints::default()
    }
}

/// New data of the `nth` stream wait.
fn waiting(nth: u64, bytes: u64) -> Demand<'static> {
    Demand::nothing()
        .new_data(ByteCount::new(bytes))
        .next_stream(stream(nth), Priority::default())
}

fn scheduler(change: impl FnOnce(&mut ChorusSchedulerConfig)) -> ChorusScheduler {
    let mut config = ChorusSchedulerConfig::default();
    change(&mut config);
    ChorusScheduler::new(config)
}

/// Announces a response of so many bytes and asks for the first decision.
fn started(scheduler: &mut ChorusScheduler, bytes: u64, paths: &[PathView]) -> PathDecision {
    scheduler.on_hints(NOW, &response(bytes));
    scheduler.next(NOW, paths, &waiting(0, bytes))
}

fn quota(scheduler: &ChorusScheduler, id: PathId) -> u64 {
    let quotas = scheduler.quotas();
    let found = quotas.iter().find(|(path, _)| *path == id);
    found.map_or(0, |(_, bytes)| bytes.get())
}

fn path_of(decision: PathDecision) -> Option<PathId> {
    match decision {
        PathDecision::Path { id, .. } => Some(id),
        _ => None,
    }
}

#[test]
fn a_response_is_divided_by_bandwidth_whatever_windows_and_round_trips_are() {
    let mut chorus = scheduler(|config| config.reschedule = false);
    // The path with three times the bandwidth has four times the RTT.
    let paths = [view(A, 30, 80, 0), view(B, 10, 20, 0)];
    started(&mut chorus, 4_000_000, &paths);
    assert_eq!(quota(&chorus, A), 3_000_000);
    assert_eq!(quota(&chorus, B), 1_000_000);
    // The same hint again changes nothing; another response does.
    chorus.on_sent(NOW, B, ByteCount::new(1_200));
    chorus.on_hints(NOW, &response(4_000_000));
    chorus.next(NOW, &paths, &waiting(0, 4_000_000));
    assert_eq!(quota(&chorus, B), 1_000_000 - PAYLOAD);
    let mut next = response(8_000);
    next.response.as_mut().unwrap().requested_at = NOW + millis(1);
    chorus.on_hints(NOW, &next);
    chorus.next(NOW, &paths, &waiting(0, 8_000));
    assert_eq!((quota(&chorus, A), quota(&chorus, B)), (6_000, 2_000));
}

#[test]
fn data_leave_within_the_quota_of_a_path() {
    let mut chorus = scheduler(|config| config.reschedule = false);
    let paths = [view(A, 30, 80, 0), view(B, 10, 20, 0)];
    let first = started(&mut chorus, 40_000, &paths);
    // Least RTT first, no more than its quota.
    let expected = PathDecision::Path {
        id: B,
        max_bytes: ByteCount::new(10_000),
    };
    assert_eq!(first, expected);
    for _ in 0..9 {
        chorus.on_sent(NOW, B, ByteCount::new(1_200));
    }
    assert_eq!(quota(&chorus, B), 0);
    let second = chorus.next(NOW, &paths, &waiting(0, 30_000));
    assert_eq!(path_of(second), Some(A));
    // The other has none left: data wait for the first.
    let full = [view(A, 30, 80, 300_000), view(B, 10, 20, 0)];
    let third = chorus.next(NOW, &full, &waiting(0, 30_000));
    assert_eq!(third, PathDecision::Blocked);
    let mut paced = [view(A, 30, 80, 0), view(B, 10, 20, 0)];
    paced[0].pacing_release = NOW + millis(3);
    let fourth = chorus.next(NOW, &paced, &waiting(0, 30_000));
    assert_eq!(fourth, PathDecision::Wait(NOW + millis(3)));
}

/// Path A has used up its quota, B has 50,000 bytes to send and no room. Eq. 7 with equal rates of 10 Mbit/s and RTTs of
/// 20 and 40 ms moves half of it, and what A delivers in the 10 ms by which it is nearer to the mean.
#[test]
fn the_division_is_corrected_when_one_path_falls_behind() {
    let mut chorus = scheduler(|_| {});
    let even = [view(A, 10, 20, 0), view(B, 10, 40, 0)];
    started(&mut chorus, 100_000, &even);
    assert_eq!(quota(&chorus, A), 50_000, "both are backlogged");
    chorus.next(NOW, &even, &waiting(0, 100_000));
    chorus.on_sent(NOW, A, ByteCount::new(50_036));
    assert_eq!(quota(&chorus, A), 0);
    let behind = [view(A, 10, 20, 0), view(B, 10, 40, 50_000)];
    let decision = chorus.next(NOW, &behind, &waiting(0, 50_000));
    assert_eq!(path_of(decision), Some(A));
    assert_eq!(chorus.reschedules(), 1);
    assert_eq!(quota(&chorus, A), 25_000 + 12_500);
    assert_eq!(quota(&chorus, B), 25_000 - 12_500);
}

#[test]
fn each_rule_can_be_switched_off() {
    let even = [view(A, 10, 20, 0), view(B, 10, 40, 0)];
    let mut whole = scheduler(|config| config.oneshot = false);
    // Only what waits is divided, and by Eq. 7.
    whole.on_hints(NOW, &response(1_000_000));
    whole.next(NOW, &even, &waiting(0, 100_000));
    assert_eq!(quota(&whole, A), 62_500);
    assert_eq!(quota(&whole, B), 37_500);

    let mut fixed = scheduler(|config| config.reschedule = false);
    started(&mut fixed, 100_000, &even);
    fixed.next(NOW, &even, &waiting(0, 100_000));
    fixed.on_sent(NOW, A, ByteCount::new(50_036));
    let behind = [view(A, 10, 20, 0), view(B, 10, 40, 50_000)];
    assert_eq!(
        fixed.next(NOW, &behind, &waiting(0, 50_000)),
        PathDecision::Blocked
    );
    assert_eq!(fixed.reschedules(), 0);

    // Path A, with more bandwidth, is backlogged. The other has room beyond the quota of its own, but not beyond that of A.
    let unequal = [view(A, 20, 20, 0), view(B, 10, 100, 0)];
    for (symmetric, expected) in [(true, 1), (false, 0)] {
        let mut listing = scheduler(|config| config.symmetric = symmetric);
        started(&mut listing, 300_000, &unequal);
        assert_eq!(listing.reschedules(), expected, "symmetric={symmetric}");
    }
}

#[test]
fn without_a_response_and_for_other_data_the_least_rtt_counts() {
    let mut chorus = scheduler(|config| config.reschedule = false);
    let paths = [view(A, 30, 80, 0), view(B, 10, 20, 0)];
    assert_eq!(
        path_of(chorus.next(NOW, &paths, &waiting(0, 100_000))),
        Some(B)
    );
    started(&mut chorus, 40_000, &paths);
    chorus.on_sent(NOW, B, ByteCount::new(20_000));
    assert_eq!(quota(&chorus, B), 0);
    // B has no quota, and carries all that isn't the response.
    let data = waiting(0, 30_000);
    let copy = [CopyDemand::new(PathChoice::Not(A), ByteCount::new(900)).rank(Rank::First)];
    let others = [
        waiting(1, 30_000),
        data.control(true),
        data.datagrams(ByteCount::new(500)),
        data.retransmissions(ByteCount::new(500)),
        data.copies(&copy),
    ];
    for demand in others {
        let before = quota(&chorus, A);
        let decision = chorus.next(NOW, &paths, &demand);
        assert_eq!(path_of(decision), Some(B), "{demand:?}");
        chorus.on_sent(NOW, B, ByteCount::new(1_200));
        assert_eq!(quota(&chorus, A), before, "{demand:?}");
    }
    // Copies that have no room don't hold the response up.
    let mut full = paths;
    full[1].bytes_in_flight = full[1].cwnd;
    let decision = chorus.next(NOW, &full, &data.copies(&copy));
    assert_eq!(path_of(decision), Some(A));
}

#[test]
fn a_path_that_fails_gives_its_quota_up() {
    let mut chorus = scheduler(|config| config.reschedule = false);
    let paths = [view(A, 30, 80, 0), view(B, 10, 20, 0)];
    started(&mut chorus, 4_000_000, &paths);
    let changes: [fn(&mut PathView); 3] = [
        |path| path.phase = PathPhase::Closing,
        |path| path.local_status = PathStatus::Backup,
        |path| path.pto_count = 1,
    ];
    for change in changes {
        let mut failing = paths;
        change(&mut failing[0]);
        let mut chorus = chorus.clone();
        let decision = chorus.next(NOW, &failing, &waiting(0, 4_000_000));
        assert_eq!(path_of(decision), Some(B));
        assert_eq!(quota(&chorus, B), 4_000_000);
    }
    let decision = chorus.next(NOW, &paths[1..], &waiting(0, 4_000_000));
    assert_eq!(path_of(decision), Some(B));
    assert_eq!(quota(&chorus, B), 4_000_000);
}

#[test]
fn what_is_written_beyond_the_announced_size_is_divided_too() {
    let mut chorus = scheduler(|_| {});
    let paths = [view(A, 10, 20, 0), view(B, 10, 20, 0)];
    started(&mut chorus, 2_000, &paths);
    chorus.on_sent(NOW, A, ByteCount::new(2_036));
    assert_eq!(
        chorus
            .quotas()
            .iter()
            .map(|(_, left)| left.get())
            .sum::<u64>(),
        0
    );
    let decision = chorus.next(NOW, &paths, &waiting(0, 50_000));
    assert!(path_of(decision).is_some());
    assert_eq!(quota(&chorus, A), 25_000);
    assert_eq!(quota(&chorus, B), 25_000);
}

#[test]
fn bandwidths_are_smoothed_and_ignore_paths_that_are_used_little() {
    let mut rates = PathRates::new(RateSource::Delivery);
    let busy = |mbps| view(A, mbps, 100, 1_000_000);
    assert!((rates.rate(&view(A, 8, 100, 0)) - 1e6).abs() < 1.0);
    for n in 0..8 {
        rates.observe(NOW + millis(50 * n), &[busy(8)]);
    }
    rates.observe(NOW + millis(400), &[busy(16)]);
    rates.observe(NOW + millis(410), &[busy(16)]);
    assert!(
        (rates.rate(&busy(8)) - 1.125e6).abs() < 1.0,
        "an eighth, once per 50 ms"
    );
    rates.observe(NOW + millis(500), &[view(A, 1, 100, 1_000)]);
    assert!(
        (rates.rate(&busy(8)) - 1.125e6).abs() < 1.0,
        "not half full"
    );
    rates.observe(NOW + millis(550), &[]);
    assert!((rates.rate(&busy(8)) - 1e6).abs() < 1.0, "forgotten");
    let mut windows = PathRates::new(RateSource::Window);
    let mut path = busy(8);
    path.cwnd = ByteCount::new(500_000);
    windows.observe(NOW, &[path]);
    assert!((windows.rate(&path) - 5e6).abs() < 1.0, "window per RTT");
}

fn any_view(id: u32) -> impl Strategy<Value = PathView> {
    let numbers = (1_u64..400, 0_u64..60_000, 0_u64..60_000, 0_u32..3, 0_u64..3);
    let states = (0_u8..6, any::<bool>(), prop::option::of(0_u64..100));
    (numbers, states).prop_map(move |(numbers, (phase, is_backup, mbps))| {
        let (rtt, cwnd, in_flight, pto_count, pacing) = numbers;
        let phase = match phase {
            0 => PathPhase::Closing,
            1 => PathPhase::Validating,
            _ => PathPhase::Active,
        };
        let status = [PathStatus::Available, PathStatus::Backup][usize::from(is_backup)];
        PathView::builder(PathId::new(id))
            .rtt(millis(rtt))
            .cwnd(ByteCount::new(cwnd))
            .bytes_in_flight(ByteCount::new(in_flight))
            .pto_count(pto_count)
            .pacing_release(NOW + millis(pacing) - millis(1))
            .phase(phase)
            .local_status(status)
            .delivery_rate(mbps.map(Bandwidth::from_mbps))
            .build()
    })
}

/// Some of four paths, never none.
fn any_views() -> impl Strategy<Value = Vec<PathView>> {
    let all = (any_view(0), any_view(1), any_view(2), any_view(3));
    (all, 1_u8..16).prop_map(|((a, b, c, d), present)| {
        let all = [a, b, c, d].into_iter().enumerate();
        let present = all.filter(|(n, _)| present & (1 << n) != 0);
        present.map(|(_, view)| view).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn shares_add_up(
        rates in prop::collection::vec(0.0..1e12_f64, 1..6),
        delays in prop::collection::vec(0.0..10.0_f64, 6),
        bytes in 0_u64..(1 << 50),
    ) {
        let paths: Vec<_> = rates.iter().zip(&delays).map(|(rate, delay)| PathCapacity {
            rate: rate + 1.0,
            delay: *delay,
        }).collect();
        for shares in [proportional(&rates), finishing_together(bytes as f64, &paths)] {
            prop_assert_eq!(shares.len(), rates.len());
            prop_assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{:?}", shares);
            prop_assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{:?}", shares);
            prop_assert_eq!(apportion(bytes, &shares).iter().sum::<u64>(), bytes);
        }
    }

    /// Eq. 7 as printed, for two paths.
    #[test]
    fn two_paths_share_as_the_paper_has_it(
        (fast, slow) in (1e4..1e8_f64, 1e4..1e8_f64),
        (fast_rtt, slow_rtt) in (0.001..1.0_f64, 0.001..1.0_f64),
        bytes in 1e3..1e8_f64,
    ) {
        let alpha = fast / (fast + slow) + fast * slow * (slow_rtt - fast_rtt) / (bytes * (fast + slow));
        let paths = [(fast, fast_rtt), (slow, slow_rtt)].map(|(rate, delay)| PathCapacity { rate, delay });
        let shares = finishing_together(bytes, &paths);
        prop_assert!((shares[0] - alpha.clamp(0.0, 1.0)).abs() < 1e-6, "{} {}", shares[0], alpha);
    }

    /// Whatever paths come, go and do between the calls: decisions are valid, every byte is allotted exactly once, and
    /// data don't wait for what won't come.
    #[test]
    fn decisions_are_valid(
        steps in prop::collection::vec((any_views(), 0_u8..8), 1..20),
        bytes in 0_u64..1_000_000,
        (oneshot, reschedule, symmetric) in any::<(bool, bool, bool)>(),
    ) {
        let mut chorus = scheduler(|config| {
            (config.oneshot, config.reschedule, config.symmetric) = (oneshot, reschedule, symmetric);
        });
        chorus.on_hints(NOW, &response(bytes));
        let (mut expected, mut is_divided) = (0, false);
        for (views, kind) in steps {
            let demand = match kind {
                0 => waiting(1, 5_000),
                1 => waiting(0, 5_000).control(true),
                2 => waiting(0, 5_000).retransmissions(ByteCount::new(800)),
                _ => waiting(0, 2_000_000),
            };
            let about_response = kind > 2;
            let decision = chorus.next(NOW, &views, &demand);
            let total: u64 = chorus.quotas().iter().map(|(_, left)| left.get()).sum();
            let is_eligible = views.iter().any(|view| view.phase != PathPhase::Closing);
            if !is_divided && about_response && is_eligible {
                is_divided = true;
                let whole = if oneshot && bytes > 0 { bytes } else { 2_000_000 };
                prop_assert_eq!(total, whole);
            } else if expected > 0 {
                prop_assert_eq!(total, expected);
            }
            expected = total;
            let in_flight = views.iter().any(|view| !view.bytes_in_flight.is_zero());
            let mut ready = views.iter().filter(|view| view.is_ready(NOW));
            match decision {
                PathDecision::Path { id, .. } => {
                    let path = views.iter().find(|view| view.id == id).unwrap();
                    prop_assert!(path.phase != PathPhase::Closing);
                    prop_assert!(path.window_room().get() >= 1_200 && path.pacing_release <= NOW);
                    chorus.on_sent(NOW, id, ByteCount::new(1_200));
                    if about_response {
                        expected -= expected.min(PAYLOAD);
                    }
                }
                PathDecision::Blocked => {
                    // Some path is awaited that something is in flight on and that hasn't failed.
                    let answers = |view: &PathView| !view.bytes_in_flight.is_zero() && view.pto_count == 0;
                    prop_assert!(ready.next().is_none() || in_flight);
                    let mut usable = views.iter().filter(|view| view.is_usable() && !view.is_backup());
                    let mut ready = usable.clone().filter(|view| view.is_ready(NOW) && view.pto_count == 0);
                    prop_assert!(ready.next().is_none() || usable.any(answers));
                }
                PathDecision::Wait(until) => {
                    prop_assert!(until > NOW);
                    prop_assert!(views.iter().any(|view| view.pacing_release == until));
                }
            }
            let left: u64 = chorus.quotas().iter().map(|(_, left)| left.get()).sum();
            prop_assert_eq!(left, expected);
        }
    }
}
