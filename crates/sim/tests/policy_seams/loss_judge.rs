//! Loss judges: which packets count as lost, and what the connection makes of it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use swiftwater_congestion::RttView;
use swiftwater_link::{LinkConfig, LossModel, Reorder, ReorderBy};
use swiftwater_policies::LossJudgeFactory;
use swiftwater_policies::loss_judges::AdaptiveReorderingConfig;
use swiftwater_quic::policy::{
    LossCandidate, LossJudge, LossVerdict, PolicyFactory, ReorderingThresholds, RttSample,
    SpuriousLoss,
};
use swiftwater_quic::{ConnectionStats, PathStats};
use swiftwater_sim::{Direction, Pair};
use swiftwater_units::{Bandwidth, Instant, PathId, Side};

/// Makes a judge from the configured thresholds.
type Make = Arc<dyn Fn(ReorderingThresholds) -> Box<dyn LossJudge> + Send + Sync>;

struct Judging(Make);

impl std::fmt::Debug for Judging {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Judging")
    }
}

impl PolicyFactory for Judging {
    fn loss_judge(&self, _: PathId, configured: ReorderingThresholds) -> Box<dyn LossJudge> {
        (self.0)(configured)
    }
}

/// A download under a judge of the server; `None` for the default one.
fn download(link: LinkConfig, seed: u64, bytes: u64, judge: Option<Make>) -> Pair {
    let mut pair = Pair::builder()
        .seed(seed)
        .links(way(), link)
        .time_limit(Duration::from_secs(300))
        .server_config(move |config| {
            if let Some(make) = judge {
                config.policies = Arc::new(Judging(make));
            }
        })
        .build()
        .unwrap();
    assert!(pair.connect());
    let report = pair.transfer(bytes, Direction::ToClient);
    assert!(report.verified, "{report:?}");
    pair.advance(Duration::from_secs(1));
    pair
}

fn way() -> LinkConfig {
    LinkConfig::default()
        .delay(Duration::from_millis(20))
        .rate(Bandwidth::from_mbps(20))
}

/// Every fiftieth packet arrives 10 ms late.
fn reordering() -> LinkConfig {
    way().reorder(Reorder {
        probability: 0.02,
        by: ReorderBy::Delay(Duration::from_millis(10)),
    })
}

fn server_path(pair: &Pair) -> PathStats {
    pair.stats(Side::Server).paths[0].clone()
}

/// Thresholds that grow with the reordering seen, after RACK (RFC 8985, section 6.2).
#[derive(Debug)]
struct Growing(ReorderingThresholds);

impl LossJudge for Growing {
    fn thresholds(&self) -> ReorderingThresholds {
        self.0
    }

    fn on_spurious(&mut self, _: Instant, loss: &SpuriousLoss, _: &RttView) {
        if loss.distance > 0 {
            self.0.packets = self.0.packets.map(|packets| packets.max(loss.distance + 1));
        }
        self.0.time_eighths = (self.0.time_eighths + 2).min(17);
    }
}

#[test]
fn thresholds_that_follow_reordering_declare_fewer_spurious_losses() {
    for seed in 1..=3 {
        let fixed = server_path(&download(reordering(), seed, 3_000_000, None));
        let before = fixed.spurious_losses.get();
        assert!(before >= 20, "{before}");
        let growing: Make = Arc::new(|configured| Box::new(Growing(configured)));
        let adaptive: Make = Arc::new(|configured| {
            AdaptiveReorderingConfig::default().loss_judge(PathId::ZERO, configured)
        });
        for judge in [growing, adaptive] {
            let path = server_path(&download(reordering(), seed, 3_000_000, Some(judge)));
            let after = path.spurious_losses.get();
            assert!(after * 2 < before, "{after} instead of {before}");
        }
    }
}

/// The configured thresholds, but as a judge that the connection has to ask.
#[derive(Debug)]
struct Asked(ReorderingThresholds);

impl LossJudge for Asked {
    fn thresholds(&self) -> ReorderingThresholds {
        self.0
    }

    fn judges_packets(&self) -> bool {
        true
    }
}

#[test]
fn a_judge_that_judges_as_the_rfc_changes_nothing() {
    for seed in 1..=3 {
        let link = || reordering().loss(LossModel::Bernoulli(0.02));
        let totals = |pair: &Pair| -> ConnectionStats { pair.stats(Side::Server) };
        let default = download(link(), seed, 2_000_000, None);
        let asked: Make = Arc::new(|configured| Box::new(Asked(configured)));
        let asked = download(link(), seed, 2_000_000, Some(asked));
        assert!(server_path(&default).lost_packets.get() > 20);
        assert_eq!(totals(&default), totals(&asked));
        assert_eq!(default.now(), asked.now());
    }
}

/// Lets each packet wait for `by` longer, and records its calls.
#[derive(Debug)]
struct Waiting {
    by: Duration,
    thresholds: ReorderingThresholds,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    candidates: u64,
    spurious: u64,
    episodes: u64,
}

impl LossJudge for Waiting {
    fn thresholds(&self) -> ReorderingThresholds {
        self.thresholds
    }

    fn judges_packets(&self) -> bool {
        true
    }

    fn judge(&mut self, now: Instant, candidate: &LossCandidate) -> LossVerdict {
        self.seen.lock().unwrap().candidates += 1;
        assert!(candidate.number < candidate.largest_acked, "{candidate:?}");
        let until = candidate.sent_at + self.by;
        if until > now {
            LossVerdict::NotYet(until)
        } else {
            LossVerdict::Lost
        }
    }

