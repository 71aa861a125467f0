//! Data that a sender buffers for a peer that doesn't read.

use swiftwater_quic::{TransportConfig, WriteError};
use swiftwater_sim::{Direction, Pair};
use swiftwater_units::{ByteCount, Dir, Side, StreamId};

use crate::support::{link, millis, path, secs};

/// Writes as much as is accepted to each of `streams`, repeatedly for `millis` of time.
fn fill(pair: &mut Pair, streams: &[StreamId], for_millis: u64) -> u64 {
    let data = vec![7; 1 << 20];
    let mut written = 0;
    for _ in 0..for_millis / 10 {
        for &id in streams {
            let taken: Result<usize, WriteError> = pair.client().send_stream(id).write(&data);
            written += taken.unwrap() as u64;
        }
        pair.advance(millis(10));
    }
    written
}

fn buffered(pair: &Pair) -> u64 {
    pair.stats(Side::Client).send_buffered.get()
}

fn pair(change: impl Fn(&mut TransportConfig)) -> Pair {
    let mut pair = Pair::builder()
        .link(link(20, 20))
        .server_config(|config| {
            // Each stream has more credit than the connection.
            config.stream_receive_window = ByteCount::new(1 << 20);
            config.receive_window = ByteCount::new(100_000);
            config.max_receive_window = ByteCount::new(100_000);
        })
        .client_config(|config| change(config))
        .build()
        .unwrap();
    assert!(pair.connect());
    pair
}

/// Streams that the server never reads of.
fn unread(pair: &mut Pair) -> Vec<StreamId> {
    let client = pair.client();
    (0..20).map(|_| client.open(Dir::Bi).unwrap()).collect()
}

#[test]
fn little_is_kept_beyond_the_connections_credit() {
    // Whatever the window would permit.
    let mut pair = pair(|config| config.unsent_window = ByteCount::new(16 << 20));
    let streams = unread(&mut pair);
    let written = fill(&mut pair, &streams, 3_000);
    assert!(written >= 100_000, "{written}");
    // What there was credit for when it was written, 64 KiB, and 8 KiB of each stream.
    let most = 100_000 + ((64 + 20 * 8) << 10);
    assert!(written <= 100_000 + most, "{written}");
    assert!(buffered(&pair) <= most, "{}", buffered(&pair));
}

#[test]
fn the_buffer_follows_the_congestion_window() {
    let mut pair = Pair::builder().link(link(1, 50)).build().unwrap();
    assert!(pair.connect());
    let transfer = pair.start_transfer(3_000_000, Direction::ToServer);
    for _ in 0..1_000 {
        pair.advance(millis(10));
        let path = path(&pair, Side::Client);
        let cwnd = path.cwnd.get();
        // In flight, behind losses that are being repaired, and unsent.
        let most = 2 * path.bytes_in_flight.get().max(cwnd) + cwnd.max(256 << 10);
        assert!(buffered(&pair) <= most, "{} {cwnd}", buffered(&pair));
    }
    assert!(pair.finish_transfers());
    let report = pair.transfer_report(transfer);
    // No time was lost: 3 MB at 1 Mbit/s.
    assert!(report.finish - report.start < secs(26), "{report:?}");
}

#[test]
fn a_fast_path_is_filled_as_before() {
    let mut pair = Pair::builder().link(link(200, 50)).build().unwrap();
    assert!(pair.connect());
    let report = pair.transfer(100_000_000, Direction::ToServer);
    assert!(report.verified);
    // 4 s at the link's rate, and the slow start.
    assert!(report.finish - report.start < secs(6), "{report:?}");
}

/// Blocked writers are served in the order of sending: a late urgent one doesn't wait for many others.
#[test]
fn the_most_urgent_writer_is_woken_first() {
    let mut pair = Pair::builder().link(link(2, 20)).build().unwrap();
    assert!(pair.connect());
    for _ in 0..50 {
        pair.start_transfer(500_000, Direction::ToServer);
    }
    pair.advance(secs(5));
    let before = pair.now();
    let urgent = pair.start_transfer(600_000, Direction::ToServer);
    let id = StreamId::new(Side::Client, Dir::Uni, 50);
    let first = swiftwater_quic::Priority::new(0, false);
    pair.client().send_stream(id).set_priority(first).unwrap();
    assert!(pair.run_until(|pair| pair.transfer_report(urgent).verified));
    // 600 kB at 2 Mbit/s, less the share of the others, take about 2.7 s; all take more than 100 s.
    let took = pair.now() - before;
    assert!(took < secs(6), "{took:?}");
}
