//! Random loss: rates, bursts, and its position after the queue.

use std::time::Duration;

use swiftwater_link::{DropReason, Link, LinkConfig, LossModel, Packet, Trace};
use swiftwater_units::{Bandwidth, Instant};

/// Which of `count` packets are lost.
fn losses(config: LinkConfig, seed: u64, count: usize) -> Vec<bool> {
    let mut link = Link::new(config, seed, Instant::ZERO).unwrap();
    let lost: Vec<_> = (0..count)
        .map(|_| {
            let dropped = link.enqueue(Instant::ZERO, Packet::new(vec![0]));
            link.poll(Instant::ZERO);
            dropped.is_some_and(|dropped| dropped.reason == DropReason::Random)
        })
        .collect();
    let counted = link.counters().dropped_random.packets.get();
    assert_eq!(counted, lost.iter().filter(|lost| **lost).count() as u64);
    lost
}

fn share(lost: &[bool]) -> f64 {
    lost.iter().filter(|lost| **lost).count() as f64 / lost.len() as f64
}

/// The mean length of runs of losses.
fn mean_burst(lost: &[bool]) -> f64 {
    let bursts = lost.chunk_by(|a, b| a == b).filter(|run| run[0]);
    let (count, total) = bursts.fold((0, 0), |(count, total), run| (count + 1, total + run.len()));
    f64::from(total as u32) / f64::from(count)
}

#[test]
fn independent_losses_have_their_rate() {
    let count = 200_000;
    for p in [0.001, 0.02, 0.3] {
        let lost = losses(
            LinkConfig::default().loss(LossModel::Bernoulli(p)),
            11,
            count,
        );
        // Four standard deviations.
        let bound = 4.0 * (p * (1.0 - p) / count as f64).sqrt();
        assert!((share(&lost) - p).abs() < bound, "{p}: {}", share(&lost));
        let burst = 1.0 / (1.0 - p);
        assert!(
            (mean_burst(&lost) - burst).abs() < 0.03 * burst,
            "{p}: {}",
            mean_burst(&lost)
        );
    }
}

#[test]
fn certain_and_impossible_losses() {
    let all = LinkConfig::default().loss(LossModel::Bernoulli(1.0));
    assert!(losses(all, 1, 1000).iter().all(|lost| *lost));
    let none = LinkConfig::default().loss(LossModel::Bernoulli(0.0));
    assert!(!losses(none, 1, 1000).contains(&true));
}

#[test]
fn bursty_losses_have_their_rate_and_length() {
    let model = LossModel::GilbertElliott {
        p: 0.01,
        r: 0.25,
        h: 0.0,
        k: 1.0,
    };
    let lost = losses(LinkConfig::default().loss(model), 5, 400_000);
    let stationary = 0.01 / 0.26;
    assert!((model.mean_loss() - stationary).abs() < 1e-12);
    assert!(
        (share(&lost) - stationary).abs() < 0.05 * stationary,
        "{}",
        share(&lost)
    );
    assert!(
        (mean_burst(&lost) - 4.0).abs() < 0.2,
        "{}",
        mean_burst(&lost)
    );
}

#[test]
fn each_state_has_its_own_loss() {
    let model = LossModel::GilbertElliott {
        p: 0.05,
        r: 0.15,
        h: 0.4,
        k: 0.98,
    };
    let lost = losses(LinkConfig::default().loss(model), 5, 400_000);
    // A quarter of the time bad: 0.25 * 0.6 + 0.75 * 0.02.
    assert!((model.mean_loss() - 0.165).abs() < 1e-12);
    assert!((share(&lost) - 0.165).abs() < 0.008, "{}", share(&lost));
}

#[test]
fn a_link_starts_in_the_good_state_and_may_stay_bad() {
    let model = LossModel::GilbertElliott {
        p: 1.0,
        r: 0.0,
        h: 0.0,
        k: 1.0,
    };
    let lost = losses(LinkConfig::default().loss(model), 1, 10);
    assert!(!lost[0]);
    assert!(lost[1..].iter().all(|lost| *lost));
}

#[test]
fn lost_packets_have_used_queue_and_link() {
    let config =
        LinkConfig::default()
            .rate(Bandwidth::from_mbps(12))
            .loss(LossModel::GilbertElliott {
                p: 1.0,
                r: 1.0,
                h: 0.0,
                k: 1.0,
            });
    let mut link = Link::new(config, 1, Instant::ZERO).unwrap();
    // The second of three is lost.
    for _ in 0..3 {
        link.enqueue(Instant::ZERO, Packet::new(vec![0; 1472]));
    }
    assert_eq!(link.queue_stats(Instant::ZERO).max_bytes.get(), 4500);
    assert_eq!(link.next_event(), Some(Instant::from_millis(1)));
    assert!(link.poll(Instant::from_millis(2)).is_some());
    assert_eq!(link.next_event(), Some(Instant::from_millis(3)));
}

