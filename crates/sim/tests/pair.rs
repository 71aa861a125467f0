//! The pair: transfers, taps, injection, rebinding, and that a seed repeats a run.

use std::time::Duration;

use swiftwater_link::{LinkConfig, LossModel};
use swiftwater_quic::{Event, RetryPolicy};
use swiftwater_sim::{Cipher, Direction, LogDetail, LogFate, Pair, PairBuilder, Verdict};
use swiftwater_units::{Bandwidth, Dir, Instant, PathId, Side};

const BOTH: [Direction; 2] = [Direction::ToServer, Direction::ToClient];

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn slow_link() -> LinkConfig {
    LinkConfig::default()
        .rate(Bandwidth::from_mbps(10))
        .delay(millis(20))
}

#[test]
fn handshake_takes_the_time_that_the_link_says() {
    for cipher in [Cipher::Null, Cipher::Tls] {
        let link = LinkConfig::default().delay(millis(50));
        let mut pair = Pair::builder().cipher(cipher).link(link).build().unwrap();
        assert!(pair.connect());
        // One round trip for the client; the confirmation at the client needs another half each way.
        let handshake = pair.stats(Side::Client).handshake_duration;
        assert_eq!(handshake, Some(millis(100)), "{cipher:?}");
        assert_eq!(pair.now(), Instant::from_millis(200), "{cipher:?}");
    }
}

#[test]
fn transfers_arrive_verified_in_both_directions_with_both_ciphers() {
    for cipher in [Cipher::Null, Cipher::Tls] {
        let builder = Pair::builder().cipher(cipher).link(slow_link());
        let mut pair = builder.build().unwrap();
        assert!(pair.connect());
        for direction in BOTH {
            let report = pair.transfer(1_000_000, direction);
            assert!(report.verified, "{cipher:?} {direction:?}: {report:?}");
            assert_eq!(report.received, 1_000_000);
            // 10 Mbit/s carry a megabyte in 0.8 s at best.
            let took = report.finish - report.start;
            assert!(took > millis(800), "{took:?}");
            assert!(took < millis(1_400), "{took:?}");
        }
    }
}

#[test]
fn many_transfers_share_a_connection() {
    let mut pair = Pair::builder().link(slow_link()).build().unwrap();
    assert!(pair.connect());
    // More than the peer permits at once.
    let ids: Vec<_> = (0..300)
        .map(|nth| pair.start_transfer(100 + nth, BOTH[nth as usize % 2]))
        .collect();
    assert!(pair.finish_transfers());
    assert!(ids.iter().all(|id| pair.transfer_report(*id).verified));
}

