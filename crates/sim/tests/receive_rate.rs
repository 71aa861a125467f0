//! A receiver that limits the rate of its peer.

use std::time::Duration;

use swiftwater_link::LossModel;
use swiftwater_sim::{Direction, Pair};
use swiftwater_units::{Bandwidth, ByteCount, Side};

use crate::support::{link, millis, path, secs};

fn received(pair: &Pair) -> u64 {
    pair.stats(Side::Client).stream_bytes_received.get()
}

/// Goodput over the next `time`.
fn goodput(pair: &mut Pair, time: Duration) -> Bandwidth {
    let (before, start) = (received(pair), pair.now());
    pair.advance(time);
    Bandwidth::from_transfer(received(pair) - before, pair.now() - start)
}

#[track_caller]
fn assert_within(got: Bandwidth, wanted: Bandwidth, share: f64) {
    let ratio = got.as_bps() as f64 / wanted.as_bps() as f64;
    assert!(
        (1.0 - share..=1.0 + share).contains(&ratio),
        "{got}, not {wanted}"
    );
}

#[test]
fn goodput_keeps_to_the_limit() {
    for (delay, kbps) in [
        (2, 500),
        (2, 40_000),
        (20, 5_000),
        (20, 30_000),
        (100, 2_000),
        (100, 20_000),
    ] {
        let rate = Bandwidth::from_kbps(kbps);
        let mut pair = Pair::builder()
            .link(link(100, delay))
            .client_config(|config| config.receive_rate = Some(rate))
            .build()
            .unwrap();
        assert!(pair.connect());
        pair.start_transfer(1 << 30, Direction::ToClient);
        // The sender's slow start comes first.
        pair.advance(secs(2));
        for _ in 0..4 {
            assert_within(goodput(&mut pair, secs(1)), rate, 0.05);
        }
        assert_eq!(path(&pair, Side::Server).lost_packets.get(), 0);
    }
}

#[test]
fn a_short_transfer_is_limited_too() {
    for delay in [1, 25, 200] {
        let rate = Bandwidth::from_mbps(20);
        let mut pair = Pair::builder()
            .link(link(1_000, delay))
            .client_config(|config| config.receive_rate = Some(rate))
            .build()
            .unwrap();
        assert!(pair.connect());
        let report = pair.transfer(1_000_000, Direction::ToClient);
        // The first grant, of 100 ms, and data in flight and saved credit.
        let ahead = millis(100) + millis(2 * delay).mul_f64(1.25) + millis(20);
        let least = 1_000_000_u64.saturating_sub(rate.bytes_in(ahead));
        let took = report.finish - report.start;
        assert!(took >= rate.time_to_send(least), "{delay} ms: {took:?}");
    }
}

#[test]
fn the_limit_can_change_at_any_time() {
    let mut pair = Pair::builder().link(link(50, 25)).build().unwrap();
    assert!(pair.connect());
    pair.start_transfer(1 << 30, Direction::ToClient);
    pair.advance(secs(3));
    let unlimited = goodput(&mut pair, secs(2));
    assert!(unlimited > Bandwidth::from_mbps(45), "{unlimited}");
    for mbps in [10, 2, 20, 5] {
        let now = pair.now();
        let rate = Bandwidth::from_mbps(mbps);
        pair.client().set_receive_rate(now, Some(rate));
        // Credit that the sender has already is used up first, and made up for within a second.
        pair.advance(secs(3));
        assert_within(goodput(&mut pair, secs(2)), rate, 0.05);
    }
    let now = pair.now();
    pair.client().set_receive_rate(now, None);
    pair.advance(secs(3));
    let again = goodput(&mut pair, secs(2));
    assert!(again > Bandwidth::from_mbps(45), "{again}");
}

#[test]
fn the_stream_flows_smoothly() {
    let rate = Bandwidth::from_mbps(8);
    let mut pair = Pair::builder()
        .link(link(100, 25))
        .client_config(|config| config.receive_rate = Some(rate))
        .build()
        .unwrap();
    assert!(pair.connect());
    pair.start_transfer(1 << 30, Direction::ToClient);
    pair.advance(secs(2));
    // 50 ms, one round trip, at a time.
    for _ in 0..20 {
        assert_within(goodput(&mut pair, millis(50)), rate, 0.25);
    }
}

#[test]
fn small_windows_and_losses_do_not_stop_it() {
    let rate = Bandwidth::from_mbps(2);
    for window in [2_000, 10_000, 100_000] {
        let mut pair = Pair::builder()
            .link(link(20, 10).loss(LossModel::Bernoulli(0.02)))
            .client_config(|config| {
                config.receive_rate = Some(rate);
                config.receive_window = ByteCount::new(window);
                config.max_receive_window = ByteCount::new(window);
                config.stream_receive_window = ByteCount::new(window);
                config.max_stream_receive_window = ByteCount::new(window);
            })
            .build()
            .unwrap();
        assert!(pair.connect());
        let report = pair.transfer(400_000, Direction::ToClient);
        assert!(report.verified, "window {window}: {report:?}");
        // Before anything is granted the peer has credit for 100 ms.
        let most = rate.bytes_in(report.finish - report.start + millis(150));
        assert!(400_000 <= most, "window {window}: {report:?}");
    }
}

#[test]
fn an_idle_connection_has_no_wakeups() {
    let mut pair = Pair::builder()
        .link(link(20, 10))
        .client_config(|config| config.receive_rate = Some(Bandwidth::from_mbps(1)))
        .build()
        .unwrap();
    assert!(pair.connect());
    pair.transfer(200_000, Direction::ToClient);
    pair.advance(secs(2));
    let sent = pair.stats(Side::Client).packets_sent;
    pair.advance(secs(10));
    assert_eq!(pair.stats(Side::Client).packets_sent, sent);
}