#[test]
fn a_trace_may_lose_packets() {
    let text = "t_ms,rate_kbps,rtt_ms,loss\n0,,,0\n1000,,,1\n2000,,,0.5\n";
    let config = LinkConfig::default().loss_trace(Trace::parse_csv(text).unwrap());
    let mut link = Link::new(config, 3, Instant::ZERO).unwrap();
    let mut lost_in = [0; 3];
    for i in 0..3000u64 {
        let now = Instant::from_millis(i);
        let dropped = link.enqueue(now, Packet::new(vec![0]));
        lost_in[(i / 1000) as usize] += usize::from(dropped.is_some());
    }
    assert_eq!(lost_in[..2], [0, 1000]);
    assert!((440..560).contains(&lost_in[2]), "{lost_in:?}");
    // And from the start again.
    let again = Instant::ZERO + Duration::from_millis(3500);
    assert!((0..100).all(|_| link.enqueue(again, Packet::new(vec![0])).is_none()));
}

/// A model whose states change every 30 ms; with `h` = 0 and `k` = 1 the packets show the states.
fn stepped(p: f64, r: f64, h: f64, k: f64) -> LossModel {
    LossModel::GilbertElliottStepped {
        p,
        r,
        h,
        k,
        step: Duration::from_millis(30),
    }
}

/// Which of the packets sent at `times`, in milliseconds, are lost.
fn losses_at(model: LossModel, seed: u64, times: impl Iterator<Item = u64>) -> Vec<bool> {
    let config = LinkConfig::default().loss(model);
    let mut link = Link::new(config, seed, Instant::ZERO).unwrap();
    times
        .map(|millis| {
            let now = Instant::from_millis(millis);
            let lost = link.enqueue(now, Packet::new(vec![0])).is_some();
            link.poll(now);
            lost
        })
        .collect()
}

#[test]
fn states_that_last_a_time_have_their_share_and_length() {
    // One packet in each step: the correlation between steps is positive, none, and negative.
    for (p, r) in [(0.02, 0.1), (0.2, 0.8), (0.7, 0.9)] {
        let steps = 200_000;
        let lost = losses_at(stepped(p, r, 0.0, 1.0), 7, (0..steps).map(|i| i * 30 + 5));
        // Four standard deviations of the share in a chain of two states, and of the mean of
        // geometric lengths.
        let bad = p / (p + r);
        let inertia = (2.0 - p - r) / (p + r);
        let bound = 4.0 * (bad * (1.0 - bad) * inertia / steps as f64).sqrt();
        assert!((share(&lost) - bad).abs() < bound, "{}", share(&lost));
        let bursts = steps as f64 * bad * r;
        let bound = 4.0 * ((1.0 - r) / bursts).sqrt() / r;
        let burst = mean_burst(&lost);
        assert!((burst - 1.0 / r).abs() < bound, "{p} {r}: {burst}");
    }
}

#[test]
fn packets_within_a_step_share_its_state_but_not_their_fate() {
    let states = losses_at(stepped(0.2, 0.8, 0.0, 1.0), 3, 0..60_000);
    assert!(
        states
            .chunks(30)
            .all(|step| step.iter().all(|lost| *lost == step[0]))
    );
    let model = stepped(0.2, 0.8, 0.4, 0.99);
    let lost = losses_at(model, 3, 0..300_000);
    // AutoRec's experiment: a fifth of the time bad, 0.8 * 1 % + 0.2 * 60 %.
    assert!((model.mean_loss() - 0.128).abs() < 1e-12);
    assert!((share(&lost) - 0.128).abs() < 0.01, "{}", share(&lost));
    assert!(
        lost.chunks(30)
            .any(|step| step.contains(&true) && step.contains(&false))
    );
}

#[test]
fn which_packets_pass_makes_no_difference_to_the_states() {
    for (p, r) in [
        (0.02, 0.1),
        (0.2, 0.8),
        (0.7, 0.9),
        (1.0, 1.0),
        (0.0, 0.5),
        (1.0, 0.0),
    ] {
        let model = stepped(p, r, 0.0, 1.0);
        let all = losses_at(model, 9, (0..90_000).map(|i| i * 10));
        for every in [7, 100, 12_345] {
            let some = losses_at(model, 9, (0..90_000).step_by(every).map(|i| i * 10));
            let same: Vec<_> = all.iter().copied().step_by(every).collect();
            assert_eq!(some, same, "{p} {r}, every {every}");
        }
        let other = losses_at(model, 10, (0..90_000).map(|i| i * 10));
        let is_random = p > 0.0 && (p < 1.0 || r > 0.0 && r < 1.0);
        assert_eq!(all != other, is_random, "{p} {r}");
    }
}

#[test]
fn a_long_pause_is_passed() {
    let model = stepped(0.2, 0.8, 0.0, 1.0);
    let year = 365 * 24 * 3_600_000;
    let lost = losses_at(model, 4, (0..1_000).map(|i| i * year / 1_000));
    assert!((0.15..0.25).contains(&share(&lost)), "{}", share(&lost));
}
