//! Unreliable datagrams (RFC 9221): what arrives, what is refused, what is dropped.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod support;

use std::collections::BTreeSet;

use bytes::Bytes;
use swiftwater_link::LossModel;
use swiftwater_quic::{Event, SendDatagramError};
use swiftwater_sim::{Cipher, Direction, Pair, PairBuilder};
use swiftwater_units::{ByteCount, Side};

use support::{BOTH, SIDES, count, link, millis, path, secs};

fn connected(builder: PairBuilder) -> Pair {
    let mut pair = builder.build().unwrap();
    assert!(pair.connect());
    pair.advance(millis(200));
    pair
}

/// The datagram number `nth`, of `len` bytes.
fn numbered(nth: u32, len: usize) -> Bytes {
    let mut data = nth.to_be_bytes().to_vec();
    data.resize(len.max(4), nth as u8);
    data.into()
}

/// Reads all received datagrams; the numbers, after checking the content.
fn receive(pair: &mut Pair, side: Side) -> Vec<u32> {
    let mut numbers = Vec::new();
    while let Some(data) = pair.connection(side).unwrap().recv_datagram() {
        let nth = u32::from_be_bytes(data[..4].try_into().unwrap());
        assert!(data == numbered(nth, data.len()), "{nth} is damaged");
        numbers.push(nth);
    }
    numbers
}

#[test]
fn datagrams_arrive_in_both_directions_in_order() {
    for cipher in [Cipher::Null, Cipher::Tls] {
        for side in SIDES {
            let mut pair = connected(Pair::builder().cipher(cipher).link(link(20, 20)));
            for nth in 0..200 {
                let data = numbered(nth, 4 + nth as usize * 5);
                pair.connection(side).unwrap().send_datagram(data).unwrap();
            }
            let start = pair.now();
            let mut got = Vec::new();
            assert!(pair.run_until(|pair| {
                got.extend(receive(pair, !side));
                got.len() == 200
            }));
            assert!(got.iter().copied().eq(0..200), "{cipher:?} {side:?}");
            // 100 kB, so slow start rather than the link.
            assert!(pair.now() - start < millis(300), "{:?}", pair.now() - start);
        }
    }
}

#[test]
fn an_event_tells_of_the_first_unread_datagram() {
    let mut pair = connected(Pair::builder().link(link(20, 20)));
    let told = |pair: &Pair| {
        count(pair, Side::Server, |event| {
            *event == Event::DatagramReceived
        })
    };
    for round in 1..=3 {
        for nth in 0..5 {
            pair.client().send_datagram(numbered(nth, 10)).unwrap();
        }
        pair.advance(millis(100));
        assert_eq!(told(&pair), round, "one event until all are read");
        assert_eq!(receive(&mut pair, Side::Server).len(), 5);
    }
}

#[test]
fn lost_datagrams_are_not_sent_again() {
    let mut arrived_in_all = 0;
    for seed in 0..10 {
        let lossy = link(20, 20).loss(LossModel::Bernoulli(0.1));
        let mut pair = connected(Pair::builder().seed(seed).links(lossy, link(20, 20)));
        let mut got = Vec::new();
        for nth in 0..300 {
            // Each in a separate packet, spaced so that the window is no limit.
            pair.client().send_datagram(numbered(nth, 1_000)).unwrap();
            pair.advance(millis(50));
            got.extend(receive(&mut pair, Side::Server));
        }
        pair.advance(secs(2));
        got.extend(receive(&mut pair, Side::Server));
        let unique: BTreeSet<_> = got.iter().collect();
        assert_eq!(unique.len(), got.len(), "none arrives twice");
        assert!(
            (240..=295).contains(&got.len()),
            "seed {seed}: {}",
            got.len()
        );
        arrived_in_all += got.len();
        let lost = path(&pair, Side::Client).lost_packets.get();
        assert!(
            lost + 20 > 300 - got.len() as u64,
            "losses are seen: {lost}"
        );
    }
    assert!((2_600..2_800).contains(&arrived_in_all), "{arrived_in_all}");
}

#[test]
fn one_too_large_is_refused_and_the_largest_arrives() {
    for (frame, expected) in [(None, None), (Some(400), Some(397))] {
        let mut pair = connected(
            Pair::builder()
                .link(link(20, 20))
                .server_config(move |config| {
                    config.max_datagram_frame_size = frame.or(config.max_datagram_frame_size);
                }),
        );
        let max = pair.client().max_datagram_size().unwrap();
        if let Some(expected) = expected {
            assert_eq!(max, expected);
        }
        assert!(max > 350 && max < 1_200, "{max}");
        let refused = pair.client().send_datagram(numbered(1, max + 1));
        assert_eq!(
            refused,
            Err(SendDatagramError::TooLarge { size: max + 1, max })
        );
        pair.client().send_datagram(numbered(2, max)).unwrap();
        pair.advance(millis(100));
        let data = pair.server().recv_datagram().unwrap();
        assert!(data == numbered(2, max));
    }
}

