//! The receiver's estimate of its peer's losses, from packet numbers that did not come.

use std::time::Duration;

use swiftwater_link::{LinkConfig, LossModel, Reorder, ReorderBy};
use swiftwater_quic::Arrivals;
use swiftwater_sim::{Direction, Pair};
use swiftwater_units::{PathId, Side};

use crate::support::paths::{self, SECOND};
use crate::support::{link, millis, path};

/// A download over a link of 20 Mbit/s and 20 ms that is as `change` has it on the way down.
fn download(bytes: u64, change: impl Fn(LinkConfig) -> LinkConfig) -> Pair {
    let builder = Pair::builder().links(link(20, 20), change(link(20, 20)));
    let mut pair = builder.build().unwrap();
    assert!(pair.connect());
    assert!(pair.transfer(bytes, Direction::ToClient).verified);
    pair
}

fn arrivals(pair: &Pair, side: Side) -> Arrivals {
    let arrivals = pair.view(side).unwrap().arrivals();
    assert_eq!(path(pair, side).arrivals, arrivals);
    arrivals
}

/// The share of datagrams that the link down lost.
fn lost(pair: &Pair) -> f64 {
    let counters = pair.counters(Direction::ToClient);
    let lost = counters.dropped().packets.get() as f64;
    lost / (lost + counters.delivered.packets.get() as f64)
}

#[test]
fn the_client_knows_what_was_lost_on_the_way_down() {
    for loss in [0.0, 0.005, 0.02, 0.1] {
        let pair = download(5_000_000, |link| link.loss(LossModel::Bernoulli(loss)));
        let share = arrivals(&pair, Side::Client).missing_share().unwrap();
        // A few numbers are skipped.
        let excess = share - lost(&pair);
        assert!((-0.001..0.003).contains(&excess), "{loss}: {share}");
        // Its acknowledgements were not lost.
        assert!(arrivals(&pair, Side::Server).missing_share().unwrap() < 0.01);
    }
}

#[test]
fn bursts_and_full_queues_count_as_other_losses_do() {
    for change in [
        |link: LinkConfig| {
            link.loss(LossModel::GilbertElliott {
                p: 0.005,
                r: 0.2,
                h: 0.2,
                k: 1.0,
            })
        },
        |link: LinkConfig| link.buffer(swiftwater_link::Buffer::Bytes(20_000.into())),
    ] {
        let pair = download(5_000_000, change);
        let share = arrivals(&pair, Side::Client).missing_share().unwrap();
        let lost = lost(&pair);
        assert!(lost > 0.003, "{lost}");
        assert!((-0.002..0.003).contains(&(share - lost)), "{share}, {lost}");
    }
}

#[test]
fn reordering_alone_is_no_loss() {
    let late = [
        ReorderBy::Delay(millis(5)),
        ReorderBy::Packets {
            count: 2,
            at_most: Duration::from_secs(1),
        },
        ReorderBy::Packets {
            count: 20,
            at_most: millis(100),
        },
    ];
    for by in late {
        let probability = 0.1;
        let pair = download(5_000_000, |link| link.reorder(Reorder { probability, by }));
        assert!(lost(&pair) < 1e-9);
        let share = arrivals(&pair, Side::Client).missing_share().unwrap();
        assert!(share < 0.003, "{by:?}: {share}");
    }
}

#[test]
fn copies_and_damaged_packets() {
    let pair = download(2_000_000, |link| link.duplicate(0.2));
    assert!(arrivals(&pair, Side::Client).missing_share().unwrap() < 0.005);
    let pair = download(2_000_000, |link| link.corrupt(0.03));
    let share = arrivals(&pair, Side::Client).missing_share().unwrap();
    assert!((0.02..0.045).contains(&share), "{share}");
}

#[test]
fn an_update_of_the_keys_changes_nothing() {
    let mut pair = download(1_000_000, |link| link);
    for _ in 0..3 {
        pair.server().update_keys();
        assert!(pair.transfer(1_000_000, Direction::ToClient).verified);
        pair.advance(millis(500));
    }
    assert_eq!(pair.stats(Side::Client).key_updates, 3);
    assert!(arrivals(&pair, Side::Client).missing_share().unwrap() < 0.005);
}

#[test]
fn each_path_has_its_own() {
    let lossy = link(20, 10).loss(LossModel::Bernoulli(0.05));
    let (mut pair, _) = paths::with_two_paths(paths::builder(link(5, 10)), lossy);
    assert!(pair.transfer(10_000_000, Direction::ToClient).verified);
    let stats = pair.stats(Side::Client);
    let of = |id: PathId| {
        let path = stats.paths.iter().find(|path| path.id == id).unwrap();
        path.arrivals
    };
    let (first, second) = (of(PathId::ZERO), of(SECOND));
    assert!(first.expected.get() > 1_000 && second.expected.get() > 1_000);
    assert!(first.missing_share().unwrap() < 0.01);
    assert!((0.03..0.08).contains(&second.missing_share().unwrap()));
    let mut sum = first;
    sum += second;
    assert_eq!(pair.view(Side::Client).unwrap().arrivals(), sum);
}
