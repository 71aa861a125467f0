//! Schedulers: what holds for each of them, whatever the paths are.

use std::time::Duration;

use proptest::prelude::*;
use swiftwater_policies::SchedulerCatalogue;
use swiftwater_policies::scheduler_by_name;
use swiftwater_policies::schedulers::{PathCapacity, finish_time};
use swiftwater_quic::policy::{
    CopyDemand, Demand, PathChoice, PathDecision, PathPhase, PathStatus, PathView,
};
use swiftwater_units::{Bandwidth, ByteCount, Instant, PathId};

const NOW: Instant = Instant::from_millis(5_000);

/// Schedulers of more than one path, and some with other parameters.
const ALL: [&str; 13] = [
    "min-rtt",
    "min-rtt:standby=class",
    "min-rtt:standby=room,rate-low=3mbps",
    "round-robin",
    "weighted",
    "ecf",
    "ecf:beta=2",
    "blest",
    "blest:lambda=4",
    "redundant",
    "backup",
    "chorus",
    "chorus+",
];

/// Those that may answer that no path can carry data although one is ready: most wait for a
/// better one, `backup` for the one in use.
fn waits(name: &str) -> bool {
    ["weighted", "ecf", "blest", "backup", "chorus+"]
        .iter()
        .any(|waiting| name.starts_with(waiting))
}

fn status(is_backup: bool) -> PathStatus {
    if is_backup {
        PathStatus::Backup
    } else {
        PathStatus::Available
    }
}

fn any_view(id: u32) -> impl Strategy<Value = PathView> {
    let in_flight = prop_oneof![Just(0), 0_u64..30_000];
    let numbers = (0_u64..500, in_flight, 0_u32..4, 0_u64..3, 0_u32..3);
    let states = (0_u8..3, any::<bool>(), any::<bool>(), any::<bool>());
    let rates = (0_u64..60_000, prop::option::of(0_u64..100), 0.0..0.5_f64);
    (numbers, states, rates).prop_map(move |(numbers, states, rates)| {
        let (rtt, in_flight, pto_count, pacing, cost) = numbers;
        let (phase, local, peer, has_sample) = states;
        let (cwnd, mbps, loss_rate) = rates;
        let rtt = Duration::from_millis(rtt);
        let phases = [PathPhase::Active, PathPhase::Validating, PathPhase::Closing];
        let mut view = PathView::builder(PathId::new(id))
            .rtt(rtt)
            .min_rtt(rtt / 2)
            .has_rtt_sample(has_sample)
            .cwnd(ByteCount::new(cwnd))
            .bytes_in_flight(ByteCount::new(in_flight))
            .pto_count(pto_count)
            .pacing_release(NOW + Duration::from_millis(pacing) - Duration::from_millis(1))
            .cost(cost)
            .phase(phases[usize::from(phase)])
            .local_status(status(local))
            .peer_status(status(peer))
            .loss_rate(loss_rate);
        if let Some(mbps) = mbps {
            view = view.delivery_rate(Some(Bandwidth::from_mbps(mbps)));
        }
        view.build()
    })
}

fn any_views() -> impl Strategy<Value = Vec<PathView>> {
    (1_u32..5).prop_flat_map(|n| (0..n).map(any_view).collect::<Vec<_>>())
}

/// Control frames, new and lost bytes, and copies for a path that may not exist.
fn any_demand() -> impl Strategy<Value = (bool, u64, u64, Option<CopyDemand>)> {
    let target = prop_oneof![
        Just(PathChoice::Any),
        (0_u32..5).prop_map(|id| PathChoice::Not(PathId::new(id))),
        (0_u32..5).prop_map(|id| PathChoice::On(PathId::new(id))),
    ];
    let copy = (target, 0_u64..5_000);
    let copy = copy.prop_map(|(target, bytes)| CopyDemand::new(target, ByteCount::new(bytes)));
    let new = prop_oneof![Just(0), 1_u64..2_000, 1_u64..10_000_000];
    (any::<bool>(), new, 0_u64..3_000, prop::option::of(copy))
}

