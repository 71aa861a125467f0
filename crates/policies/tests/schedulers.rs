//! Schedulers: each decision by itself, and what they make of scripted paths.

use std::time::Duration;

use swiftwater_policies::scheduler_by_name;
use swiftwater_policies::testkit::{Network, ScriptedPath, TransferReport};
use swiftwater_policies::{Policies, SchedulerCatalogue, reinjector_by_name};
use swiftwater_quic::policy::{
    CopyDemand, Demand, PathChoice, PathDecision, PathPhase, PathStatus, PathView, PathViewBuilder,
    PolicyFactory,
};
use swiftwater_units::{Bandwidth, ByteCount, Instant, PathId};

const NOW: Instant = Instant::from_millis(5_000);

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn mbps(n: u64) -> Bandwidth {
    Bandwidth::from_mbps(n)
}

fn view(id: u32) -> PathViewBuilder {
    PathView::builder(PathId::new(id))
}

fn full(view: PathViewBuilder) -> PathViewBuilder {
    view.bytes_in_flight(ByteCount::new(12_000))
}

fn new_data() -> Demand<'static> {
    Demand::nothing().new_data(ByteCount::new(100_000))
}

/// The path that `scheduler` chooses; `None` if it is blocked.
fn choice(scheduler: &str, paths: &[PathView], demand: &Demand<'_>) -> Option<u32> {
    match scheduler_by_name(scheduler)
        .unwrap()
        .next(NOW, paths, demand)
    {
        PathDecision::Path { id, .. } => Some(id.get()),
        PathDecision::Blocked => None,
        PathDecision::Wait(until) => panic!("waits until {until:?}"),
    }
}

#[test]
fn min_rtt_takes_the_nearest_path_with_room() {
    let (near, far) = (view(1).rtt(millis(10)), view(0).rtt(millis(40)));
    let demand = new_data();
    let of = |paths: &[PathView]| choice("min-rtt", paths, &demand);
    assert_eq!(of(&[far.build(), near.build()]), Some(1));
    assert_eq!(of(&[far.build(), full(near).build()]), Some(0));
    let later = near.pacing_release(NOW + millis(1));
    assert_eq!(of(&[far.build(), later.build()]), Some(0));
    let closing = near.phase(PathPhase::Closing);
    assert_eq!(of(&[far.build(), closing.build()]), Some(0));
    assert_eq!(of(&[full(far).build(), full(near).build()]), None);
}

#[test]
fn backup_paths_wait_until_no_available_one_is_usable() {
    let demand = new_data();
    for scheduler in ["min-rtt", "round-robin", "weighted", "ecf", "blest"] {
        let of = |paths: &[PathView]| choice(scheduler, paths, &demand);
        let available = view(0).rtt(millis(80));
        for backup in [
            view(1).peer_status(PathStatus::Backup),
            view(1).local_status(PathStatus::Backup),
        ] {
            let backup = backup.rtt(millis(5)).build();
            assert_eq!(of(&[available.build(), backup]), Some(0));
            assert_eq!(
                of(&[full(available).build(), backup]),
                None,
                "it has no turn yet"
            );
            let closing = available.phase(PathPhase::Closing).build();
            assert_eq!(of(&[closing, backup]), Some(1));
        }
        let validating = view(1).rtt(millis(5)).phase(PathPhase::Validating).build();
        assert_eq!(of(&[available.build(), validating]), Some(0));
        assert_eq!(of(&[validating]), Some(1), "a handshake has no other");
    }
}

