//! Re-injection policies made for QUIC, hosted by a session: their inputs, and the fate of requested
//! copies.

#![allow(
    clippy::struct_field_names,
    clippy::needless_pass_by_value,
    reason = "plain helpers of tests"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use swiftwater_link::{LinkConfig, LossModel};
use swiftwater_media::apps::{SessionReport, SessionSpec, simulate};
use swiftwater_media::protection::{Protector, SchemeTables};
use swiftwater_media::session::{Coding, SessionConfig};
use swiftwater_media::source::SourceSpec;
use swiftwater_quic::policy::{
    DataRange, Hints, Occasion, OutstandingRange, PacketOutcome, PathView, Reinjection, Reinjector,
    Repair,
};
use swiftwater_units::{Bandwidth, ByteCount, Instant, StreamId};

/// Recorded inputs of a policy.
#[derive(Debug, Default)]
struct Heard {
    new_bytes: u64,
    outcomes: u64,
    retransmitted: BTreeMap<DataRange, u32>,
    replicas: BTreeMap<DataRange, u32>,
    ended: BTreeSet<DataRange>,
    after_end: u64,
    occasions: BTreeMap<String, u64>,
}

/// Asks for `copies` copies of everything that is retransmitted, in off-mode or when `silence` has
/// passed.
#[derive(Debug)]
struct Copies {
    copies: u32,
    silence: Duration,
    queue: Vec<(DataRange, Instant, u32)>,
    heard: Arc<Mutex<Heard>>,
}

impl Reinjector for Copies {
    fn can_use_spare_room(&self) -> bool {
        !self.queue.is_empty()
    }

    fn on_outcomes(&mut self, _now: Instant, outcomes: &[PacketOutcome], _path: &PathView) {
        let mut heard = self.heard.lock().unwrap();
        assert!(outcomes.is_sorted_by_key(|outcome| outcome.number));
        heard.outcomes += outcomes.len() as u64;
    }

    fn on_repair(&mut self, now: Instant, event: &Repair) {
        let mut heard = self.heard.lock().unwrap();
        match *event {
            Repair::Retransmitted {
                range,
                first_sent_at,
                lost_at,
                round,
                ..
            } => {
                assert!(first_sent_at <= lost_at && lost_at <= now);
                heard.after_end += u64::from(heard.ended.contains(&range));
                let rounds = heard.retransmitted.entry(range).or_insert(0);
                *rounds += 1;
                assert_eq!(*rounds, round);
                if round == 1 && self.copies > 0 {
                    self.queue.push((range, now, self.copies));
                }
            }
            Repair::ReplicaSent { range } => {
                heard.after_end += u64::from(heard.ended.contains(&range));
                *heard.replicas.entry(range).or_insert(0) += 1;
            }
            Repair::Recovered { range, .. } | Repair::Abandoned { range } => {
                assert!(heard.ended.insert(range), "{range:?} ended twice");
                self.queue.retain(|entry| entry.0 != range);
            }
            Repair::Split { .. } => unreachable!("packets have one size"),
        }
    }

    fn on_new_data(&mut self, _now: Instant, size: ByteCount) {
        self.heard.lock().unwrap().new_bytes += size.get();
    }

    fn reinject(
        &mut self,
        now: Instant,
        occasion: Occasion,
        outstanding: &mut dyn Iterator<Item = OutstandingRange>,
        paths: &[PathView],
        _hints: &Hints,
        out: &mut Vec<Reinjection>,
    ) {
        assert_eq!(paths.len(), 1);
        assert!(outstanding.is_sorted_by_key(|range| range.packet));
        let mut heard = self.heard.lock().unwrap();
        *heard.occasions.entry(format!("{occasion:?}")).or_insert(0) += 1;
        let silence = self.silence;
        let due = |since: Instant| occasion == Occasion::SpareRoom || since + silence <= now;
        if !matches!(occasion, Occasion::SpareRoom | Occasion::Timer) {
            return;
        }
        for (range, since, left) in &mut self.queue {
            if due(*since) {
                out.push(range.reinjection());
                (*since, *left) = (now, *left - 1);
            }
        }
        self.queue.retain(|entry| entry.2 > 0);
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.queue.iter().map(|entry| entry.1 + self.silence).min()
    }
}

