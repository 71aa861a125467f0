//! The interface of re-injection: inputs of a policy, and the fate of requested copies.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use swiftwater_link::{LinkConfig, LossModel};
use swiftwater_quic::observe::{Observation, Observer, ObserverFactory, Purpose, SentFrame};
use swiftwater_quic::policy::{
    AckPolicy, Copied, DataRange, EveryOther, Hints, Occasion, OutstandingRange, PacketFate,
    PacketOutcome, PathChoice, PathView, PolicyFactory, Reinjection, Reinjector, Rejection,
    RejectionReason, Repair, RepairCause, Scheduler, SinglePath,
};
use swiftwater_quic::{ConnectionStats, RepairStats};
use swiftwater_sim::{Direction, Pair};
use swiftwater_units::{Bandwidth, Instant, PathId, Side, StreamId};

/// What a policy and an observer saw.
#[derive(Debug, Default)]
struct Seen {
    repairs: Vec<Repair>,
    outcomes: Vec<PacketOutcome>,
    packets: Vec<Vec<SentFrame>>,
    recovered: Vec<(DataRange, Copied, Duration)>,
    rejections: Vec<Rejection>,
}

type Shared = Arc<Mutex<Seen>>;

/// Requests `copies` of every retransmitted data range, all at once, at the first call.
#[derive(Debug)]
struct Eager {
    copies: u32,
    queue: BTreeMap<DataRange, u32>,
    seen: Shared,
}

impl Reinjector for Eager {
    fn on_outcomes(&mut self, _: Instant, outcomes: &[PacketOutcome], _: &PathView) {
        self.seen.lock().unwrap().outcomes.extend(outcomes);
    }

    fn on_repair(&mut self, _: Instant, event: &Repair) {
        match *event {
            Repair::Retransmitted { range, .. } => {
                self.queue.insert(range, self.copies);
            }
            Repair::Recovered { range, .. } | Repair::Abandoned { range } => {
                self.queue.remove(&range);
            }
            Repair::ReplicaSent { .. } | Repair::Split { .. } => {}
        }
        self.seen.lock().unwrap().repairs.push(*event);
    }

    fn reinject(
        &mut self,
        _: Instant,
        _: Occasion,
        _: &mut dyn Iterator<Item = OutstandingRange>,
        _: &[PathView],
        _: &Hints,
        out: &mut Vec<Reinjection>,
    ) {
        for (range, left) in &mut self.queue {
            // All copies at once: the connection must spread them over packets.
            out.extend((0..*left).map(|_| range.reinjection()));
            *left = 0;
        }
    }
}

#[derive(Debug)]
struct Factory {
    copies: u32,
    seen: Shared,
}

impl PolicyFactory for Factory {
    fn scheduler(&self) -> Box<dyn Scheduler> {
        Box::new(SinglePath)
    }

    fn reinjector(&self) -> Box<dyn Reinjector> {
        Box::new(Eager {
            copies: self.copies,
            queue: BTreeMap::new(),
            seen: Arc::clone(&self.seen),
        })
    }

    fn ack_policy(&self, threshold: u64) -> Box<dyn AckPolicy> {
        Box::new(EveryOther { threshold })
    }
}

struct Watch(Shared);

impl Observer for Watch {
    fn observe(&mut self, _: Instant, observation: &Observation<'_>) {
        let mut seen = self.0.lock().unwrap();
        match *observation {
            Observation::PacketSent { frames, .. } => seen.packets.push(frames.to_vec()),
            Observation::DataRecovered {
                range,
                by,
                recovery_latency,
                ..
            } => seen.recovered.push((range, by, recovery_latency)),
            _ => {}
        }
    }
}

#[derive(Debug)]
struct Watching(Shared);

impl ObserverFactory for Watching {
    fn observer(&self, side: Side) -> Option<Box<dyn Observer>> {
        side.is_server()
            .then(|| Box::new(Watch(Arc::clone(&self.0))) as Box<dyn Observer>)
    }
}

fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A pair whose server requests `copies` of data lost on a link that loses `loss`.
fn pair(copies: u32, loss: f64, seed: u64) -> (Pair, Shared) {
    let seen = Shared::default();
    let factory = Factory {
        copies,
        seen: Arc::clone(&seen),
    };
    let watching = Watching(Arc::clone(&seen));
    let back = LinkConfig::default()
        .delay(millis(20))
        .rate(Bandwidth::from_mbps(10));
    let lossy = back.clone().loss(LossModel::Bernoulli(loss));
    let mut pair = Pair::builder()
        .seed(seed)
        .links(back, lossy)
        .server_config(move |config| {
            config.policies = Arc::new(factory);
            config.observer = Some(Arc::new(watching));
        })
        .build()
        .unwrap();
    assert!(pair.connect());
    (pair, seen)
}

