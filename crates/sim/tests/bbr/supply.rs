//! Flows that something other than the path limits: the application, the peer, the handshake.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use swiftwater_link::{Buffer, LinkConfig};
use swiftwater_quic::TransportConfig;
use swiftwater_sim::{Direction, Pair, Verdict};
use swiftwater_units::{Bandwidth, ByteCount, Instant};

use super::recorder::{Log, Recorded};
use super::{RTT, share};

const MBPS: u64 = 20;

fn link(mbps: u64) -> LinkConfig {
    let rate = Bandwidth::from_mbps(mbps);
    LinkConfig::default()
        .rate(rate)
        .delay(RTT / 2)
        .buffer(Buffer::Bytes(rate.bytes_in(RTT).into()))
}

/// A pair whose client sends under this controller, with windows that don't limit it unless
/// `change` does.
fn pair(specification: &str, change: impl FnOnce(&mut TransportConfig)) -> (Pair, Log) {
    let (controller, log) = Recorded::new(specification);
    let plenty = ByteCount::new(8 << 20);
    let pair = Pair::builder()
        .link(link(MBPS))
        .client_config(move |config| {
            config.controller = controller;
            config.send_window = plenty;
            config.initial_max_datagram_size = 1_472;
        })
        .server_config(move |config| {
            config.stream_receive_window = plenty;
            config.max_stream_receive_window = plenty;
            config.receive_window = plenty;
            config.max_receive_window = plenty;
            change(config);
        })
        .build()
        .unwrap();
    (pair, log)
}

/// Sends a tenth of the link's rate, a piece each round trip.
fn trickle(pair: &mut Pair, time: Duration) {
    let piece = Bandwidth::from_mbps(MBPS / 10).bytes_in(RTT);
    let until = pair.now() + time;
    while pair.now() < until {
        pair.start_transfer(piece, Direction::ToServer);
        pair.advance(RTT);
    }
}

#[test]
fn a_flow_that_sent_little_reaches_the_link_rate_within_ten_round_trips() {
    for name in ["bbr1", "bbr1-xquic", "bbr2", "bbr3"] {
        let (mut pair, log) = pair(name, |_| {});
        assert!(pair.connect());
        trickle(&mut pair, Duration::from_secs(8));
        let last = log.entries().pop().unwrap();
        let bdp = Bandwidth::from_mbps(MBPS).bytes_in(RTT);
        assert!(last.cwnd < 3 * bdp, "{name}: a window of {}", last.cwnd);
        assert!(last.detail("full_pipe") < 0.5, "{name} is out of Startup");
        let start = pair.now();
        pair.start_transfer(20_000_000, Direction::ToServer);
        pair.advance(Duration::from_secs(1));
        let reached = (1..10).find(|&n| {
            let from = start + RTT * n;
            share(&log, MBPS, from, from + RTT) >= 0.9
        });
        assert!(reached.is_some(), "{name} isn't there after 10 round trips");
    }
}

#[test]
fn idle_time_is_no_reason_to_probe_for_the_round_trip_time() {
    for name in ["bbr1", "bbr2", "bbr3"] {
        let (mut pair, log) = pair(name, |_| {});
        assert!(pair.connect());
        assert!(pair.transfer(6_000_000, Direction::ToServer).verified);
        let before = log.visits("probe_rtt").len();
        pair.advance(Duration::from_secs(11));
        assert!(pair.transfer(1_000_000, Direction::ToServer).verified);
        assert_eq!(log.visits("probe_rtt").len(), before, "{name}");
    }
}

#[test]
fn a_slow_receiver_is_sampled_as_a_slow_path() {
    // A window of a fifth of the bandwidth-delay product.
    let window = ByteCount::new(Bandwidth::from_mbps(MBPS).bytes_in(RTT) / 5);
    for of_stream in [true, false] {
        let (mut pair, log) = pair("bbr3", |config| {
            if of_stream {
                config.stream_receive_window = window;
                config.max_stream_receive_window = window;
            } else {
                config.receive_window = window;
                config.max_receive_window = window;
            }
        });
        assert!(pair.connect());
        let start = pair.now();
        pair.start_transfer(3_000_000, Direction::ToServer);
        pair.advance(Duration::from_secs(3));
        let entries = log.entries();
        let samples = entries.iter().filter(|entry| entry.now > start + RTT * 4);
        let limited: Vec<_> = samples.filter_map(|entry| entry.is_app_limited).collect();
        let share = limited.iter().filter(|limited| **limited).count() as f64;
        assert!(limited.len() > 50);
        assert!(
            share / (limited.len() as f64) < 0.1,
            "{share} of {}",
            limited.len()
        );
        let last = entries.last().unwrap();
        assert!(last.detail("full_pipe") > 0.5, "Startup ends");
        assert!(last.cwnd < 4 * window.get(), "a window of {}", last.cwnd);
    }
}

