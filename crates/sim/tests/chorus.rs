//! Chorus over the real stack: responses of known size on two paths, in virtual time.

use std::sync::Arc;
use std::time::Duration;

use swiftwater_link::{Buffer, LinkConfig, Trace, TraceSample};
use swiftwater_policies::schedulers::MinRttConfig;
use swiftwater_policies::{FeedbackFactory, Policies, ReinjectorCatalogue, SchedulerCatalogue};
use swiftwater_quic::TransportConfig;
use swiftwater_quic::policy::{
    ChunkExpectation, FeedbackPolicy, Hints, OutgoingFeedback, PathShares, PathView, QoeSignal,
    ReceivedFeedback, ResponseStart,
};
use swiftwater_sim::{Attachment, Direction, Pair};
use swiftwater_units::{Bandwidth, ByteCount, Dir, Instant, PathId, Side, StreamId};

use crate::support::paths::{SECOND, builder, has_opened, kill, sent_on, with_two_paths};
use crate::support::{SIDES, link, millis, secs};

/// The player: tells when it expects the next chunk.
#[derive(Clone, Copy, Debug, Default)]
struct Player {
    told: Option<u64>,
}

impl FeedbackPolicy for Player {
    fn poll(&mut self, _: Instant, _: &[PathView], hints: &Hints, out: &mut Vec<OutgoingFeedback>) {
        let Some(expectation) = hints.expectation else {
            return;
        };
        if self.told.replace(expectation.chunk) != Some(expectation.chunk) {
            let signal = QoeSignal::Expectation(expectation);
            out.push(OutgoingFeedback {
                kind: signal.kind(),
                payload: signal.encode(64).unwrap(),
                ack_eliciting: true,
                urgent: true,
            });
        }
    }

    fn on_feedback(&mut self, _: Instant, _: &ReceivedFeedback) {}
}

impl FeedbackFactory for Player {
    fn feedback(&self) -> Box<dyn FeedbackPolicy> {
        Box::new(*self)
    }
}

/// A player and a server that fetches nothing by itself: each response begins when the test says so.
struct World {
    pair: Pair,
    second: Attachment,
    responses: u64,
}

fn chorus() -> Policies {
    Policies::chorus()
}

/// Chorus with another scheduler and re-injector.
fn with(scheduler: &str, reinjector: &str) -> Policies {
    chorus()
        .with_scheduler(SchedulerCatalogue::standard().get(scheduler).unwrap())
        .with_reinjector(ReinjectorCatalogue::standard().get(reinjector).unwrap())
}

impl World {
    fn new(server: Policies, cc: &str, links: [LinkConfig; 2]) -> Self {
        Self::accepting(server, cc, links, 64)
    }

    /// The player accepts feedback of this size, and sends none if that is 0.
    fn accepting(server: Policies, cc: &str, links: [LinkConfig; 2], size: u8) -> Self {
        let [first, second] = links;
        let cc = cc.to_owned();
        let client = Policies::default()
            .with_scheduler(Arc::new(MinRttConfig::default()))
            .with_feedback(Arc::new(Player::default()));
        let builder = builder(first)
            .both_configs(|config: &mut TransportConfig| {
                config.controller = swiftwater_congestion::by_name(&cc).unwrap();
                config.max_feedback_size = size;
            })
            .client_config(|config| config.policies = Arc::new(client))
            .server_config(|config| config.policies = Arc::new(server));
        let (pair, second) = with_two_paths(builder, second);
        assert!(
            SIDES
                .into_iter()
                .all(|side| has_opened(&pair, side, SECOND))
        );
        Self {
            pair,
            second,
            responses: 0,
        }
    }

    /// The request for a chunk that is expected in this time arrives, and its response of `bytes` starts; it is
    /// announced as of `announced` bytes.
    fn start(
        &mut self,
        bytes: u64,
        announced: u64,
        expected: Duration,
    ) -> swiftwater_sim::TransferId {
        let nth = self.responses;
        self.responses += 1;
        let expectation = ChunkExpectation {
            chunk: nth + 1,
            expected_time: expected,
        };
        let hints = Hints {
            expectation: Some(expectation),
            ..Hints::default()
        };
        let now = self.pair.now();
        self.pair.client().update_hints(now, |all| *all = hints);
        self.pair.advance(millis(60));
        let response = ResponseStart {
            stream: StreamId::new(Side::Server, Dir::Uni, nth),
            bytes: ByteCount::new(announced),
            requested_at: self.pair.now(),
        };
        let hints = Hints {
            response: Some(response),
            ..Hints::default()
        };
        let now = self.pair.now();
        self.pair.server().update_hints(now, |all| *all = hints);
        self.pair.start_transfer(bytes, Direction::ToClient)
    }

    /// One response; the time from its start to its end.
    fn fetch(&mut self, bytes: u64, expected: Duration) -> Duration {
        let id = self.start(bytes, bytes, expected);
        assert!(self.pair.finish_transfers());
        let report = self.pair.transfer_report(id);
        assert!(report.verified);
        report.finish - report.start
    }

