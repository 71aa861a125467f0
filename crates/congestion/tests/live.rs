//! Controllers that are reconfigured while they run, and rates from outside.

use std::time::Duration;

use crate::support::{Fate, MDS, Transport};
use swiftwater_congestion::{
    ControllerCatalogue, CubicConfig, ExternalRate, FixedWindow, FollowExternalConfig,
    NewRenoConfig, ParameterError, RateLawConfig, by_name,
};
use swiftwater_units::{Bandwidth, ByteCount};

/// The factor by which the next loss reduces the window.
fn reduction(t: &mut Transport) -> f64 {
    t.next_packet(Fate::Lose);
    let (events, mut before) = (t.events, t.cwnd());
    while t.events == events {
        before = t.cwnd();
        t.step();
    }
    t.cwnd() as f64 / before as f64
}

#[test]
fn every_live_parameter_takes_the_value_that_it_shows() {
    for entry in ControllerCatalogue::standard().entries() {
        let mut t = Transport::new(by_name(entry.name()).unwrap().as_ref());
        let live = t.cc.parameters();
        assert!(!live.is_empty(), "{}", entry.name());
        for parameter in &live {
            let setting = format!("{}={}", parameter.name, parameter.value);
            t.cc.configure(&setting).unwrap();
            let at_start = entry.parameters();
            assert!(
                at_start.iter().any(|known| known.name == parameter.name),
                "{} {setting}",
                entry.name()
            );
        }
        assert_eq!(t.cc.parameters(), live, "{}", entry.name());
    }
}

#[test]
fn the_next_loss_meets_the_new_factor() {
    for factory in [
        Box::new(NewRenoConfig::default()) as Box<dyn swiftwater_congestion::ControllerFactory>,
        Box::new(CubicConfig::default()),
    ] {
        let mut t = Transport::new(factory.as_ref());
        t.run_rounds(4);
        t.one_loss();
        t.run_rounds(3);
        let before = t.cwnd();
        t.cc.configure("beta=0.9, pacing_gain=4").unwrap();
        assert_eq!(t.cwnd(), before, "no jump");
        assert!((t.gain() - 4.0).abs() < 1e-9);
        let factor = reduction(&mut t);
        assert!((factor - 0.9).abs() < 0.02, "{factor}");
    }
}

#[test]
fn what_cannot_be_changed_is_refused_and_nothing_changes() {
    let mut t = Transport::new(by_name("bbr1").unwrap().as_ref());
    let before = t.cc.parameters();
    let error = |t: &mut Transport, settings| t.cc.configure(settings).unwrap_err();
    assert!(matches!(
        error(&mut t, "cwnd_gain=3,initial_window=40"),
        ParameterError::Fixed { name, .. } if name == "initial_window"
    ));
    assert!(matches!(
        error(&mut t, "cwnd_gain=3,probe_gain=7"),
        ParameterError::Value {
            name: "probe_gain",
            ..
        }
    ));
    assert!(matches!(
        error(&mut t, "wish=1"),
        ParameterError::Unknown { .. }
    ));
    assert!(matches!(
        error(&mut t, "cwnd_gain"),
        ParameterError::Form { .. }
    ));
    assert_eq!(t.cc.parameters(), before);
    t.cc.configure("max_expected_bandwidth=2mbit").unwrap();
    assert_ne!(t.cc.parameters(), before);

    let mut fixed = Transport::new(&FixedWindow::new(ByteCount::new(10 * MDS)));
    assert!(fixed.cc.parameters().is_empty());
    let refused = fixed.cc.configure("window=1").unwrap_err();
    assert!(
        refused.to_string().contains("no parameter `window`"),
        "{refused}"
    );
    let mut cubic = Transport::new(&CubicConfig::default());
    assert!(matches!(
        cubic.cc.configure("beta=0.5,c=-1").unwrap_err(),
        ParameterError::Value { name: "c", .. }
    ));
    assert!(
        (reduction(&mut cubic) - 0.7).abs() < 0.02,
        "beta is as before"
    );
}

fn report(mbps: u64, queue: u64, age: u64) -> ExternalRate {
    let age = Duration::from_millis(age);
    ExternalRate::new(Bandwidth::from_mbps(mbps), ByteCount::new(queue), age)
}

fn pacing(t: &Transport) -> Option<f64> {
    let rate = t.cc.pacing(&t.rtt_view()).rate?;
    Some(rate.as_mbps_f64())
}

/// Without what looks at earlier reports and at what is sent.
fn law_alone() -> FollowExternalConfig {
    FollowExternalConfig {
        lifetime: Duration::from_millis(200),
        law: RateLawConfig {
            smooth: false,
            drop_rule: false,
            startup: false,
            target_intervals: 0.0,
            ..RateLawConfig::default()
        },
        trust: false,
        upstream: false,
        decay: false,
        ..FollowExternalConfig::default()
    }
}