    fn on_spurious(&mut self, _: Instant, loss: &SpuriousLoss, _: &RttView) {
        assert!(loss.delay >= Duration::from_millis(40), "{loss:?}");
        self.seen.lock().unwrap().spurious += 1;
    }

    fn on_loss_episode(&mut self, _: Instant) {
        self.seen.lock().unwrap().episodes += 1;
    }
}

fn waiting(by: Duration) -> (Make, Arc<Mutex<Seen>>) {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let shared = Arc::clone(&seen);
    let make: Make = Arc::new(move |thresholds| {
        Box::new(Waiting {
            by,
            thresholds,
            seen: Arc::clone(&shared),
        })
    });
    (make, seen)
}

#[test]
fn a_packet_that_waits_for_its_late_acknowledgement_is_not_lost() {
    let (none, seen) = waiting(Duration::ZERO);
    let path = server_path(&download(reordering(), 1, 2_000_000, Some(none)));
    let spurious = path.spurious_losses.get();
    assert!(spurious > 10, "{spurious}");
    {
        let seen = seen.lock().unwrap();
        assert_eq!(seen.spurious, spurious);
        assert_eq!(seen.episodes, path.congestion_events);
        assert!(seen.candidates >= path.lost_packets.get());
    }
    // The round trip without a queue is 40 ms; the queue of a full window adds its own delay.
    let (long, seen) = waiting(Duration::from_secs(1));
    let path = server_path(&download(reordering(), 1, 2_000_000, Some(long)));
    assert_eq!(path.spurious_losses.get(), 0, "{path}");
    assert!(seen.lock().unwrap().candidates > 10);
}

#[test]
fn a_judge_that_never_gives_a_packet_up_delays_repair_but_does_not_prevent_it() {
    let lossy = || way().loss(LossModel::Bernoulli(0.05));
    let (never, seen) = waiting(Duration::from_secs(3_600));
    let pair = download(lossy(), 5, 300_000, Some(never));
    assert!(seen.lock().unwrap().candidates > 5);
    let stubborn = server_path(&pair);
    assert!(stubborn.lost_packets.get() > 5, "{stubborn}");
}

/// An element on the path reacts to congestion: no loss is a sign of it here.
#[derive(Debug)]
struct Upstream(ReorderingThresholds);

impl LossJudge for Upstream {
    fn thresholds(&self) -> ReorderingThresholds {
        self.0
    }

    fn judges_packets(&self) -> bool {
        true
    }

    fn judge(&mut self, _: Instant, _: &LossCandidate) -> LossVerdict {
        LossVerdict::AbandonedUpstream
    }
}

#[test]
fn what_an_element_on_the_path_gave_up_is_repaired_without_a_sign_of_congestion() {
    let lossy = || way().loss(LossModel::Bernoulli(0.02));
    let default = download(lossy(), 2, 1_000_000, None);
    let upstream: Make = Arc::new(|configured| Box::new(Upstream(configured)));
    let upstream = download(lossy(), 2, 1_000_000, Some(upstream));
    assert!(server_path(&default).congestion_events > 3);
    let path = server_path(&upstream);
    assert_eq!(path.congestion_events, 0, "{path}");
    assert!(path.retransmitted.get() > 5_000, "{path}");
    assert!(path.cwnd > server_path(&default).cwnd);
}

/// Refuses all samples.
#[derive(Debug)]
struct Refusing(ReorderingThresholds);

impl LossJudge for Refusing {
    fn thresholds(&self) -> ReorderingThresholds {
        self.0
    }

    fn takes_rtt_sample(&mut self, _: Instant, sample: &RttSample) -> bool {
        assert!(sample.latest >= Duration::from_millis(40), "{sample:?}");
        false
    }
}

#[test]
fn a_judge_refuses_samples_of_the_round_trip_time() {
    let refusing: Make = Arc::new(|configured| Box::new(Refusing(configured)));
    let mean = |judge| server_path(&download(way(), 1, 2_000_000, judge)).mean_rtt;
    let (taken, refused) = (mean(None), mean(Some(refusing)));
    // The window fills the queue; the samples of the handshake don't show it.
    assert!(refused < Duration::from_millis(45), "{refused:?}");
    assert!(taken > refused * 3 / 2, "{taken:?} {refused:?}");
}

/// Makes the probe timeout 400 ms longer.
#[derive(Debug)]
struct Late(ReorderingThresholds);

impl LossJudge for Late {
    fn thresholds(&self) -> ReorderingThresholds {
        self.0
    }

    fn extra_probe_timeout(&self, _: &RttView) -> Duration {
        Duration::from_millis(400)
    }
}

#[test]
fn a_judge_lengthens_the_probe_timeout() {
    let late: Make = Arc::new(|configured| Box::new(Late(configured)));
    let repaired_after = |judge| {
        let mut pair = download(way(), 1, 100_000, judge);
        let start = pair.now();
        // Nothing follows the lost packet: only a probe repairs it.
        pair.drop_next(Direction::ToClient);
        assert!(pair.transfer(500, Direction::ToClient).verified);
        pair.now() - start
    };
    let (usual, late) = (repaired_after(None), repaired_after(Some(late)));
    let longer = late.saturating_sub(usual);
    let expected = Duration::from_millis(400);
    assert!(
        longer.abs_diff(expected) < Duration::from_millis(20),
        "{usual:?} {late:?}"
    );
}