fn halves(range: DataRange, at: u32) -> [DataRange; 2] {
    let (offset, len) = (range.offset + u64::from(at), range.len - at);
    let second = DataRange {
        offset,
        len,
        ..range
    };
    [DataRange { len: at, ..range }, second]
}

fn repair(stats: &ConnectionStats) -> RepairStats {
    stats.repair
}

#[test]
fn a_lossy_transfer_with_copies_is_whole_and_its_accounts_close() {
    for seed in 1..=6 {
        let (mut pair, seen) = pair(2, 0.1, seed);
        let report = pair.transfer(600_000, Direction::ToClient);
        assert!(report.verified, "{report:?}");
        pair.advance(Duration::from_secs(2));
        let stats = repair(&pair.stats(Side::Server));
        assert!(stats.lost_data > 20, "{stats:?}");
        assert!(stats.replicas_sent > stats.lost_data, "{stats:?}");
        assert_eq!(stats.recovered_bytes, stats.lost_bytes);
        assert_eq!(
            stats.replicas_useful + stats.replicas_wasted,
            stats.replicas_sent
        );
        assert!(stats.replicas_useful > 0);
        assert_eq!(stats.new_bytes.get(), 600_000);
        let seen = seen.lock().unwrap();
        let replicas = seen
            .packets
            .iter()
            .flatten()
            .filter_map(|frame| match frame {
                SentFrame::Stream {
                    len,
                    purpose: Purpose::Replica,
                    ..
                } => Some(u64::from(*len)),
                _ => None,
            })
            .sum::<u64>();
        assert_eq!(replicas, stats.replica_bytes.get());
        // What one copy gained: latencies are those of data whose first retransmission was lost.
        for (_, by, latency) in &seen.recovered {
            let first = matches!(by, Copied::Original | Copied::Retransmission(1));
            assert_eq!(first, latency.is_zero(), "{by:?} {latency:?}");
        }
    }
}

#[test]
fn copies_of_the_same_bytes_never_share_a_packet() {
    let (mut pair, seen) = pair(3, 0.1, 7);
    pair.transfer(400_000, Direction::ToClient);
    let seen = seen.lock().unwrap();
    let mut repeated = 0;
    for frames in &seen.packets {
        let mut bytes: BTreeSet<(StreamId, u64)> = BTreeSet::new();
        for frame in frames {
            let SentFrame::Stream {
                id,
                offset,
                len,
                purpose,
                ..
            } = *frame
            else {
                continue;
            };
            repeated += u32::from(purpose == Purpose::Replica);
            for byte in offset..offset + u64::from(len) {
                assert!(bytes.insert((id, byte)), "twice in a packet: {frames:?}");
            }
        }
    }
    assert!(repeated > 20, "{repeated}");
}

#[test]
fn every_data_range_is_retransmitted_before_its_copies_and_recovered_once() {
    let (mut pair, seen) = pair(2, 0.15, 3);
    pair.transfer(400_000, Direction::ToClient);
    pair.advance(Duration::from_secs(2));
    let seen = seen.lock().unwrap();
    let mut open: BTreeMap<DataRange, u32> = BTreeMap::new();
    let mut recovered = 0;
    for event in &seen.repairs {
        match *event {
            Repair::Retransmitted {
                range,
                first_sent_at,
                lost_at,
                round,
                ..
            } => {
                assert!(first_sent_at < lost_at);
                if round == 1 {
                    assert!(open.insert(range, 0).is_none(), "{range:?}");
                } else {
                    assert!(open.contains_key(&range), "{range:?}");
                }
            }
            Repair::ReplicaSent { range } => *open.get_mut(&range).unwrap() += 1,
            Repair::Split { range, at } => {
                // One that was cut when it was first retransmitted wasn't open yet.
                if let Some(copies) = open.remove(&range) {
                    open.extend(halves(range, at).map(|half| (half, copies)));
                }
            }
            Repair::Recovered { range, .. } => {
                recovered += 1;
                // One that was lost but arrived before it was retransmitted was never open.
                open.remove(&range);
            }
            Repair::Abandoned { range } => panic!("{range:?}"),
        }
    }
    assert!(open.is_empty(), "{open:?}");
    assert!(recovered > 20);
}