#[test]
fn an_external_rate_is_followed_and_its_queue_drained() {
    let mut t = Transport::new(&law_alone());
    t.run_rounds(3);
    assert_eq!(pacing(&t), None, "no report: CUBIC");
    let give = |t: &mut Transport, report: ExternalRate| {
        t.with_env(|cc, now, env| cc.on_external_rate(now, &report, env));
    };
    // 5 ms at 8 Mbit/s are the 5,000 bytes that may stand.
    give(&mut t, report(8, 5_000, 10));
    assert!((pacing(&t).unwrap() - 8.0).abs() < 0.01);
    // 50,000 bytes too many within two round trips of 50 ms: 4 Mbit/s less.
    give(&mut t, report(8, 55_000, 10));
    assert!((pacing(&t).unwrap() - 4.0).abs() < 0.1, "{:?}", pacing(&t));
    // An idle queue permits a little more.
    give(&mut t, report(8, 0, 10));
    assert!((pacing(&t).unwrap() - 8.4).abs() < 0.1, "{:?}", pacing(&t));
    // Two round trips of 50 ms at that rate.
    let window = t.cwnd();
    assert!((80_000..130_000).contains(&window), "{window}");
    // Losses don't matter while the rate is known.
    t.one_loss();
    assert_eq!(t.snapshot().state, "following");
    assert!((pacing(&t).unwrap() - 8.4).abs() < 0.1);
    // However large the queue, two packets leave per round trip.
    give(&mut t, report(1, 10_000_000, 0));
    assert!(pacing(&t).unwrap() > 0.3);
}

#[test]
fn without_fresh_reports_cubic_takes_over() {
    let mut t = Transport::new(&law_alone());
    t.run_rounds(3);
    t.with_env(|cc, now, env| cc.on_external_rate(now, &report(8, 5_000, 150), env));
    assert_eq!(t.snapshot().state, "following");
    assert_eq!(t.cc.next_timer(), Some(t.now + Duration::from_millis(50)));
    t.run_for(Duration::from_millis(60));
    assert_eq!(pacing(&t), None);
    assert_ne!(t.snapshot().state, "following");
    // One that is too old already changes nothing.
    t.with_env(|cc, now, env| cc.on_external_rate(now, &report(1, 0, 500), env));
    assert_eq!(pacing(&t), None);
    // Others ignore it.
    let mut cubic = Transport::new(&CubicConfig::default());
    let before = cubic.cwnd();
    cubic.with_env(|cc, now, env| cc.on_external_rate(now, &report(1, 0, 0), env));
    assert_eq!((cubic.cwnd(), pacing(&cubic)), (before, None));
}

#[test]
fn the_follower_of_an_external_rate_is_chosen_by_name() {
    let mut t = Transport::new(
        by_name("follow-external:lifetime=1s,target=10ms,target-intervals=0,startup=off,trust=off,decay=off,beta=0.8")
            .unwrap()
            .as_ref(),
    );
    t.run_rounds(3);
    t.with_env(|cc, now, env| cc.on_external_rate(now, &report(8, 10_000, 500), env));
    assert_eq!(t.snapshot().state, "following");
    // 10 ms at 8 Mbit/s may stand, and the report counts for half a second more.
    assert!((pacing(&t).unwrap() - 8.0).abs() < 0.01);
    t.run_for(Duration::from_millis(350));
    assert_eq!(t.snapshot().state, "following");
    t.run_for(Duration::from_millis(250));
    assert_ne!(t.snapshot().state, "following");
    assert!(by_name("follow-external:lifetime=0s").is_err());
}

#[test]
fn more_than_twice_the_delivery_rate_is_never_sent() {
    let mut t = Transport::new(&FollowExternalConfig::default());
    t.run_rounds(6);
    t.with_env(|cc, now, env| cc.on_external_rate(now, &report(100_000, 0, 0), env));
    let claimed = pacing(&t).unwrap();
    assert!(
        claimed < 1_000.0,
        "{claimed} Mbit/s because a report says so"
    );
}

#[test]
fn the_rate_falls_while_reports_are_missing() {
    let decaying = FollowExternalConfig {
        lifetime: Duration::from_secs(2),
        decay: true,
        ..law_alone()
    };
    let mut t = Transport::new(&decaying);
    t.run_rounds(3);
    t.with_env(|cc, now, env| cc.on_external_rate(now, &report(8, 5_000, 0), env));
    // Two intervals of 20 ms and a round trip of 50 ms.
    t.run_for(Duration::from_millis(40));
    assert!((pacing(&t).unwrap() - 8.0).abs() < 0.01);
    t.run_for(Duration::from_millis(300));
    let rate = pacing(&t).unwrap();
    assert!(rate < 4.0, "{rate} Mbit/s after 300 ms more");
}

#[test]
fn a_loss_before_the_tunnel_makes_cubic_limit_the_rate() {
    let mut with = Transport::new(&FollowExternalConfig {
        lifetime: Duration::from_secs(10),
        upstream: true,
        ..law_alone()
    });
    with.run_rounds(3);
    with.with_env(|cc, now, env| cc.on_external_rate(now, &report(8, 5_000, 0), env));
    with.one_loss();
    let rate = pacing(&with).unwrap();
    assert!((4.0..7.0).contains(&rate), "reduced by 0.7: {rate}");
    with.run_for(Duration::from_secs(8));
    let rate = pacing(&with).unwrap();
    assert!(rate > 7.9, "it has grown back: {rate}");
}
