//! Rates of a running connection: what an application sees of them, and what it changes.

use std::sync::Arc;
use std::time::Duration;

use swiftwater_congestion::{ExternalRate, FollowExternalConfig, ParameterError, RateLawConfig};
use swiftwater_link::LinkConfig;
use swiftwater_sim::{Direction, Pair};
use swiftwater_units::{Bandwidth, ByteCount, PathId, Side};

fn pair(controller: Arc<dyn swiftwater_congestion::ControllerFactory>) -> Pair {
    let way = LinkConfig::default()
        .delay(Duration::from_millis(20))
        .rate(Bandwidth::from_mbps(10));
    let mut pair = Pair::builder()
        .links(way.clone(), way)
        .server_config(move |config| config.controller = controller)
        .build()
        .unwrap();
    assert!(pair.connect());
    pair
}

/// Seconds that 500 kB to the client take.
fn seconds(pair: &mut Pair) -> f64 {
    let start = pair.now();
    let report = pair.transfer(500_000, Direction::ToClient);
    assert!(report.verified, "{report:?}");
    (pair.now() - start).as_secs_f64()
}

#[test]
fn the_view_of_a_path_shows_rate_and_queue() {
    let mut pair = pair(swiftwater_congestion::by_name("cubic").unwrap());
    let now = pair.now();
    let connection = pair.view(Side::Server).unwrap();
    assert!(connection.path_rate(now, PathId::new(1)).is_none());
    seconds(&mut pair);
    let now = pair.now();
    let view = pair.view(Side::Server).unwrap();
    let rate = view.path_rate(now, PathId::ZERO).unwrap();
    let stats = view.path_stats(PathId::ZERO).unwrap();
    assert_eq!(rate.cwnd, stats.cwnd);
    assert_eq!(rate.smoothed_rtt, Some(stats.smoothed_rtt));
    assert_eq!(rate.delivery_rate, stats.delivery_rate);
    let queue_delay = stats.smoothed_rtt.saturating_sub(stats.min_rtt);
    assert_eq!(rate.queue_delay, queue_delay);
    // CUBIC fills the queue of the link.
    assert!(rate.queue_delay > Duration::from_millis(5), "{rate:?}");
    assert!(rate.queued_bytes() > ByteCount::new(2_000), "{rate:?}");
}

#[test]
fn a_running_controller_can_be_reconfigured() {
    let mut fast = pair(swiftwater_congestion::by_name("bbr1").unwrap());
    let unlimited = seconds(&mut fast);
    assert!(unlimited < 1.0, "{unlimited}");
    let mut slow = pair(swiftwater_congestion::by_name("bbr1").unwrap());
    let now = slow.now();
    let connection = slow.connection(Side::Server).unwrap();
    let refused = connection.configure_controller(now, "bandwidth_window=3");
    assert!(
        matches!(refused, Err(ParameterError::Fixed { .. })),
        "{refused:?}"
    );
    connection
        .configure_controller(now, "max_expected_bandwidth=2mbit")
        .unwrap();
    let limited = seconds(&mut slow);
    assert!(limited > 1.5 * unlimited, "{limited} {unlimited}");
}

#[test]
fn a_rate_from_outside_reaches_the_controller() {
    // The law alone, for one report.
    let config = FollowExternalConfig {
        lifetime: Duration::from_secs(10),
        law: RateLawConfig {
            startup: false,
            ..RateLawConfig::default()
        },
        trust: false,
        decay: false,
        ..FollowExternalConfig::default()
    };
    let mut pair = pair(Arc::new(config));
    let now = pair.now();
    let rate = Bandwidth::from_mbps(2);
    // What may stand: 20 ms between two reports at that rate.
    let external = ExternalRate::new(rate, ByteCount::new(5_000), Duration::ZERO);
    let connection = pair.connection(Side::Server).unwrap();
    assert!(!connection.on_external_rate(now, PathId::new(1), &external));
    assert!(connection.on_external_rate(now, PathId::ZERO, &external));
    let rate = connection.path_rate(now, PathId::ZERO).unwrap();
    assert_eq!(rate.pacing_rate, Some(external.rate));
    let time = seconds(&mut pair);
    assert!((1.9..2.4).contains(&time), "500 kB at 2 Mbit/s: {time}");
}