#[test]
fn the_loss_of_an_older_copy_is_no_reason_to_retransmit() {
    // Every retransmission and its copy get lost together now and then; each time the data range must be
    // retransmitted once, not once per copy.
    let (mut pair, seen) = pair(1, 0.3, 5);
    let report = pair.transfer(1_000_000, Direction::ToClient);
    assert!(report.verified);
    pair.advance(Duration::from_secs(2));
    let seen = seen.lock().unwrap();
    let mut last: BTreeMap<DataRange, (u32, u32)> = BTreeMap::new();
    let mut late_rounds = 0;
    for event in &seen.repairs {
        match *event {
            Repair::Retransmitted {
                range,
                round,
                cause,
                ..
            } => {
                let (rounds, _) = last.get(&range).copied().unwrap_or_default();
                assert_eq!(round, rounds + 1);
                late_rounds += u32::from(round > 1 && cause == RepairCause::Loss);
                last.insert(range, (round, 0));
            }
            Repair::ReplicaSent { range } => last.entry(range).or_default().1 += 1,
            Repair::Split { range, at } => {
                let history = last.remove(&range).unwrap_or_default();
                for half in halves(range, at) {
                    last.insert(half, history);
                }
            }
            _ => {}
        }
    }
    assert!(late_rounds > 5, "{late_rounds}");
    let lost = seen
        .outcomes
        .iter()
        .filter(|outcome| outcome.fate == PacketFate::Lost && outcome.repeated)
        .count();
    // All lost copies together: every retransmission after the first stands for two of them.
    assert!(
        lost as u32 >= 2 * late_rounds - late_rounds / 2,
        "{lost} lost copies, {late_rounds} later rounds"
    );
}

#[test]
fn outcomes_come_in_order_and_once() {
    let (mut pair, seen) = pair(1, 0.1, 11);
    pair.transfer(300_000, Direction::ToClient);
    pair.advance(Duration::from_secs(1));
    let seen = seen.lock().unwrap();
    let mut first_fate = BTreeMap::new();
    for outcome in &seen.outcomes {
        match outcome.fate {
            PacketFate::Spurious => {
                let before = first_fate.get(&outcome.number);
                assert_eq!(before, Some(&PacketFate::Lost), "{outcome:?}");
            }
            fate => {
                let before = first_fate.insert(outcome.number, fate);
                assert_eq!(before, None, "{outcome:?}");
            }
        }
    }
    let stats = pair.stats(Side::Server);
    let lost = seen.outcomes.iter().filter(|o| o.fate == PacketFate::Lost);
    // The handshake may have lost packets, too; policies observe only 1-RTT packets.
    assert!(lost.count() as u64 <= stats.paths[0].lost_packets.get());
}

#[test]
fn nothing_is_known_of_repair_without_loss() {
    let (mut pair, seen) = pair(3, 0.0, 1);
    pair.transfer(300_000, Direction::ToClient);
    let stats = repair(&pair.stats(Side::Server));
    assert_eq!(
        stats,
        RepairStats {
            new_bytes: 300_000.into(),
            ..RepairStats::default()
        }
    );
    assert_eq!(seen.lock().unwrap().repairs, []);
}

#[test]
fn a_reset_stream_needs_no_repair() {
    let (mut pair, seen) = pair(2, 0.3, 2);
    let id = pair.server().open(swiftwater_units::Dir::Uni).unwrap();
    let data = vec![7; 40_000];
    let mut stream = pair.server().send_stream(id);
    assert_eq!(stream.write(&data).unwrap(), data.len());
    let watched = Arc::clone(&seen);
    let is_repaired = move |_: &mut Pair| {
        let seen = watched.lock().unwrap();
        matches!(seen.repairs.last(), Some(Repair::Retransmitted { .. }))
    };
    assert!(pair.run_until(is_repaired));
    pair.server().send_stream(id).reset(1).unwrap();
    pair.advance(Duration::from_secs(3));
    let seen = seen.lock().unwrap();
    let reset_at = seen
        .repairs
        .iter()
        .position(|event| matches!(event, Repair::Abandoned { .. }))
        .expect("something was under repair");
    let later = &seen.repairs[reset_at..];
    assert!(
        later
            .iter()
            .all(|event| matches!(event, Repair::Abandoned { .. })),
        "{later:?}"
    );
}