#[test]
fn a_full_datagram_queue_is_not_an_idle_application() {
    let (mut pair, log) = pair("bbr1", |_| {});
    assert!(pair.connect());
    let start = pair.now();
    let payload = vec![7; 1_200];
    while pair.now() < start + Duration::from_secs(2) {
        while pair.client().send_datagram(payload.clone().into()).is_ok() {}
        pair.advance(Duration::from_millis(5));
        while pair.server().recv_datagram().is_some() {}
    }
    let entries = log.entries();
    let late = entries.iter().filter(|entry| entry.now > start + RTT * 10);
    let limited =
        late.filter(|entry| entry.is_app_limited == Some(true) && entry.state != "probe_rtt");
    assert_eq!(limited.count(), 0);
    assert!(entries.last().unwrap().detail("full_pipe") > 0.5);
}

#[test]
fn a_full_pipe_is_never_decided_from_the_handshake() {
    // A path so slow that the handshake takes many round trips.
    for name in ["bbr1", "bbr3"] {
        let (controller, log) = Recorded::new(name);
        let slow = LinkConfig::default()
            .rate(Bandwidth::from_kbps(200))
            .delay(Duration::from_millis(2));
        let mut pair = Pair::builder()
            .links(link(MBPS), slow)
            .both_configs(|config| config.initial_max_datagram_size = 1_472)
            .client_config(|config| config.controller = controller)
            .build()
            .unwrap();
        assert!(pair.connect());
        assert!(!log.entries().is_empty());
        pair.advance(Duration::from_millis(500));
        for entry in log.entries() {
            assert!(entry.detail("full_pipe") < 0.5, "{name} at {}", entry.now);
        }
    }
}

/// The stays in `probe_bw_cruise` of at least `least` without a change of the pacing rate by more
/// than a thousandth: from, to, rate in bit/s, quantum.
fn cruises(log: &Log, least: Duration) -> Vec<(Instant, Instant, f64, u64)> {
    let entries = log.entries();
    let steady = entries.chunk_by(|a, b| {
        a.state == "probe_bw_cruise"
            && b.state == a.state
            && (b.pacing / a.pacing - 1.0).abs() < 1e-3
    });
    let spans = steady.map(|stay| {
        let (first, last) = (&stay[0], &stay[stay.len() - 1]);
        (first.now, last.now, first.pacing, first.quantum)
    });
    spans.filter(|span| span.1 - span.0 >= least).collect()
}

#[test]
fn packets_leave_at_the_pacing_rate_in_bursts_within_the_quantum() {
    for name in ["bbr1", "bbr2", "bbr3"] {
        let (mut pair, log) = pair(name, |_| {});
        let sent = Rc::new(RefCell::new(Vec::new()));
        let note = Rc::clone(&sent);
        pair.tap(Direction::ToServer, move |datagram| {
            note.borrow_mut()
                .push((datagram.now, datagram.data.len() as u64));
            Verdict::Pass
        });
        assert!(pair.connect());
        pair.start_transfer(20_000_000, Direction::ToServer);
        pair.advance(Duration::from_secs(4));
        let spans = cruises(&log, Duration::from_millis(100));
        assert!(!spans.is_empty(), "{name}");
        for (from, to, rate, quantum) in spans {
            let sent = sent.borrow();
            let inside: Vec<_> = sent.iter().filter(|s| s.0 > from && s.0 <= to).collect();
            let bits = inside.iter().map(|s| s.1).sum::<u64>() as f64 * 8.0;
            let ratio = bits / (to - from).as_secs_f64() / rate;
            assert!(
                (ratio - 1.0).abs() < 0.02,
                "{name}: {ratio:.3} of the pacing rate"
            );
            for burst in inside.chunk_by(|a, b| a.0 == b.0) {
                let bytes: u64 = burst.iter().map(|s| s.1).sum();
                assert!(
                    bytes <= quantum,
                    "{name}: {bytes} at once, {quantum} allowed"
                );
            }
        }
    }
}
