//! Rate estimates of paths that the application or the scheduler uses little: samples of such times are marked
//! as limited by the application, on each path by itself.

use std::net::SocketAddr;
use std::sync::Arc;

use swiftwater_policies::Policies;
use swiftwater_policies::SchedulerCatalogue;
use swiftwater_quic::{MultipathConfig, PathAddress, TransportConfig};
use swiftwater_sim::{Direction, Pair};
use swiftwater_units::{PathId, Side};

use crate::support::{link, millis};

const SECOND: PathId = PathId::new(1);

/// Two paths of 20 Mbit/s with round-trip times of 20 and 40 ms, both in use.
fn two_paths(cc: &str, scheduler: &str) -> Pair {
    let configure = |config: &mut TransportConfig| {
        config.multipath = Some(MultipathConfig::default());
        config.controller = swiftwater_congestion::by_name(cc).unwrap();
        let scheduler = SchedulerCatalogue::standard().get(scheduler).unwrap();
        config.policies = Arc::new(Policies::default().with_scheduler(scheduler));
    };
    let pair = Pair::builder().link(link(20, 10)).both_configs(configure);
    let mut pair = pair.build().unwrap();
    assert!(pair.connect());
    pair.advance(millis(300));
    let address: SocketAddr = ([192, 0, 2, 200], 50_000).into();
    let second = pair
        .attach_path(Side::Client, address, link(20, 20))
        .unwrap();
    let (now, remote) = (pair.now(), pair.address(Side::Server));
    let address = PathAddress {
        remote,
        local: second.local,
    };
    assert_eq!(pair.client().open_path(now, address), Ok(SECOND));
    pair.advance(millis(300));
    pair
}

/// The rate that the pacer of each path of the server follows, Mbit/s.
fn paced(pair: &Pair) -> Vec<f64> {
    let paths = &pair.stats(Side::Server).paths;
    let rates = paths.iter().map(|path| path.pacing_rate.unwrap().as_bps());
    rates.map(|rate| rate as f64 / 1e6).collect()
}

/// `bytes` every 10 ms for 15 s, after a bulk transfer.
fn trickle(cc: &str, scheduler: &str, bytes: u64) -> Vec<f64> {
    let mut pair = two_paths(cc, scheduler);
    assert!(pair.transfer(20_000_000, Direction::ToClient).verified);
    for _ in 0..1_500 {
        pair.start_transfer(bytes, Direction::ToClient);
        pair.advance(millis(10));
    }
    assert!(pair.finish_transfers());
    paced(&pair)
}

#[test]
fn paths_that_are_used_little_keep_their_rate() {
    for cc in ["bbr1", "bbr3"] {
        for scheduler in ["min-rtt", "weighted"] {
            // 4 Mbit/s, which one path carries, and 24, of which the second gets what the first has no room for.
            for bytes in [5_000, 30_000] {
                for (path, rate) in trickle(cc, scheduler, bytes).into_iter().enumerate() {
                    assert!(
                        rate > 13.0,
                        "{cc}, {scheduler}, {bytes} bytes, path {path}: {rate:.1} Mbit/s"
                    );
                }
            }
        }
    }
}