fn has_room(path: &PathView) -> bool {
    path.window_room().get() >= 1_200 && path.pacing_release <= NOW
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// A choice is a path of the list that can send now and may carry something of what waits. Without a
    /// reason to wait, no good available path is passed over. No scheduler waits for what will not come.
    #[test]
    fn decisions_are_valid(
        views in any_views(),
        (control, new, lost, copies) in any_demand(),
        name in prop::sample::select(ALL.to_vec()),
        steps in 1_usize..40,
    ) {
        let copies: Vec<_> = copies.into_iter().collect();
        let demand = Demand::nothing()
            .control(control)
            .new_data(ByteCount::new(new))
            .retransmissions(ByteCount::new(lost))
            .copies(&copies);
        let mut scheduler = scheduler_by_name(name).unwrap();
        for _ in 0..steps {
            let suits = |path: &&PathView| demand.suits(path.id);
            let ready = |path: &&PathView| path.is_ready(NOW);
            let in_flight = views.iter().any(|path| !path.bytes_in_flight.is_zero());
            match scheduler.next(NOW, &views, &demand) {
                PathDecision::Path { id, .. } => {
                    let path = views.iter().find(|path| path.id == id).unwrap();
                    prop_assert!(path.phase != PathPhase::Closing);
                    prop_assert!(demand.suits(id));
                    prop_assert!(has_room(path));
                    scheduler.on_sent(NOW, id, ByteCount::new(1_200));
                }
                PathDecision::Blocked => {
                    let good = |path: &&PathView| !path.is_backup() && path.pto_count == 0;
                    let mut passed_over = views.iter().filter(ready).filter(suits);
                    prop_assert!(in_flight || passed_over.clone().next().is_none());
                    // The losses that are shown count once the path has carried enough.
                    prop_assert!(waits(name) || steps > 19 || !passed_over.any(|path| good(&path)));
                }
                PathDecision::Wait(until) => {
                    prop_assert!((waits(name) || !in_flight) && until > NOW);
                    prop_assert!(views.iter().any(|path| path.pacing_release == until));
                }
            }
        }
    }

    /// Identifiers, and so the order in which paths were opened, only break ties.
    #[test]
    fn identifiers_do_not_matter(
        mut views in any_views(),
        new in prop_oneof![1_u64..2_000, 1_u64..10_000_000],
        name in prop::sample::select(ALL.to_vec()),
        steps in 1_usize..30,
    ) {
        // No ties.
        for (n, view) in (1_u64..).zip(&mut views) {
            view.smoothed_rtt += Duration::from_micros(7 * n);
            view.min_rtt = view.smoothed_rtt;
        }
        let last = views.len() as u32 - 1;
        let mirrored: Vec<_> = views
            .iter()
            .rev()
            .map(|view| {
                let mut mirrored = *view;
                mirrored.id = PathId::new(last - view.id.get());
                mirrored
            })
            .collect();
        let demand = Demand::nothing().new_data(ByteCount::new(new));
        let mut forth = scheduler_by_name(name).unwrap();
        let mut back = scheduler_by_name(name).unwrap();
        for _ in 0..steps {
            let decision = forth.next(NOW, &views, &demand);
            let mirrored = back.next(NOW, &mirrored, &demand);
            match (decision, mirrored) {
                (PathDecision::Path { id, max_bytes }, PathDecision::Path { id: other, max_bytes: also }) => {
                    prop_assert_eq!(id.get(), last - other.get());
                    prop_assert_eq!(max_bytes, also);
                    forth.on_sent(NOW, id, ByteCount::new(1_200));
                    back.on_sent(NOW, other, ByteCount::new(1_200));
                }
                (decision, mirrored) => prop_assert_eq!(decision, mirrored),
            }
        }
    }

    /// The shares add up to the data, and no path finishes after the others.
    #[test]
    fn shares_finish_together(
        mut paths in prop::collection::vec((1.0..1e9_f64, 0.0..10.0_f64), 1..6),
        bytes in 0.0..1e9_f64,
    ) {
        let mut paths: Vec<_> = paths
            .drain(..)
            .map(|(rate, delay)| PathCapacity { rate, delay })
            .collect();
        let finish = finish_time(bytes, &mut paths).unwrap();
        let sum: f64 = paths.iter().map(|path| path.share(finish)).sum();
        // Short by what 1e9 bytes per second deliver within the precision of the time.
        prop_assert!((sum - bytes).abs() <= 1e-6 * bytes + 1e-3 * paths.len() as f64, "{} {}", sum, bytes);
        let first = paths[0].delay;
        prop_assert!(finish >= first);
    }
}

#[test]
fn every_parameter_takes_the_value_that_it_shows() {
    let all = SchedulerCatalogue::standard();
    for entry in all.entries() {
        assert!(!entry.about().is_empty());
        for parameter in entry.parameters() {
            let setting = format!("{}={}", parameter.name, parameter.value);
            let same = all
                .parameters(&format!("{}:{setting}", entry.name()))
                .unwrap();
            assert_eq!(same, entry.parameters(), "{} {setting}", entry.name());
        }
    }
}
