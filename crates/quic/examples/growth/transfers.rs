//! Data on one connection: over many streams, with losses, over long paths.

use std::time::Duration;

use swiftwater_quic::TransportConfig;
use swiftwater_units::{ByteCount, Dir, StreamId};

use crate::clock::processor_time;
use crate::fit::Curve;
use crate::wire::{Link, Wire};

const MEGABYTE: u64 = 1 << 20;

/// Written at a time.
const CHUNK: usize = 1 << 14;

/// Times that each time is measured.
const REPEATS: usize = 3;

fn transport() -> TransportConfig {
    TransportConfig {
        max_concurrent_uni_streams: 20_000,
        receive_window: ByteCount::new(64 * MEGABYTE),
        stream_receive_window: ByteCount::new(32 * MEGABYTE),
        max_receive_window: ByteCount::new(64 * MEGABYTE),
        max_stream_receive_window: ByteCount::new(32 * MEGABYTE),
        send_window: ByteCount::new(32 * MEGABYTE),
        initial_max_datagram_size: 1452,
        mtu_discovery: None,
        ..TransportConfig::default()
    }
}

fn perfect(round_trip: Duration) -> (Link, Link) {
    let link = |seed| Link::new(round_trip / 2, None, 0.0, seed);
    (link(1), link(2))
}

fn open(wire: &mut Wire, count: usize) -> Vec<StreamId> {
    (0..count)
        .map(|_| {
            wire.client
                .call(|end| end.connection().open(Dir::Uni))
                .unwrap()
        })
        .collect()
}

/// Sends `bytes` on each stream; returns nanoseconds.
fn send(wire: &mut Wire, streams: &[StreamId], bytes: u64) -> f64 {
    let data = vec![7; CHUNK];
    let goal = wire.delivered + bytes * streams.len() as u64;
    let mut left = vec![bytes; streams.len()];
    let mut unfinished: Vec<usize> = (0..streams.len()).collect();
    let started = processor_time();
    while wire.delivered < goal {
        let mut blocked = false;
        unfinished.retain(|&nth| {
            if blocked {
                return true;
            }
            let want = left[nth].min(CHUNK as u64) as usize;
            let wrote = (wire.client).call(|end| {
                end.connection()
                    .send_stream(streams[nth])
                    .write(&data[..want])
            });
            let wrote = wrote.unwrap();
            left[nth] -= wrote as u64;
            blocked = wrote == 0;
            left[nth] > 0
        });
        wire.step();
        wire.read();
    }
    processor_time().saturating_sub(started).as_nanos() as f64
}

pub(crate) fn streams(quick: bool) -> Vec<Curve> {
    let (mut times, mut heap) = (Vec::new(), Vec::new());
    let most = if quick { 1000 } else { 10_000 };
    for count in [1, 10, 100, 1000, 10_000]
        .into_iter()
        .filter(|n| *n <= most)
    {
        let each = (8 * MEGABYTE / count as u64).max(4096);
        let least = (0..REPEATS)
            .map(|_| {
                let (up, down) = perfect(Duration::from_micros(100));
                let mut wire = Wire::established(transport(), up, down);
                let streams = open(&mut wire, count);
                send(&mut wire, &streams, each)
            })
            .fold(f64::MAX, f64::min);
        let x = count as f64;
        times.push((x, least / (each * count as u64) as f64));
        let (up, down) = perfect(Duration::from_micros(100));
        let mut wire = Wire::established(transport(), up, down);
        wire.server.counts = true;
        let streams = open(&mut wire, count);
        send(&mut wire, &streams, 1000);
        heap.push((x, wire.server.heap as f64 / x));
    }
    let curve = |cost, points| Curve {
        of: "open streams",
        cost,
        points,
    };
    vec![
        curve("data over all of them, both ends, ns per byte", times),
        curve("heap of the receiver after 1 kB on each, bytes each", heap),
    ]
}

/// Time for each packet that the client sent, and the most heap that it took beyond the bytes that its
/// application may have buffered.
fn transfer(megabytes: u64, send_window: u64, links: impl Fn() -> (Link, Link)) -> (f64, f64) {
    let transport = || TransportConfig {
        send_window: ByteCount::new(send_window),
        ..transport()
    };
    let mut least = f64::MAX;
    for _ in 0..REPEATS {
        let (up, down) = links();
        let mut wire = Wire::established(transport(), up, down);
        let streams = open(&mut wire, 1);
        let time = send(&mut wire, &streams, megabytes * MEGABYTE);
        let packets = wire.client.connection().stats().datagrams_sent;
        least = least.min(time / packets as f64);
    }
    let (up, down) = links();
    let mut wire = Wire::established(transport(), up, down);
    wire.client.counts = true;
    let streams = open(&mut wire, 1);
    send(&mut wire, &streams, megabytes * MEGABYTE);
    (least, wire.client.most_heap as f64 - send_window as f64)
}

pub(crate) fn loss(quick: bool) -> Vec<Curve> {
    let (mut times, mut heap) = (Vec::new(), Vec::new());
    let megabytes = if quick { 2 } else { 8 };
    for percent in [0.0, 0.1, 0.3, 1.0, 3.0, 10.0] {
        let half = Duration::from_millis(10);
        let (time, most) = transfer(megabytes, MEGABYTE, || {
            (
                Link::new(half, None, percent / 100.0, 3),
                Link::new(half, None, percent / 100.0, 4),
            )
        });
        times.push((percent, time));
        heap.push((percent, most));
    }
    let curve = |cost, points| Curve {
        of: "loss both ways in percent (RTT 20 ms)",
        cost,
        points,
    };
    vec![
        curve("both ends, ns per packet sent", times),
        curve(
            "most heap of the sender beyond its send window, bytes",
            heap,
        ),
    ]
}

pub(crate) fn round_trips(quick: bool) -> Vec<Curve> {
    /// 100 Mbit/s.
    const RATE: f64 = 12_500_000.0;
    let (mut times, mut heap) = (Vec::new(), Vec::new());
    let megabytes = if quick { 8 } else { 40 };
    for millis in [1, 3, 10, 30, 100, 300, 500] {
        let half = Duration::from_millis(millis) / 2;
        let product = RATE * millis as f64 / 1e3;
        let queue = product.max(65_536.0);
        // What fits into path and queue, and is not acknowledged yet.
        let window = (product + 2.0 * queue) as u64;
        let (time, most) = transfer(megabytes, window, || {
            (
                Link::new(half, Some((RATE, queue)), 0.0, 5),
                Link::new(half, None, 0.0, 6),
            )
        });
        times.push((millis as f64, time));
        heap.push((millis as f64, most));
    }
    let curve = |cost, points| Curve {
        of: "RTT in ms (100 Mbit/s)",
        cost,
        points,
    };
    vec![
        curve("both ends, ns per packet sent", times),
        curve(
            "most heap of the sender beyond its send window, bytes",
            heap,
        ),
    ]
}
