//! Datagrams of the application that fill no packet: packets of one size leave together all the same.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod support;

use std::time::Duration;

use swiftwater_quic::{RetryPolicy, Transmit, TransportConfig};

use support::{Wire, establish};

/// The most packets of a batch that the driver asks for.
const MAX_SEGMENTS: usize = 16;

/// A connection whose handshake and its acknowledgements are over.
fn quiet() -> Wire {
    let config = TransportConfig {
        pacing: false,
        mtu_discovery: None,
        ..TransportConfig::default()
    };
    let mut wire = Wire::with(true, RetryPolicy::Never, config);
    establish(&mut wire);
    for _ in 0..20 {
        wire.step(Duration::from_millis(100));
    }
    wire
}

/// The batches in which the client sends datagrams of these sizes, bytes.
fn batches(sizes: &[usize]) -> Vec<Transmit> {
    let mut wire = quiet();
    let now = wire.now;
    let connection = wire.client.connection();
    for (nth, size) in sizes.iter().enumerate() {
        connection
            .send_datagram(vec![nth as u8; *size].into())
            .unwrap();
    }
    let mut buf = vec![0; 65_527];
    std::iter::from_fn(|| connection.poll_transmit(now, MAX_SEGMENTS, &mut buf)).collect()
}

/// Packets of each batch.
fn packets(batches: &[Transmit]) -> Vec<usize> {
    let packets = batches.iter().map(|batch| {
        let segment = batch.segment_size.unwrap_or(batch.size);
        batch.size.div_ceil(segment)
    });
    packets.collect()
}

#[test]
fn packets_of_equal_size_leave_together() {
    let sent = batches(&[1_000; 8]);
    assert_eq!(packets(&sent), [8], "{sent:?}");
    let segment = sent[0].segment_size.unwrap();
    assert!((1_000..1_100).contains(&segment), "{segment}");
    assert_eq!(sent[0].size, 8 * segment);
}

#[test]
fn the_last_packet_may_be_shorter() {
    let sent = batches(&[1_000, 1_000, 1_000, 700, 1_000]);
    // What follows the shorter one is the next batch.
    assert_eq!(packets(&sent), [4, 1], "{sent:?}");
}

#[test]
fn a_larger_one_begins_a_batch() {
    let sent = batches(&[700, 1_000, 1_000, 1_000]);
    assert_eq!(packets(&sent), [1, 3], "{sent:?}");
    assert!(sent[0].size < 800, "{sent:?}");
}

#[test]
fn small_ones_share_packets() {
    let sent = batches(&[100; 20]);
    let total: usize = sent.iter().map(|batch| batch.size).sum();
    // As many as fit into each packet: none is cut to the size of a short one.
    assert_eq!(packets(&sent).iter().sum::<usize>(), 2, "{sent:?}");
    assert!(total < 2_200, "{total}");
}
