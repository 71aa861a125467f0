//! Loss judges by themselves.

use std::time::Duration;

use swiftwater_congestion::RttView;
use swiftwater_policies::{LossJudgeCatalogue, Policies};
use swiftwater_quic::policy::{
    LossCandidate, LossJudge, LossVerdict, PolicyFactory, ReorderingThresholds, SpuriousLoss,
};
use swiftwater_units::{Instant, PacketNumber, PathId};

const RFC: ReorderingThresholds = ReorderingThresholds::RFC_9002;

fn judge(specification: &str) -> Box<dyn LossJudge> {
    let factory = LossJudgeCatalogue::standard().get(specification).unwrap();
    let policies = Policies::default().with_loss_judge(factory);
    policies.loss_judge(PathId::ZERO, RFC)
}

fn rtt() -> RttView {
    let rtt = Duration::from_millis(100);
    RttView {
        latest: rtt,
        smoothed: rtt,
        var: rtt / 4,
        min: rtt,
        min_at: Instant::ZERO,
        has_sample: true,
    }
}

fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// A packet `distance` behind the largest acknowledged one arrived after all.
fn spurious(judge: &mut dyn LossJudge, millis: u64, distance: u64) {
    let loss = SpuriousLoss {
        number: PacketNumber::new(7),
        distance,
        delay: Duration::from_millis(130),
    };
    judge.on_spurious(at(millis), &loss, &rtt());
}

#[test]
fn the_fixed_judge_is_the_rfc() {
    let mut judge = judge("fixed");
    spurious(judge.as_mut(), 0, 40);
    assert_eq!(judge.thresholds(), RFC);
    assert!(!judge.judges_packets());
    assert_eq!(judge.extra_probe_timeout(&rtt()), Duration::ZERO);
    let numbers = [3, 7].map(PacketNumber::new);
    let candidate = LossCandidate::new(PathId::ZERO, numbers[0], at(0), numbers[1]);
    assert_eq!(judge.judge(at(90), &candidate), LossVerdict::Lost);
}

#[test]
fn thresholds_grow_with_the_reordering_seen() {
    let mut judge = judge("adaptive");
    assert_eq!(judge.thresholds(), RFC, "none seen");
    spurious(judge.as_mut(), 0, 40);
    let grown = |packets, time_eighths| ReorderingThresholds {
        packets: Some(packets),
        time_eighths,
    };
    assert_eq!(judge.thresholds(), grown(41, 11));
    // Others of the same round trip say nothing new about time; smaller distances nothing new at all.
    spurious(judge.as_mut(), 50, 60);
    spurious(judge.as_mut(), 99, 5);
    assert_eq!(judge.thresholds(), grown(61, 11));
    for round in 1..10 {
        spurious(judge.as_mut(), 100 * round, 10_000);
    }
    assert_eq!(judge.thresholds(), grown(300, 17), "the bounds");
}

#[test]
fn reordering_that_ended_is_dropped_after_sixteen_episodes() {
    let mut judge = judge("adaptive");
    spurious(judge.as_mut(), 0, 40);
    for _ in 0..15 {
        judge.on_loss_episode(at(1_000));
    }
    assert_eq!(judge.thresholds().packets, Some(41));
    // Seen again: the count starts anew.
    spurious(judge.as_mut(), 2_000, 3);
    for _ in 0..15 {
        judge.on_loss_episode(at(3_000));
    }
    assert_eq!(judge.thresholds().packets, Some(41));
    judge.on_loss_episode(at(4_000));
    assert_eq!(judge.thresholds(), RFC);
}

#[test]
fn no_packet_threshold_stays_none() {
    let factory = LossJudgeCatalogue::standard()
        .get("adaptive:max-extra-eighths=0")
        .unwrap();
    let configured = ReorderingThresholds {
        packets: None,
        time_eighths: 12,
    };
    let mut judge = factory.loss_judge(PathId::ZERO, configured);
    spurious(judge.as_mut(), 0, 40);
    assert_eq!(judge.thresholds(), configured);
    let error = LossJudgeCatalogue::standard()
        .get("adaptive:persistence=0")
        .unwrap_err();
    assert!(error.to_string().contains("from 1 to 1000"), "{error}");
}
