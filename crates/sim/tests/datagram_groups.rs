//! Datagrams of several groups on one connection, such as tunnels of one client: shares and waiting times.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use swiftwater_quic::{DatagramOptions, SendDatagramError};
use swiftwater_sim::Pair;
use swiftwater_units::{Instant, Side};

use crate::support::{link, millis, path, secs};

const LINK_MBPS: u64 = 10;

fn connected() -> Pair {
    let mut pair = Pair::builder().link(link(LINK_MBPS, 10)).build().unwrap();
    assert!(pair.connect());
    pair.advance(millis(200));
    pair
}

/// A datagram of source `source`, of `len` bytes.
fn of(source: u8, len: usize) -> Bytes {
    vec![source; len].into()
}

/// Sends until there is no room.
fn flood(pair: &mut Pair, source: u8, len: usize, options: DatagramOptions) {
    loop {
        let sent = pair.client().send_datagram_with(of(source, len), options);
        match sent {
            Ok(()) => {}
            Err(SendDatagramError::Blocked) => return,
            Err(error) => panic!("{error}"),
        }
    }
}

/// The sources and sizes of what the server received.
fn received(pair: &mut Pair) -> Vec<(u8, usize)> {
    let mut all = Vec::new();
    while let Some(data) = pair.connection(Side::Server).unwrap().recv_datagram() {
        all.push((data[0], data.len()));
    }
    all
}

fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    sum * sum / (shares.len() as f64 * squares)
}

/// For how much longer than the longest round trip 95 % of small datagrams, one each 20 ms beside a flood of group 1, are on
/// the way to the server at most; and how many find no room.
fn delay_beside_a_flood(group: u64) -> (Duration, usize) {
    let mut pair = connected();
    let options = DatagramOptions::default();
    let (mut sent, mut delays) = (VecDeque::<Instant>::new(), Vec::new());
    let (mut refused, mut longest_rtt) = (0, Duration::ZERO);
    // A round of a millisecond: more often than the flood's datagrams leave.
    for round in 0..5_000 {
        flood(&mut pair, 1, 1_100, options.with_group(1));
        if round % 20 == 0 {
            let small = pair
                .client()
                .send_datagram_with(of(2, 100), options.with_group(group));
            match small {
                Ok(()) => sent.push_back(pair.now()),
                Err(_) => refused += 1,
            }
        }
        pair.advance(millis(1));
        longest_rtt = longest_rtt.max(path(&pair, Side::Client).smoothed_rtt);
        for (source, _) in received(&mut pair) {
            if source == 2 {
                delays.push(pair.now() - sent.pop_front().unwrap());
            }
        }
    }
    delays.sort_unstable();
    let delay = delays
        .get(delays.len() * 95 / 100)
        .copied()
        .unwrap_or(Duration::MAX);
    (delay.saturating_sub(longest_rtt), refused)
}

#[test]
fn a_flood_does_not_keep_another_group_waiting() {
    // What groups are for: in one with the flood, most find no room at all, and the rest waits for a queue of 1 MiB.
    let (delay, refused) = delay_beside_a_flood(1);
    assert!(refused > 200 || delay > millis(500), "{refused} {delay:?}");
    let (delay, refused) = delay_beside_a_flood(2);
    assert_eq!(refused, 0);
    // What waits in the link's own queue is part of the round trip.
    assert!(delay < millis(10), "{delay:?}");
}

#[test]
fn floods_share_equally_whatever_their_sizes_and_numbers() {
    for sizes in [&[1_100, 1_100][..], &[1_100, 300], &[1_100, 700, 300, 200]] {
        let mut pair = connected();
        let mut bytes = vec![0.0; sizes.len()];
        for round in 0..4_000 {
            for (source, len) in sizes.iter().enumerate() {
                let options = DatagramOptions::default().with_group(source as u64);
                flood(&mut pair, source as u8, *len, options);
            }
            pair.advance(millis(1));
            for (source, len) in received(&mut pair) {
                // Not the queue that the first one had for itself at the beginning.
                if round > 1_500 {
                    bytes[usize::from(source)] += len as f64;
                }
            }
        }
        let index = jain(&bytes);
        assert!(index >= 0.95, "{sizes:?}: {index} {bytes:?}");
        // And the link is full.
        let total: f64 = bytes.iter().sum();
        let least = 0.6 * (LINK_MBPS as f64 * 1e6 / 8.0) * 2.5;
        assert!(total > least, "{sizes:?}: {total}");
    }
}

#[test]
fn a_group_alone_has_the_whole_link_and_its_order() {
    let mut pair = connected();
    let options = DatagramOptions::default().with_group(7);
    for number in 0..200 {
        let sent = pair.client().send_datagram_with(of(number, 500), options);
        sent.unwrap();
    }
    pair.advance(secs(1));
    let sources: Vec<u8> = received(&mut pair)
        .iter()
        .map(|(source, _)| *source)
        .collect();
    assert!(sources.iter().copied().eq(0..200));
}

#[test]
fn urgency_goes_before_turns() {
    let mut pair = connected();
    let options = DatagramOptions::default();
    for _ in 0..50 {
        for group in 0..4 {
            let sent = pair
                .client()
                .send_datagram_with(of(group, 1_000), options.with_group(group.into()));
            sent.unwrap();
        }
    }
    let urgent = options.with_group(9).with_urgency(1);
    let sent = pair.client().send_datagram_with(of(9, 1_000), urgent);
    sent.unwrap();
    pair.advance(secs(1));
    let order = received(&mut pair);
    let at = order.iter().position(|(source, _)| *source == 9).unwrap();
    assert!(at < 20, "{at}");
    assert_eq!(order.len(), 201);
}