fn run(
    copies: u32,
    pacing: Bandwidth,
    config: SessionConfig,
) -> (SessionReport, Arc<Mutex<Heard>>) {
    let heard = Arc::new(Mutex::new(Heard::default()));
    let policy = Copies {
        copies,
        silence: Duration::from_millis(10),
        queue: Vec::new(),
        heard: Arc::clone(&heard),
    };
    let source: SourceSpec = "cbr:4mbit,fps=60".parse().unwrap();
    let protector = Protector::Reinject(Box::new(policy));
    let mut spec = SessionSpec::new(source.open(1).unwrap(), protector);
    spec.config = SessionConfig {
        pacing: Some(pacing),
        ..config
    };
    let delay = Duration::from_millis(15);
    let forward = LinkConfig::default()
        .rate(Bandwidth::from_mbps(12))
        .delay(delay)
        .loss(LossModel::Bernoulli(0.1));
    let backward = LinkConfig::default().delay(delay);
    let report = simulate(spec, forward, backward, Duration::from_secs(8), 17).unwrap();
    (report, heard)
}

fn reliable() -> SessionConfig {
    SessionConfig {
        deadline: None,
        ..SessionConfig::default()
    }
}

#[test]
fn no_data_range_gets_more_copies_than_asked_for() {
    for copies in 0..4 {
        let (report, heard) = run(copies, Bandwidth::from_mbps(10), reliable());
        let heard = heard.lock().unwrap();
        assert_eq!(heard.new_bytes, report.cost.source_bytes.get());
        assert!(heard.replicas.values().all(|&sent| sent <= copies));
        let sent: u64 = heard.replicas.values().map(|&sent| u64::from(sent)).sum();
        assert_eq!(sent, report.sender.replica_packets);
        assert_eq!(heard.after_end, 0);
        assert_eq!(heard.retransmitted.len() as u64, report.sender.lost_data);
        assert_eq!(report.completed, report.frames);
        assert_eq!(heard.ended.len(), heard.retransmitted.len());
        assert_eq!(
            heard.outcomes,
            report.sender.packets_sent + report.sender.spurious_losses
        );
    }
}

#[test]
fn copies_make_recovery_shorter_and_cost_what_they_cost() {
    let (plain, _) = run(0, Bandwidth::from_mbps(10), reliable());
    let (copied, _) = run(3, Bandwidth::from_mbps(10), reliable());
    assert!(plain.deterioration_rate() > 0.03);
    assert!(copied.deterioration_rate() < plain.deterioration_rate() / 3.0);
    assert!(copied.recovery_latency.mean < plain.recovery_latency.mean / 2);
    assert_eq!(plain.cost.redundancy_bytes, ByteCount::ZERO);
    let cost = copied.cost.redundancy_over_source().unwrap();
    assert!(cost > 0.15 && cost < 0.36, "{cost}");
}

#[test]
fn without_spare_room_the_timer_brings_copies() {
    // Almost no spare capacity besides the video: the sender nearly always has data to send.
    let (report, heard) = run(1, Bandwidth::from_kbps(4_700), SessionConfig::default());
    let heard = heard.lock().unwrap();
    assert!(heard.occasions.get("Timer").is_some_and(|&asked| asked > 0));
    assert!(heard.occasions.contains_key("Ack"));
    assert!(heard.occasions.contains_key("LossRetransmitted"));
    assert!(report.sender.replica_packets > 0);
    assert_eq!(heard.after_end, 0);
}

#[test]
fn the_pacer_holds_for_copies() {
    let (report, _) = run(3, Bandwidth::from_mbps(6), SessionConfig::default());
    let sent = report.cost.total().get();
    // Eight seconds and the drain at 6 Mbit/s.
    assert!(sent <= 6_000_000 / 8 * 9, "{sent}");
    assert!(report.sender.replica_packets > 0);
}

#[test]
fn bytes_make_no_difference() {
    let real = SessionConfig {
        coding: Coding::Real,
        ..SessionConfig::default()
    };
    let (real, _) = run(2, Bandwidth::from_mbps(10), real);
    let (counted, _) = run(2, Bandwidth::from_mbps(10), SessionConfig::default());
    assert_eq!(real, counted);
}