#[test]
fn a_peer_without_datagrams_gets_none() {
    let mut pair = connected(
        Pair::builder()
            .link(link(20, 20))
            .server_config(|config| config.max_datagram_frame_size = None),
    );
    assert_eq!(pair.client().max_datagram_size(), None);
    let refused = pair.client().send_datagram(numbered(1, 10));
    assert_eq!(refused, Err(SendDatagramError::Unsupported));
    // It may still send them itself.
    pair.server().send_datagram(numbered(2, 10)).unwrap();
    pair.advance(millis(100));
    assert_eq!(receive(&mut pair, Side::Client), [2]);
}

#[test]
fn before_the_handshake_they_are_refused() {
    let mut pair = Pair::builder().build().unwrap();
    pair.start().unwrap();
    assert_eq!(pair.client().max_datagram_size(), None);
    let refused = pair.client().send_datagram(numbered(1, 10));
    assert_eq!(refused, Err(SendDatagramError::Unsupported));
}

#[test]
fn the_sending_queue_is_bounded_and_tells_of_room() {
    let mut pair = connected(
        Pair::builder()
            .link(link(5, 20))
            .client_config(|config| config.datagram_queue = ByteCount::new(50_000)),
    );
    let mut sent = 0;
    let refused = loop {
        match pair.client().send_datagram(numbered(sent, 1_000)) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
    };
    // The queue counts a little more than the content.
    assert!((40..=50).contains(&sent), "{sent}");
    assert_eq!(refused, SendDatagramError::Blocked);
    assert!(pair.run_until(|pair| {
        pair.events(Side::Client)
            .contains(&Event::DatagramsUnblocked)
    }));
    pair.client().send_datagram(numbered(sent, 1_000)).unwrap();
    pair.advance(secs(1));
    assert!(receive(&mut pair, Side::Server).into_iter().eq(0..=sent));
}

#[test]
fn unread_datagrams_make_room_for_newer_ones() {
    let mut pair = connected(
        Pair::builder()
            .link(link(20, 20))
            .server_config(|config| config.datagram_queue = ByteCount::new(20_000)),
    );
    for nth in 0..100 {
        pair.client().send_datagram(numbered(nth, 1_000)).unwrap();
    }
    pair.advance(secs(1));
    let dropped = pair.stats(Side::Server).datagrams_dropped as u32;
    assert!((80..=85).contains(&dropped), "{dropped}");
    assert!(
        receive(&mut pair, Side::Server)
            .into_iter()
            .eq(dropped..100)
    );
}

#[test]
fn datagrams_and_streams_share_the_path() {
    for direction in BOTH {
        let mut pair = connected(Pair::builder().link(link(10, 20)));
        let side = direction.sender();
        let id = pair.start_transfer(1_000_000, direction);
        let mut got = Vec::new();
        for nth in 0..100 {
            pair.connection(side)
                .unwrap()
                .send_datagram(numbered(nth, 200))
                .unwrap();
            pair.advance(millis(10));
            got.extend(receive(&mut pair, !side));
        }
        assert!(pair.finish_transfers());
        pair.advance(secs(1));
        got.extend(receive(&mut pair, !side));
        assert!(
            got.iter().copied().eq(0..100),
            "{direction:?}: {}",
            got.len()
        );
        let report = pair.transfer_report(id);
        let took = report.finish - report.start;
        assert!(
            report.verified && took < millis(1_250),
            "{direction:?}: {took:?}"
        );
    }
}

#[test]
fn congestion_holds_datagrams_back_and_loses_none() {
    // 300 kB into 2 Mbit/s: the window and the pacer decide when they go.
    let mut pair = connected(Pair::builder().link(link(2, 20)));
    for nth in 0..300 {
        pair.client().send_datagram(numbered(nth, 1_000)).unwrap();
    }
    let start = pair.now();
    let mut got = Vec::new();
    assert!(pair.run_until(|pair| {
        got.extend(receive(pair, Side::Server));
        got.len() == 300
    }));
    let took = pair.now() - start;
    assert!((millis(1_200)..millis(1_700)).contains(&took), "{took:?}");
    assert_eq!(
        pair.counters(Direction::ToServer).dropped().packets.get(),
        0
    );
}
