//! Fewer acknowledgements by agreement (draft-ietf-quic-ack-frequency): what they save, and that
//! neither goodput nor repair suffers.

use swiftwater_link::{LinkConfig, LossModel};
use swiftwater_quic::AckFrequencyConfig;
use swiftwater_sim::{Direction, Pair, TransferReport};
use swiftwater_units::Side;

use crate::support::{link, millis, path, secs};

/// A transfer to the client; the server requests fewer acknowledgements if `asks`.
fn download(link: LinkConfig, asks: bool, bytes: u64) -> (Pair, TransferReport) {
    let mut pair = Pair::builder()
        .link(link)
        .time_limit(secs(120))
        .server_config(|config| {
            config.ack_frequency = asks.then(AckFrequencyConfig::default);
        })
        .build()
        .unwrap();
    assert!(pair.connect());
    let report = pair.transfer(bytes, Direction::ToClient);
    assert!(report.verified, "{report:?}");
    (pair, report)
}

/// Datagrams that the client sent for each of the server.
fn acknowledgements_per_packet(pair: &Pair) -> f64 {
    pair.offered(Direction::ToServer) as f64 / pair.offered(Direction::ToClient) as f64
}

#[test]
fn a_bulk_transfer_needs_a_fraction_of_the_acknowledgements() {
    for (mbps, delay) in [(20, 5), (20, 50), (200, 10)] {
        let (usual, plain) = download(link(mbps, delay), false, 10_000_000);
        let (asked, fewer) = download(link(mbps, delay), true, 10_000_000);
        let (before, after) = (
            acknowledgements_per_packet(&usual),
            acknowledgements_per_packet(&asked),
        );
        assert!((0.4..0.6).contains(&before), "{mbps}, {delay}: {before}");
        assert!(after < 0.2, "{mbps}, {delay}: {after}");
        let (usual, asked) = (plain.finish - plain.start, fewer.finish - fewer.start);
        assert!(
            asked < usual.mul_f64(1.05) + millis(50),
            "{mbps}, {delay}: {asked:?} instead of {usual:?}"
        );
    }
}

#[test]
fn losses_are_found_without_waiting_for_a_probe() {
    let lossy = || link(20, 20).loss(LossModel::Bernoulli(0.01));
    let (usual, plain) = download(lossy(), false, 5_000_000);
    let (asked, fewer) = download(lossy(), true, 5_000_000);
    assert!(path(&asked, Side::Server).lost_packets.get() > 10);
    let (few, many) = (
        acknowledgements_per_packet(&asked),
        acknowledgements_per_packet(&usual),
    );
    assert!(few < many * 0.8, "{few} instead of {many}");
    let (usual, asked) = (plain.finish - plain.start, fewer.finish - fewer.start);
    assert!(
        asked < usual.mul_f64(1.25),
        "{asked:?} instead of {usual:?}"
    );
}

#[test]
fn who_does_not_offer_the_extension_is_not_asked() {
    let mut pair = Pair::builder()
        .link(link(20, 10))
        .client_config(|config| config.min_ack_delay = None)
        .server_config(|config| config.ack_frequency = Some(AckFrequencyConfig::default()))
        .build()
        .unwrap();
    assert!(pair.connect());
    assert!(pair.transfer(1_000_000, Direction::ToClient).verified);
    let share = acknowledgements_per_packet(&pair);
    assert!((0.4..0.6).contains(&share), "{share}");
}

#[test]
fn a_longer_round_trip_is_asked_for_longer_delays() {
    // 25 ms is the ceiling, a quarter of the round trip the rule: the probe timeout includes it.
    for (delay, expected) in [(5, 2..4), (20, 9..13), (100, 25..26)] {
        // Too little to fill a queue.
        let (pair, _) = download(link(200, delay), true, 300_000);
        let millis = pair.stats(Side::Server).peer_max_ack_delay.as_millis();
        assert!(expected.contains(&millis), "{delay}: {millis} ms");
    }
}