/// The policies of the catalogue, unchanged.
fn run_named(policy: &str, loss: f64) -> SessionReport {
    let source: SourceSpec = "cbr:4mbit,fps=60".parse().unwrap();
    let resolve = |name: &str| swiftwater_policies::reinjector_by_name(name).ok();
    let scheme = policy.parse().unwrap();
    let protector = Protector::new(&scheme, &SchemeTables::new(), &resolve).unwrap();
    let mut spec = SessionSpec::new(source.open(1).unwrap(), protector);
    spec.config.pacing = Some(Bandwidth::from_mbps(10));
    let delay = Duration::from_millis(15);
    let forward = LinkConfig::default()
        .rate(Bandwidth::from_mbps(12))
        .delay(delay)
        .loss(LossModel::Bernoulli(loss));
    let backward = LinkConfig::default().delay(delay);
    simulate(spec, forward, backward, Duration::from_secs(30), 5).unwrap()
}

#[test]
fn autorec_protects_frames_within_its_tolerances() {
    let plain = run_named("rtx", 0.05);
    for (policy, most) in [("autorec-rtc", 0.2), ("autorec-rtc-hc", 0.5)] {
        let report = run_named(policy, 0.05);
        let cost = report.cost.redundancy_over_source().unwrap();
        assert!(cost > 0.05 && cost < most + 0.02, "{policy}: {cost}");
        assert!(report.dmr() <= plain.dmr(), "{policy}");
        assert!(
            report.deterioration_rate() < plain.deterioration_rate() / 2.0,
            "{policy}"
        );
    }
    let clean = run_named("autorec-rtc-hc", 0.0);
    assert_eq!(clean.sender.replica_packets, 0);
}

/// Always requests a call and never a copy.
#[derive(Debug)]
struct Undecided(Arc<Mutex<u64>>);

impl Reinjector for Undecided {
    fn reinject(
        &mut self,
        _now: Instant,
        _occasion: Occasion,
        _outstanding: &mut dyn Iterator<Item = OutstandingRange>,
        _paths: &[PathView],
        _hints: &Hints,
        _out: &mut Vec<Reinjection>,
    ) {
        *self.0.lock().unwrap() += 1;
    }

    fn next_deadline(&self) -> Option<Instant> {
        Some(Instant::ZERO)
    }
}

/// Requests a copy of everything in flight, and of nonexistent data, at every call.
#[derive(Debug)]
struct Greedy;

impl Reinjector for Greedy {
    fn reinject(
        &mut self,
        _now: Instant,
        _occasion: Occasion,
        outstanding: &mut dyn Iterator<Item = OutstandingRange>,
        _paths: &[PathView],
        _hints: &Hints,
        out: &mut Vec<Reinjection>,
    ) {
        out.extend(outstanding.map(|range| Reinjection::new(range.stream, range.offset, u32::MAX)));
        for wire in [0, 3, u64::MAX] {
            out.push(Reinjection::new(
                StreamId::from_wire(wire),
                u64::MAX - 1,
                u32::MAX,
            ));
        }
    }
}

#[test]
fn policies_that_misbehave_do_not_stop_time_nor_pass_the_pacer() {
    let asked = Arc::new(Mutex::new(0));
    let policies: [Box<dyn Reinjector>; 2] =
        [Box::new(Undecided(Arc::clone(&asked))), Box::new(Greedy)];
    for (policy, pacing) in policies.into_iter().zip([10, 30]) {
        let source: SourceSpec = "cbr:4mbit,fps=60".parse().unwrap();
        let mut spec = SessionSpec::new(source.open(1).unwrap(), Protector::Reinject(policy));
        spec.config.pacing = Some(Bandwidth::from_mbps(pacing));
        let link = || LinkConfig::default().delay(Duration::from_millis(5));
        let forward = link().loss(LossModel::Bernoulli(0.05));
        let report = simulate(spec, forward, link(), Duration::from_secs(1), 3).unwrap();
        assert_eq!(report.frames, 60);
        // A greedy policy delays the video, whose packets are sent after its copies; it can't send
        // faster than the pacer, for one and a half seconds of run and drain.
        let most = pacing * 1_000_000 / 8 * 17 / 10;
        assert!(report.cost.total().get() < most);
    }
    assert!(*asked.lock().unwrap() > 0);
}