#[test]
fn copies_go_where_they_may() {
    let paths = [view(0).rtt(millis(5)).build(), view(1).build()];
    let of = |target| {
        let copies = [CopyDemand::new(target, ByteCount::new(500))];
        let demand = Demand::nothing().copies(&copies);
        assert_eq!(demand.bytes(), ByteCount::new(500));
        [
            "min-rtt",
            "round-robin",
            "weighted",
            "ecf",
            "blest",
            "backup",
        ]
        .map(|scheduler| choice(scheduler, &paths, &demand))
    };
    assert_eq!(of(PathChoice::Any), [Some(0); 6]);
    assert_eq!(of(PathChoice::Not(PathId::ZERO)), [Some(1); 6]);
    assert_eq!(of(PathChoice::On(PathId::new(1))), [Some(1); 6]);
    assert_eq!(of(PathChoice::On(PathId::new(9))), [None; 6]);
}

#[test]
fn the_backup_scheduler_changes_paths_only_on_failure() {
    let demand = new_data();
    let of = |paths: &[PathView]| choice("backup", paths, &demand);
    let (wifi, cellular) = (view(0).cost(0), view(1).rtt(millis(5)).cost(3).build());
    assert_eq!(of(&[wifi.build(), cellular]), Some(0));
    assert_eq!(
        of(&[full(wifi).build(), cellular]),
        None,
        "no spilling over"
    );
    assert_eq!(of(&[wifi.pto_count(1).build(), cellular]), Some(1));
    let silent = wifi.last_received(Some(NOW - millis(1_001)));
    assert_eq!(
        of(&[silent.build(), cellular]),
        Some(0),
        "nothing is in flight, so that no answer is due"
    );
    let waiting = silent.bytes_in_flight(ByteCount::new(1_200));
    assert_eq!(of(&[waiting.build(), cellular]), Some(1));
    // All fail: the cheapest is as good as any.
    let failing = view(1).pto_count(5).cost(3).build();
    assert_eq!(of(&[wifi.pto_count(2).build(), failing]), Some(0));
}

#[test]
fn names_and_parameters() {
    let names: Vec<_> = SchedulerCatalogue::standard()
        .names()
        .map(str::to_owned)
        .collect();
    assert_eq!(
        names,
        [
            "backup",
            "blest",
            "chorus",
            "chorus+",
            "ecf",
            "first-path",
            "min-rtt",
            "redundant",
            "round-robin",
            "weighted"
        ]
    );
    assert!(scheduler_by_name("first-path").unwrap().is_inert());
    for (specification, part) in [
        ("backup:max-pto=0", "from 1 to 10"),
        ("weighted:standby=never", "low, class or room"),
        ("ecf:beta=-1", "from 0 to 10"),
        ("min-rtt:x=1", "batch"),
        ("first-path:x=1", "none"),
        ("rap", "unknown scheduler `rap`; known are: backup"),
    ] {
        let error = scheduler_by_name(specification).unwrap_err().to_string();
        assert!(error.contains(part), "{specification}: {error}");
    }
    let factory = SchedulerCatalogue::standard()
        .get("min-rtt:batch=3000")
        .unwrap();
    let policies = Policies::default().with_scheduler(factory);
    let decision = policies
        .scheduler()
        .next(NOW, &[view(4).build()], &new_data());
    let expected = PathDecision::Path {
        id: PathId::new(4),
        max_bytes: ByteCount::new(3_000),
    };
    assert_eq!(decision, expected);
}

fn transfer(scheduler: &str, paths: impl IntoIterator<Item = ScriptedPath>) -> TransferReport {
    let report = Network::new(paths)
        .scheduler(scheduler_by_name(scheduler).unwrap())
        .transfer(ByteCount::new(2_000_000), Duration::from_secs(60));
    assert_eq!(report.invalid_decisions, 0, "{scheduler}");
    report
}

fn seconds(report: &TransferReport) -> f64 {
    report.completed_in.expect("complete").as_secs_f64()
}