#[test]
fn a_closed_connection_repairs_nothing() {
    let (mut pair, seen) = pair(2, 0.3, 4);
    pair.start_transfer(200_000, Direction::ToClient);
    let watched = Arc::clone(&seen);
    let is_repaired = move |_: &mut Pair| {
        let seen = watched.lock().unwrap();
        matches!(seen.repairs.last(), Some(Repair::Retransmitted { .. }))
    };
    assert!(pair.run_until(is_repaired));
    let now = pair.now();
    pair.server().close(now, 0, b"");
    let mut open = BTreeSet::new();
    for event in &seen.lock().unwrap().repairs {
        match *event {
            Repair::Retransmitted { range, .. } => {
                open.insert((range.stream, range.offset));
            }
            Repair::Recovered { range, .. } | Repair::Abandoned { range } => {
                open.remove(&(range.stream, range.offset));
            }
            Repair::ReplicaSent { .. } | Repair::Split { .. } => {}
        }
    }
    assert!(open.is_empty(), "{open:?}");
    assert!(matches!(
        seen.lock().unwrap().repairs.last(),
        Some(Repair::Abandoned { .. })
    ));
    let stats = repair(&pair.stats(Side::Server));
    let judged = stats.replicas_useful + stats.replicas_wasted;
    assert_eq!(judged, stats.replicas_sent);
}

#[test]
fn the_same_seed_gives_the_same_repairs() {
    let run = || {
        let (mut pair, seen) = pair(2, 0.1, 9);
        pair.transfer(200_000, Direction::ToClient);
        let repairs = seen.lock().unwrap().repairs.clone();
        (repairs, pair.stats(Side::Server))
    };
    assert_eq!(run(), run());
}

/// Asks, once, for more copies than may wait, for copies on paths that there aren't, and for copies of
/// bytes that no stream has.
#[derive(Debug)]
struct Immoderate {
    asked: bool,
    seen: Shared,
}

impl Reinjector for Immoderate {
    fn on_rejected(&mut self, _: Instant, rejections: &[Rejection]) {
        self.seen.lock().unwrap().rejections.extend(rejections);
    }

    fn reinject(
        &mut self,
        _: Instant,
        _: Occasion,
        outstanding: &mut dyn Iterator<Item = OutstandingRange>,
        _: &[PathView],
        _: &Hints,
        out: &mut Vec<Reinjection>,
    ) {
        let Some(range) = outstanding.next().filter(|_| !self.asked) else {
            return;
        };
        self.asked = true;
        let copy = range.reinjection();
        out.push(copy.target(PathChoice::Not(range.path)));
        out.push(copy.target(PathChoice::On(PathId::new(7))));
        out.push(Reinjection::new(range.stream, u64::MAX, 1));
        out.extend((0..5_000).map(|_| copy));
    }
}

#[derive(Debug)]
struct ImmoderateFactory(Shared);

impl PolicyFactory for ImmoderateFactory {
    fn reinjector(&self) -> Box<dyn Reinjector> {
        Box::new(Immoderate {
            asked: false,
            seen: Arc::clone(&self.0),
        })
    }
}

#[test]
fn copies_that_cannot_be_sent_are_reported_back() {
    let seen = Shared::default();
    let factory = ImmoderateFactory(Arc::clone(&seen));
    let way = LinkConfig::default()
        .delay(millis(20))
        .rate(Bandwidth::from_mbps(10));
    let mut pair = Pair::builder()
        .links(way.clone(), way)
        .server_config(move |config| config.policies = Arc::new(factory))
        .build()
        .unwrap();
    assert!(pair.connect());
    let report = pair.transfer(200_000, Direction::ToClient);
    assert!(report.verified, "{report:?}");
    let rejections = std::mem::take(&mut seen.lock().unwrap().rejections);
    let count = |reason| {
        let of = |rejection: &&Rejection| rejection.reason == reason;
        rejections.iter().filter(of).count()
    };
    assert_eq!(count(RejectionReason::NoPath), 2);
    // One range was never there; of the others most were acknowledged while their copies waited.
    let is_gone = |rejection: &&Rejection| rejection.reason == RejectionReason::RangeGone;
    let gone = rejections.iter().filter(is_gone);
    let (never, acknowledged): (Vec<&Rejection>, Vec<&Rejection>) =
        gone.partition(|rejection| rejection.copy.offset == u64::MAX);
    assert_eq!(never.len(), 1);
    assert!(acknowledged.len() > 4_000, "{}", acknowledged.len());
    assert_eq!(count(RejectionReason::QueueFull), 5_000 - 4_096);
    let stats = pair.stats(Side::Server);
    // It is no fault of a policy that a range is acknowledged.
    let invalid = rejections.len() - acknowledged.len();
    assert_eq!(stats.invalid_decisions, invalid as u64);
}