    /// The mean time of `count` responses, one after the other with 300 ms between them, after three others.
    fn mean(&mut self, count: u32, bytes: u64, expected: Duration) -> f64 {
        for _ in 0..3 {
            self.fetch(bytes, expected);
        }
        let mut sum = Duration::ZERO;
        for _ in 0..count {
            self.pair.advance(millis(300));
            sum += self.fetch(bytes, expected);
        }
        assert_eq!(self.pair.stats(Side::Server).invalid_decisions, 0);
        sum.as_secs_f64() / f64::from(count)
    }

    /// The newest message about the paths that the player has.
    fn shares(&mut self) -> Option<PathShares> {
        let mut newest = None;
        while let Some(message) = self.pair.client().recv_feedback() {
            match QoeSignal::decode(message.kind, &message.payload) {
                Some(QoeSignal::Shares(shares)) => newest = Some(shares),
                other => panic!("{other:?}"),
            }
        }
        newest
    }

    /// Bytes of copies that the server sent, over all paths.
    fn copies(&self) -> u64 {
        let stats = self.pair.stats(Side::Server);
        stats.paths.iter().map(|path| path.copies.get()).sum()
    }
}

#[test]
fn shares_follow_the_bandwidths_of_the_paths() {
    for cc in ["cubic", "bbr3"] {
        let mut world = World::new(chorus(), cc, [link(30, 40), link(10, 10)]);
        for _ in 0..4 {
            world.fetch(4_000_000, secs(2));
        }
        let before = [PathId::ZERO, SECOND].map(|id| sent_on(&world.pair, Side::Server, id));
        world.fetch(4_000_000, secs(2));
        let after = [PathId::ZERO, SECOND].map(|id| sent_on(&world.pair, Side::Server, id));
        let part = (after[0] - before[0]) as f64;
        let part = part / (part + (after[1] - before[1]) as f64);
        assert!((0.68..0.82).contains(&part), "{cc}: {part:.2} of the bytes");
        let shares = world.shares().unwrap();
        assert_eq!(shares.chunk, 5);
        assert_eq!(shares.paths[0].path, PathId::ZERO);
        let share = shares.paths[0].share;
        assert!((0.68..0.82).contains(&share), "{cc}: share {share:.2}");
        let rate = shares.paths[0].rate.as_bps() as f64 / 1e6;
        assert!((24.0..34.0).contains(&rate), "{cc}: {rate:.1} Mbit/s");
    }
}

/// A link with a buffer of three bandwidth-delay products.
fn path(mbps: u64, delay: u64) -> LinkConfig {
    link(mbps, delay)
        .buffer(Buffer::Bdp(3.0))
        .bdp_rtt(millis(2 * delay))
}

/// Times of responses with Chorus against those with `min-rtt`, both without copies and with them, on stable paths. Shares by
/// bandwidth alone are too large for a path that is much longer than the other.
#[test]
fn responses_are_not_slower_than_with_min_rtt_on_stable_paths() {
    let pairs = [
        ([path(20, 10), path(20, 10)], 2_000_000, 1.05),
        ([path(30, 40), path(10, 10)], 2_000_000, 1.05),
        ([path(30, 10), path(10, 40)], 2_000_000, 1.05),
        ([path(30, 15), path(5, 100)], 1_000_000, 1.2),
    ];
    for cc in ["cubic", "bbr3"] {
        for (links, bytes, most) in &pairs {
            let time = |policies| World::new(policies, cc, links.clone()).mean(6, *bytes, secs(1));
            let plain = time(with("min-rtt", "failover"));
            let divided = time(with("chorus", "failover"));
            let whole = time(chorus());
            for time in [divided, whole] {
                assert!(time <= most * plain, "{cc}: {time:.3} s, {plain:.3} s");
            }
        }
    }
}

#[test]
fn copies_are_made_only_of_responses_that_come_later_than_expected() {
    let copies = |server: Policies, expected| {
        let mut world = World::new(server, "cubic", [link(20, 10), link(20, 100)]);
        world.mean(6, 500_000, expected);
        world.copies()
    };
    assert_eq!(copies(chorus(), secs(10)), 0);
    let late = copies(chorus(), millis(50));
    assert!(late > 50_000, "{late}");
    let unlimited = copies(with("chorus", "chorus:expected-time=off"), secs(10));
    assert!(unlimited > 50_000, "{unlimited}");
}

#[test]
fn a_path_that_is_cut_in_the_middle_of_a_response_does_not_stop_it() {
    for cc in ["cubic", "bbr3"] {
        let mut world = World::new(chorus(), cc, [link(20, 20), link(20, 10)]);
        world.fetch(2_000_000, secs(1));
        let id = world.start(4_000_000, 4_000_000, secs(2));
        world.pair.advance(millis(300));
        let second = world.second;
        kill(&mut world.pair, second);
        assert!(world.pair.finish_transfers());
        let report = world.pair.transfer_report(id);
        let time = report.finish - report.start;
        // The rest alone takes 1.2 s on the other path.
        assert!(report.verified && time < millis(2_300), "{cc}: {time:?}");
        // Later ones don't wait for it either.
        let next = world.fetch(1_000_000, secs(1));
        assert!(next < millis(700), "{cc}: {next:?}");
    }
}