#[test]
fn same_seed_same_run_to_the_last_byte() {
    let run = |seed| {
        let mut pair = lossy(seed, Cipher::Null, true).build().unwrap();
        assert!(pair.connect());
        assert!(pair.transfer(300_000, Direction::ToServer).verified);
        let log = pair.log().unwrap();
        (log.digest(), log.len(), pair.now())
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

#[test]
fn same_seed_same_times_and_sizes_with_real_keys() {
    let run = |cipher| {
        let mut pair = lossy(5, cipher, false).build().unwrap();
        assert!(pair.connect());
        assert!(pair.transfer(300_000, Direction::ToClient).verified);
        pair.log().unwrap().entries().to_vec()
    };
    let tls = run(Cipher::Tls);
    assert_eq!(tls, run(Cipher::Tls));
    assert_eq!(tls, run(Cipher::Null), "the null cipher keeps all sizes");
}

fn lossy(seed: u64, cipher: Cipher, content: bool) -> PairBuilder {
    let link = slow_link().loss(LossModel::Bernoulli(0.05));
    let detail = LogDetail {
        entries: true,
        content,
    };
    Pair::builder()
        .seed(seed)
        .cipher(cipher)
        .link(link)
        .log(detail)
}

#[test]
fn every_datagram_is_accounted_for() {
    let mut pair = lossy(9, Cipher::Null, false).build().unwrap();
    assert!(pair.connect());
    assert!(pair.transfer(500_000, Direction::ToServer).verified);
    let now = pair.now();
    pair.client().close(now, 0, b"");
    assert!(pair.run_to_end());
    pair.advance(millis(1_000));
    for (direction, side) in [
        (Direction::ToServer, Side::Client),
        (Direction::ToClient, Side::Server),
    ] {
        let counters = *pair.counters(direction);
        let sent = pair.stats(side).datagrams_sent;
        let received = pair.stats(direction.receiver()).datagrams_received;
        assert_eq!(pair.offered(direction), sent);
        assert_eq!(counters.enqueued.packets.get(), sent);
        assert_eq!(
            counters.enqueued.packets,
            counters.delivered.packets + counters.dropped().packets
        );
        // After a side has ended, its endpoint drops packets that still arrive.
        assert!(counters.delivered.packets.get() >= received);
    }
    let log = pair.log().unwrap();
    let count = |fate| {
        log.entries()
            .iter()
            .filter(|entry| entry.fate == fate)
            .count() as u64
    };
    let delivered: u64 = BOTH
        .iter()
        .map(|direction| pair.counters(*direction).delivered.packets.get())
        .sum();
    assert_eq!(count(LogFate::Accepted), delivered);
    assert_eq!(count(LogFate::Arrived), delivered);
}

#[test]
fn a_dropped_datagram_never_arrives_and_the_rest_does() {
    let mut pair = Pair::builder()
        .log(LogDetail {
            entries: true,
            content: false,
        })
        .build()
        .unwrap();
    pair.drop_datagram(Direction::ToServer, 0);
    assert!(pair.connect());
    let entries = pair.log().unwrap().entries();
    assert_eq!(entries[0].fate, LogFate::Tapped);
    let tapped = entries.iter().filter(|entry| entry.fate == LogFate::Tapped);
    assert_eq!(tapped.count(), 1);
    // The client's first flight was repeated after a probe timeout of about a second.
    let handshake = pair.stats(Side::Client).handshake_duration.unwrap();
    assert!(handshake > millis(900), "{handshake:?}");
}

#[test]
fn taps_can_delay_change_and_record() {
    let mut pair = Pair::builder().build().unwrap();
    let recording = pair.record(Direction::ToServer);
    pair.tap(Direction::ToServer, |datagram| match datagram.index {
        0 => Verdict::Delay(millis(100)),
        _ => Verdict::Pass,
    });
    pair.corrupt_datagram(Direction::ToClient, 0);
    assert!(pair.connect());
    let handshake = pair.stats(Side::Client).handshake_duration.unwrap();
    assert!(handshake >= millis(120), "{handshake:?}");
    assert_eq!(recording.len() as u64, pair.offered(Direction::ToServer));
    let first = &recording.datagrams()[0];
    assert_eq!(first.at, Instant::ZERO);
    assert!(first.data.len() >= 1_200);
    assert_eq!(recording.bytes(), pair.stats(Side::Client).bytes_sent.get());
}

#[test]
fn injected_datagrams_reach_the_endpoint() {
    let mut pair = Pair::builder().build().unwrap();
    assert!(pair.connect());
    let stranger = ([203, 0, 113, 9], 1_000).into();
    let host = pair.host(Side::Server);
    let before = pair.network().endpoint_stats(host);
    pair.inject(Direction::ToServer, &[0x40; 10], Some(stranger));
    let after = pair.network().endpoint_stats(host);
    assert_ne!(before, after);
    assert!(pair.transfer(10_000, Direction::ToServer).verified);
}

#[test]
fn the_server_sees_a_rebound_client_at_its_new_address() {
    let mut pair = Pair::builder().link(slow_link()).build().unwrap();
    assert!(pair.connect());
    let id = pair.start_transfer(2_000_000, Direction::ToServer);
    pair.advance(millis(500));
    let address = ([192, 0, 2, 77], 5_000).into();
    pair.rebind(Side::Client, address).unwrap();
    assert!(pair.finish_transfers());
    assert!(pair.transfer_report(id).verified);
    assert_eq!(pair.server().remote(), address);
    let moved = Event::PeerMoved {
        path: PathId::ZERO,
        remote: address,
    };
    assert!(pair.events(Side::Server).contains(&moved));
    assert_eq!(pair.address(Side::Client), address);
    // Acknowledgements on their way to the old address were lost.
    assert!(pair.network().stats().misdelivered > 0);
}

#[test]
fn an_address_can_be_had_once() {
    let mut pair = Pair::builder().build().unwrap();
    let servers = pair.address(Side::Server);
    assert!(pair.rebind(Side::Client, servers).is_err());
    let own = pair.address(Side::Client);
    assert!(pair.rebind(Side::Client, own).is_ok());
}

#[test]
fn a_retry_costs_a_round_trip() {
    let link = LinkConfig::default().delay(millis(50));
    let builder = Pair::builder().retry(RetryPolicy::Always).link(link);
    let mut pair = builder.build().unwrap();
    assert!(pair.connect());
    let handshake = pair.stats(Side::Client).handshake_duration;
    assert_eq!(handshake, Some(millis(200)));
    let host = pair.host(Side::Server);
    assert_eq!(pair.network().endpoint_stats(host).retries_sent, 1);
}

#[test]
fn a_restarted_server_resets_the_connection() {
    let mut pair = Pair::builder().build().unwrap();
    assert!(pair.connect());
    pair.restart(Side::Server);
    pair.client().ping();
    assert!(pair.run_until(|pair| pair.client().is_closed()));
    let reason = pair.client().close_reason().cloned();
    assert_eq!(reason, Some(swiftwater_quic::ConnectionError::Reset));
}

#[test]
fn streams_opened_by_hand_are_left_to_the_test() {
    let mut pair = Pair::builder().build().unwrap();
    assert!(pair.connect());
    let id = pair.client().open(Dir::Bi).unwrap();
    assert_eq!(pair.client().send_stream(id).write(b"hello"), Ok(5));
    pair.advance(millis(100));
    assert_eq!(pair.server().accept(Dir::Bi), Some(id));
    let mut buffer = [0; 16];
    let outcome = pair.server().recv_stream(id).read(&mut buffer);
    assert_eq!(outcome, Ok(swiftwater_quic::ReadOutcome::Data(5)));
    assert_eq!(&buffer[..5], b"hello");
}

#[test]
fn closing_ends_both_sides() {
    let mut pair = Pair::builder().build().unwrap();
    assert!(pair.connect());
    let now = pair.now();
    pair.client().close(now, 7, b"bye");
    assert!(pair.run_to_end());
    let closed = |event: &Event| matches!(event, Event::Closed { .. });
    for side in [Side::Client, Side::Server] {
        let events = pair.events(side);
        assert_eq!(events.iter().filter(|event| closed(event)).count(), 1);
        assert_eq!(events.last(), Some(&Event::Drained));
        assert!(pair.view(side).unwrap().is_drained());
    }
    let sent = BOTH.map(|direction| pair.offered(direction));
    pair.advance(Duration::from_secs(3_600));
    assert_eq!(sent, BOTH.map(|direction| pair.offered(direction)));
    assert!(!pair.step(), "nothing happens after the end");
}