#[test]
fn two_equal_paths_are_nearly_twice_as_fast_as_one() {
    let path = || ScriptedPath::new(mbps(10), millis(15));
    let alone = seconds(&transfer("first-path", [path()]));
    // 2 MB and 4 % of headers at 10 Mbit/s.
    assert!((1.66..1.72).contains(&alone), "{alone}");
    for scheduler in ["min-rtt", "round-robin", "weighted"] {
        let report = transfer(scheduler, [path(), path()]);
        let gain = alone / seconds(&report);
        assert!(gain > 1.9, "{scheduler}: {gain}");
        assert!((report.share(PathId::ZERO) - 0.5).abs() < 0.05);
    }
    let report = transfer("backup", [path(), path()]);
    assert!((report.share(PathId::ZERO) - 1.0).abs() < 1e-9);
}

#[test]
fn unequal_paths_add_up_by_weight_and_not_by_turns() {
    let paths = || {
        [
            ScriptedPath::new(mbps(2), millis(20)),
            ScriptedPath::new(mbps(18), millis(20)),
        ]
    };
    let weighted = transfer("weighted", paths());
    let alone = seconds(&transfer("first-path", [paths()[1].clone()]));
    assert!(seconds(&weighted) < alone, "{} {alone}", seconds(&weighted));
    let share = weighted.share(PathId::ZERO);
    assert!((0.05..0.2).contains(&share), "{share}");
}

#[test]
fn the_order_of_the_paths_does_not_matter() {
    let paths = [
        ScriptedPath::new(mbps(4), millis(60)),
        ScriptedPath::new(mbps(20), millis(10)),
    ];
    for scheduler in ["min-rtt", "round-robin", "weighted"] {
        let forth = seconds(&transfer(scheduler, paths.clone()));
        let back = seconds(&transfer(scheduler, paths.clone().into_iter().rev()));
        assert!(
            (forth / back - 1.0).abs() < 0.05,
            "{scheduler} {forth} {back}"
        );
    }
}

#[test]
fn a_failed_path_costs_two_probe_timeouts() {
    let dying = ScriptedPath::new(mbps(10), millis(10)).outage(millis(300)..millis(100_000));
    let other = ScriptedPath::new(mbps(10), millis(30)).cost(1);
    let run = |scheduler, reinjector| {
        Network::new([dying.clone(), other.clone()])
            .scheduler(scheduler_by_name(scheduler).unwrap())
            .reinjector(reinjector_by_name(reinjector).unwrap())
            .transfer(ByteCount::new(2_000_000), Duration::from_secs(60))
    };
    // 1.7 s without the outage; two probe timeouts of 20 ms and a little, and one more of the tail.
    for scheduler in ["min-rtt", "backup"] {
        let report = run(scheduler, "failover");
        let time = seconds(&report);
        assert!(time < 2.2, "{scheduler}: {time}");
        assert!(report.paths[0].probe_timeouts >= 2);
        assert!(report.replicas().get() <= 60_000, "what was in flight");
        assert_eq!(report.paths[0].replicas, ByteCount::ZERO);
        assert_eq!(report.paths[1].useful_replicas, report.replicas());
    }
    // Without copies each packet in flight waits for a probe timeout of its own, and those back off.
    let plain = run("backup", "arq");
    assert!(
        plain
            .completed_in
            .is_none_or(|time| time > Duration::from_secs(5))
    );
    assert!(run("first-path", "failover").completed_in.is_none());
}

#[test]
fn losses_are_repaired_on_any_path() {
    let lossy = ScriptedPath::new(mbps(10), millis(15)).lose_every(10);
    let clean = ScriptedPath::new(mbps(10), millis(15));
    for scheduler in ["min-rtt", "round-robin", "weighted"] {
        let report = transfer(scheduler, [lossy.clone(), clean.clone()]);
        assert!(report.completed_in.is_some());
        assert!(report.paths[0].dropped_packets > 50);
        assert_eq!(report.duplicate_bytes, ByteCount::ZERO, "{scheduler}");
        let again: ByteCount = report.paths.iter().map(|path| path.retransmitted).sum();
        assert_eq!(again.get(), report.paths[0].dropped_packets * 1_000);
    }
}
