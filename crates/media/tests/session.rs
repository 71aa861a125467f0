//! Sessions over simulated links: every scheme delivers, costs what it should, and runs alike with
//! and without bytes.

use std::time::Duration;

use swiftwater_link::{Buffer, LinkConfig, LossModel, Trace, TraceSample};
use swiftwater_media::apps::{SessionReport, SessionSpec, SteppedLoss, simulate};
use swiftwater_media::protection::{Protector, SchemeTables};
use swiftwater_media::session::{Coding, SessionConfig};
use swiftwater_media::source::SourceSpec;
use swiftwater_units::{Bandwidth, ByteCount};

const SCHEMES: [&str; 9] = [
    "rtx",
    "webrtc14",
    "webrtc-now",
    "hairpin:lambda=1e-1",
    "hairpin:lambda=1e-4",
    "hairpin:lambda=1e-7",
    "tambur:ratio=0.25",
    "tambur:ratio=0.5",
    "tambur:one",
];

/// The link of the AutoRec paper's RTC simulations: 12 Mbit/s, 30 ms round trip.
fn path(loss: LossModel) -> (LinkConfig, LinkConfig) {
    let delay = Duration::from_millis(15);
    let forward = LinkConfig::default()
        .rate(Bandwidth::from_mbps(12))
        .buffer(Buffer::Bytes(ByteCount::new(100_000)))
        .delay(delay)
        .loss(loss);
    (forward, LinkConfig::default().delay(delay))
}

/// Settings of its video: 4 Mbit/s at 60 frames/s, paced.
fn paced() -> SessionConfig {
    SessionConfig {
        pacing: Some(Bandwidth::from_mbps(10)),
        ..SessionConfig::default()
    }
}

fn run(
    scheme: &str,
    config: SessionConfig,
    links: (LinkConfig, LinkConfig),
    seconds: u64,
    seed: u64,
) -> SessionReport {
    let tables = SchemeTables::new();
    let source: SourceSpec = "cbr:4mbit,fps=60".parse().unwrap();
    let scheme = scheme.parse().unwrap();
    let protector = Protector::new(&scheme, &tables, &|_| None).unwrap();
    let mut spec = SessionSpec::new(source.open(seed).unwrap(), protector);
    spec.config = config;
    let duration = Duration::from_secs(seconds);
    simulate(spec, links.0, links.1, duration, seed).unwrap()
}

#[test]
fn a_perfect_path_takes_every_frame_and_no_redundancy() {
    for scheme in SCHEMES {
        let report = run(scheme, paced(), path(LossModel::None), 4, 1);
        assert_eq!((report.frames, report.completed), (240, 240), "{scheme}");
        assert_eq!(report.missed(), 0, "{scheme}");
        assert_eq!(report.sender.packets_lost, 0, "{scheme}");
        assert_eq!(report.sender.retransmitted_packets, 0, "{scheme}");
        assert_eq!(report.receiver.duplicates, 0, "{scheme}");
        let always = if scheme == "tambur:one" { 240 } else { 0 };
        assert_eq!(report.sender.repair_packets, always, "{scheme}");
        // One way, and the packets behind one another.
        assert!(
            report.frame_delay.max < Duration::from_millis(25),
            "{scheme}"
        );
    }
}