#[test]
fn a_peer_without_feedback_is_served_as_fast() {
    let links = [link(30, 10), link(10, 40)];
    let mut with_feedback = World::new(chorus(), "cubic", links.clone());
    let mut without = World::accepting(chorus(), "cubic", links, 0);
    let slow = with_feedback.mean(4, 1_000_000, secs(5));
    // No expected time: the end of each response is copied.
    let fast = without.mean(4, 1_000_000, secs(5));
    assert!(fast <= 1.1 * slow, "{fast:.3} s, {slow:.3} s");
    assert!(without.shares().is_none());
    assert!(without.copies() > 0);
}

#[test]
fn a_wrong_size_does_no_more_than_cost_time() {
    let links = [link(20, 10), link(20, 40)];
    for announced in [0, 1_000, 3_000_000, u64::MAX] {
        let mut world = World::new(chorus(), "cubic", links.clone());
        for _ in 0..3 {
            let id = world.start(1_000_000, announced, secs(1));
            assert!(world.pair.finish_transfers());
            let report = world.pair.transfer_report(id);
            let time = report.finish - report.start;
            assert!(
                report.verified && time < millis(900),
                "{announced}: {time:?}"
            );
        }
        assert_eq!(world.pair.stats(Side::Server).invalid_decisions, 0);
    }
}

/// When the bandwidth of [`falling`] falls.
const FALLS: Duration = Duration::from_secs(4);

/// 20 Mbit/s at first, then 5.
fn falling() -> Trace {
    let sample = |at, mbps| TraceSample {
        at,
        rate: Some(Bandwidth::from_mbps(mbps)),
        rtt: None,
        loss: None,
    };
    Trace::from_samples(
        &[sample(Duration::ZERO, 20), sample(FALLS, 5)],
        Some(secs(100)),
    )
    .unwrap()
}

/// The bandwidth of a path falls to a quarter while a response is sent.
#[test]
fn the_division_is_corrected_when_a_path_becomes_slow() {
    let time = |scheduler: &str| {
        let slower = link(20, 20).rate(falling());
        let policies = with(scheduler, "failover");
        let mut world = World::new(policies, "cubic", [link(20, 20), slower]);
        world.fetch(2_000_000, secs(1));
        let start = Instant::ZERO + FALLS - millis(260);
        let wait = start - world.pair.now();
        world.pair.advance(wait);
        let id = world.start(4_000_000, 4_000_000, secs(2));
        assert!(world.pair.finish_transfers());
        let report = world.pair.transfer_report(id);
        assert!(report.verified);
        (report.finish - report.start).as_secs_f64()
    };
    let (corrected, fixed) = (time("chorus"), time("chorus:reschedule=off"));
    assert!(corrected < 0.95 * fixed, "{corrected:.3} s, {fixed:.3} s");
}

/// `chorus+` beside the better path alone, and the share of its copies, on stable and on varying paths.
#[test]
fn the_variant_is_faster_than_the_better_path_alone_within_its_budget() {
    let lte = |seed, delay| {
        let varying = link(20, delay).rate(Trace::synthetic_lte(seed, secs(60)));
        varying.buffer(Buffer::Unlimited)
    };
    let pairs = [
        [path(30, 10), path(10, 40)],
        [path(30, 15), path(5, 100)],
        [lte(13, 15), lte(15, 30)],
    ];
    for cc in ["cubic", "bbr3"] {
        for links in &pairs {
            let mut single = World::new(with("first-path", "arq"), cc, links.clone());
            let single = single.mean(20, 1_000_000, millis(200));
            let mut both = World::new(Policies::chorus_plus(), cc, links.clone());
            let time = both.mean(20, 1_000_000, millis(200));
            assert!(time < single, "{cc}: {time:.3} s, {single:.3} s");
            let budget = 0.016 * 23.0 * 1e6;
            let copies = both.copies() as f64;
            assert!(copies < budget, "{cc}: {copies}");
        }
    }
}

/// Between responses hardly anything arrives, and at the end of one only on the slower path: a path that is quiet then works,
/// and acknowledgements do not take a detour that lets the peer's probe timeout expire.
#[test]
fn quiet_paths_hardly_cause_probe_timeouts() {
    for scheduler in ["min-rtt", "weighted", "chorus+"] {
        let links = [path(30, 15), path(5, 100)];
        let mut world = World::new(with(scheduler, "arq"), "cubic", links);
        world.mean(20, 100_000, millis(200));
        let stats = world.pair.stats(Side::Server);
        let timeouts: u64 = stats.paths.iter().map(|path| path.pto_count).sum();
        assert!(timeouts <= 2, "{scheduler}: {timeouts} of 23 responses");
    }
}