#[test]
fn bytes_and_counts_give_the_same_outcome() {
    for scheme in SCHEMES {
        let with = |coding| {
            let config = SessionConfig { coding, ..paced() };
            run(scheme, config, path(LossModel::Bernoulli(0.08)), 4, 3)
        };
        let (real, counted) = (with(Coding::Real), with(Coding::Counted));
        assert_eq!(real, counted, "{scheme}");
        assert_eq!(real.receiver.failed_frames, 0, "{scheme}");
        if scheme != "rtx" {
            assert!(real.receiver.restored_frames > 0, "{scheme}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_another() {
    for scheme in SCHEMES {
        let with = |seed| run(scheme, paced(), path(LossModel::Bernoulli(0.05)), 3, seed);
        assert_eq!(with(5), with(5), "{scheme}");
        assert_ne!(with(5).forward, with(6).forward, "{scheme}");
    }
}

#[test]
fn sessions_without_a_deadline_deliver_everything() {
    let bursts = LossModel::GilbertElliott {
        p: 0.02,
        r: 0.2,
        h: 0.1,
        k: 0.99,
    };
    for scheme in SCHEMES {
        let config = SessionConfig {
            deadline: None,
            ..paced()
        };
        let report = run(scheme, config, path(bursts), 10, 11);
        assert_eq!(report.completed, report.frames, "{scheme}");
        assert_eq!(report.sender.abandoned_packets, 0, "{scheme}");
        assert_eq!(report.deadline, None, "{scheme}");
        assert!(report.loss_rate() > 0.02, "{scheme}");
    }
}

#[test]
fn what_cannot_meet_its_deadline_is_not_sent() {
    // One loss is found after a round trip, and a second round trip is too long.
    let config = SessionConfig {
        deadline: Some(Duration::from_millis(40)),
        ..paced()
    };
    let report = run("rtx", config, path(LossModel::Bernoulli(0.05)), 10, 2);
    assert!(report.missed() > 0);
    assert!(report.sender.abandoned_packets > 0);
    assert_eq!(report.sender.retransmitted_packets, 0);
}

#[test]
fn protection_misses_fewer_frames_than_retransmission() {
    let config = SessionConfig {
        deadline: Some(Duration::from_millis(60)),
        ..paced()
    };
    let with = |scheme| {
        let report = run(
            scheme,
            config.clone(),
            path(LossModel::Bernoulli(0.05)),
            20,
            4,
        );
        (report.dmr(), report.cost.redundancy_over_source().unwrap())
    };
    let rtx = with("rtx");
    assert!(rtx.0 > 0.005 && rtx.1 == 0.0, "{rtx:?}");
    for scheme in &SCHEMES[1..] {
        let (dmr, cost) = with(scheme);
        assert!(dmr < rtx.0, "{scheme}: {dmr} {rtx:?}");
        assert!(cost > 0.0, "{scheme}");
    }
}

#[test]
fn a_lower_weight_of_cost_costs_hairpin_more_and_misses_no_more() {
    let with = |lambda: &str| {
        let scheme = format!("hairpin:lambda={lambda}");
        let report = run(&scheme, paced(), path(LossModel::Bernoulli(0.1)), 30, 8);
        (report.dmr(), report.cost.redundancy_over_source().unwrap())
    };
    let (low, standard, high) = (with("1e-1"), with("1e-4"), with("1e-7"));
    assert!(high.0 <= standard.0 && standard.0 <= low.0);
    assert!(low.1 < standard.1 && standard.1 < high.1);
}

#[test]
fn webrtc_costs_what_its_counts_say() {
    // Two of six and one of six once loss was seen; repair packets are a byte longer.
    for (scheme, share) in [("webrtc-now", 2.0 / 6.0), ("webrtc14", 1.0 / 6.0)] {
        let report = run(scheme, paced(), path(LossModel::Bernoulli(0.01)), 30, 9);
        let cost = report.cost.redundancy_over_source().unwrap();
        assert!(
            cost <= share * 1.001 && cost > share * 0.93,
            "{scheme}: {cost}"
        );
    }
}

#[test]
fn a_frame_lost_whole_comes_back_from_later_parity() {
    // Everything sent in the 10 ms around one frame is lost.
    let sample = |millis, loss| TraceSample {
        at: Duration::from_millis(millis),
        loss: Some(loss),
        ..TraceSample::default()
    };
    let mut samples = vec![sample(0, 0.0), sample(100, 1.0), sample(110, 0.0)];
    // After the first loss report (frame 180 is encoded at 3 s).
    samples.extend([sample(2_998, 1.0), sample(3_012, 0.0), sample(10_000, 0.0)]);
    let trace = Trace::from_samples(&samples, None).unwrap();
    let with = |scheme| {
        let (forward, backward) = path(LossModel::None);
        // Parity of the third frame after the lost one leaves 50 to 61 ms after it and arrives 16 ms
        // later. The code is tested alone, without retransmissions.
        let config = SessionConfig {
            deadline: Some(Duration::from_millis(85)),
            max_retransmissions: Some(0),
            coding: Coding::Real,
            ..paced()
        };
        run(
            scheme,
            config,
            (forward.loss_trace(trace.clone()), backward),
            5,
            1,
        )
    };
    let plain = with("rtx");
    let coded = with("tambur:ratio=0.5");
    // The loss at 100 ms was before any parity.
    assert_eq!(plain.missed(), coded.missed() + 1);
    assert!(coded.receiver.restored_frames >= 1);
}

#[test]
fn ringmasters_rule_brings_a_key_frame_after_an_outage() {
    let sample = |at, loss| TraceSample {
        at: Duration::from_millis(at),
        loss: Some(loss),
        ..TraceSample::default()
    };
    let samples = [
        sample(0, 0.0),
        sample(2_000, 1.0),
        sample(3_500, 0.0),
        sample(60_000, 0.0),
    ];
    let trace = Trace::from_samples(&samples, None).unwrap();
    let with = |key_frame_after| {
        let (forward, backward) = path(LossModel::None);
        let config = SessionConfig {
            deadline: None,
            key_frame_after,
            max_retransmissions: Some(3),
            ..SessionConfig::default()
        };
        run(
            "rtx",
            config,
            (forward.loss_trace(trace.clone()), backward),
            6,
            1,
        )
    };
    let report = with(Some(Duration::from_secs(1)));
    assert!(report.sender.key_frames_requested >= 1);
    assert!(report.display.skipped > 0);
    // The outage freezes the display; the second after it at the latest it runs again.
    let frozen = report.display.freezes.total;
    assert!(frozen >= Duration::from_millis(1_500) && frozen < Duration::from_millis(2_700));
    assert!(report.display.shown > 180);
    // Without the rule, nothing is shown after the first missing frame.
    let stuck = with(None);
    assert_eq!(stuck.sender.key_frames_requested, 0);
    assert!(stuck.display.frozen_share() > report.display.frozen_share());
}

#[test]
fn acknowledgements_may_be_lost_delayed_and_reordered() {
    for scheme in SCHEMES {
        let (forward, backward) = path(LossModel::Bernoulli(0.03));
        let backward = backward
            .loss(LossModel::Bernoulli(0.5))
            .jitter(swiftwater_link::Jitter::Uniform(Duration::from_millis(10)))
            .jitter_reorders(true);
        let forward = forward.duplicate(0.05).corrupt(0.01);
        let config = SessionConfig {
            deadline: None,
            coding: Coding::Real,
            ..paced()
        };
        let report = run(scheme, config, (forward, backward), 4, 21);
        assert_eq!(report.completed, report.frames, "{scheme}");
        assert_eq!(report.receiver.failed_frames, 0, "{scheme}");
    }
}

#[test]
fn reordering_makes_losses_spurious_and_nothing_worse() {
    let (forward, backward) = path(LossModel::None);
    let forward = forward
        .jitter(swiftwater_link::Jitter::Uniform(Duration::from_millis(8)))
        .jitter_reorders(true);
    let report = run("rtx", paced(), (forward, backward), 5, 2);
    assert!(report.sender.spurious_losses > 0);
    assert_eq!(report.sender.spurious_losses, report.sender.packets_lost);
    assert_eq!(report.missed(), 0);
}

#[test]
fn impossible_settings_are_refused() {
    let tables = SchemeTables::new();
    let try_with = |config: SessionConfig, forward: LinkConfig| {
        let source: SourceSpec = "cbr:4mbit,fps=60".parse().unwrap();
        let protector = Protector::new(&"rtx".parse().unwrap(), &tables, &|_| None).unwrap();
        let mut spec = SessionSpec::new(source.open(1).unwrap(), protector);
        spec.config = config;
        let backward = LinkConfig::default();
        simulate(spec, forward, backward, Duration::from_secs(1), 1)
    };
    let good = SessionConfig::default();
    for config in [
        SessionConfig {
            payload_size: 0,
            ..good.clone()
        },
        SessionConfig {
            pacing: Some(Bandwidth::ZERO),
            ..good.clone()
        },
        SessionConfig {
            report_interval: Duration::ZERO,
            ..good.clone()
        },
    ] {
        assert!(try_with(config, LinkConfig::default()).is_err());
    }
    let no_link = LinkConfig::default().rate(Bandwidth::ZERO);
    assert!(try_with(good, no_link).is_err());
}

#[test]
fn the_stepped_channel_loses_what_it_says() {
    for bad_loss in [0.1, 0.8] {
        let channel = SteppedLoss::autorec(bad_loss);
        let length = Duration::from_secs(1_500);
        let trace = channel.trace(length, 5).unwrap();
        assert_eq!(trace, channel.trace(length, 5).unwrap());
        let samples: Vec<_> = trace.samples().collect();
        let losses = samples.iter().filter_map(|sample| sample.loss);
        let mean = losses.sum::<f64>() / samples.len() as f64;
        assert!((mean - channel.mean_loss()).abs() < 0.1 * channel.mean_loss());
    }
    let impossible = SteppedLoss {
        to_bad: 1.5,
        ..SteppedLoss::autorec(0.1)
    };
    assert!(impossible.trace(Duration::from_secs(1), 1).is_err());
    assert!(SteppedLoss::autorec(0.1).trace(Duration::ZERO, 1).is_err());
}
