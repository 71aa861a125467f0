//! How connections end: idle timeouts, keep-alive, closes that arrive or don't, resets.

use std::time::Duration;

use swiftwater_link::LossModel;
use swiftwater_quic::wire::ErrorCode;
use swiftwater_quic::{ConnectionError, Event, ReadError, SendDatagramError, WriteError};
use swiftwater_sim::{Cipher, Direction, Pair, PairBuilder};
use swiftwater_units::{Dir, Instant, Side};

use crate::support::secs;
use crate::support::{
    BOTH, SIDES, black_out, count, drop_if, link, millis, path, reason, run_to_close,
};

fn connected(builder: PairBuilder) -> Pair {
    let mut pair = builder.link(link(10, 20)).build().unwrap();
    assert!(pair.connect());
    pair.advance(millis(300));
    pair
}

fn other(side: Side) -> Side {
    !side
}

fn direction_from(side: Side) -> Direction {
    BOTH[side as usize]
}

fn close(pair: &mut Pair, side: Side, code: u64, reason: &[u8]) {
    let now = pair.now();
    pair.connection(side).unwrap().close(now, code, reason);
}

fn application(code: u64, reason: &[u8]) -> ConnectionError {
    ConnectionError::PeerApplication {
        code,
        reason: reason.to_vec(),
    }
}

fn end_events(pair: &Pair, side: Side) -> usize {
    count(pair, side, |event| matches!(event, Event::Closed { .. }))
}

// --- idle timeout and keep-alive

#[test]
fn the_smaller_idle_timeout_counts_for_both() {
    let cases = [
        (Some(10), Some(5), Some(5)),
        (Some(5), Some(10), Some(5)),
        (None, Some(7), Some(7)),
        (Some(7), None, Some(7)),
        (None, None, None),
    ];
    for (client, server, expected) in cases {
        let mut pair = connected(
            Pair::builder()
                .client_config(move |config| config.max_idle_timeout = client.map(secs))
                .server_config(move |config| config.max_idle_timeout = server.map(secs)),
        );
        let sent = BOTH.map(|direction| pair.offered(direction));
        let Some(expected) = expected else {
            pair.advance(secs(24 * 3_600));
            assert!(!pair.client().is_closed() && !pair.server().is_closed());
            assert!(pair.transfer(1_000, Direction::ToServer).verified);
            continue;
        };
        // The last packet passed within the first 300 ms.
        for side in SIDES {
            let end = run_to_close(&mut pair, side) - Instant::ZERO;
            assert_eq!(reason(&pair, side), Some(ConnectionError::TimedOut));
            let expected = secs(expected);
            assert!(
                end >= expected && end < expected + millis(300),
                "{side:?}: {end:?}"
            );
            assert!(
                pair.connection(side).unwrap().is_drained(),
                "nothing is left to do"
            );
            assert_eq!(end_events(&pair, side), 1);
        }
        assert_eq!(
            sent,
            BOTH.map(|direction| pair.offered(direction)),
            "it ends silently"
        );
    }
}

#[test]
fn the_idle_timeout_is_three_probe_timeouts_at_least() {
    let mut pair = Pair::builder()
        .link(link(10, 400))
        .both_configs(|config| config.max_idle_timeout = Some(millis(500)))
        .build()
        .unwrap();
    assert!(pair.connect());
    let report = pair.transfer(10_000, Direction::ToServer);
    assert!(report.verified);
    let last = pair.now();
    let pto = path(&pair, Side::Client).smoothed_rtt;
    let end = run_to_close(&mut pair, Side::Client);
    assert_eq!(reason(&pair, Side::Client), Some(ConnectionError::TimedOut));
    assert!(
        end - last >= pto * 2,
        "{:?} after the last packet",
        end - last
    );
    assert!(
        end - last < pto * 9,
        "{:?} after the last packet",
        end - last
    );
}

#[test]
fn traffic_in_either_direction_keeps_a_connection() {
    for direction in BOTH {
        let mut pair = connected(
            Pair::builder().both_configs(|config| config.max_idle_timeout = Some(secs(2))),
        );
        for _ in 0..10 {
            pair.advance(millis(1_500));
            assert!(pair.transfer(100, direction).verified);
        }
    }
}

#[test]
fn keep_alive_of_either_side_keeps_a_connection() {
    for side in SIDES {
        let keep = |config: &mut swiftwater_quic::TransportConfig| {
            config.keep_alive_interval = Some(secs(2));
        };
        let builder = Pair::builder().both_configs(|config| {
            config.max_idle_timeout = Some(secs(5));
        });
        let mut pair = connected(match side {
            Side::Client => builder.client_config(keep),
            Side::Server => builder.server_config(keep),
        });
        let sent = pair.offered(direction_from(side));
        pair.advance(secs(600));
        assert!(
            !pair.client().is_closed() && !pair.server().is_closed(),
            "{side:?}"
        );
        let sent = pair.offered(direction_from(side)) - sent;
        assert!((280..=310).contains(&sent), "{side:?}: {sent}");
        // It doesn't keep a connection open whose peer is gone.
        let now = pair.now();
        black_out(&mut pair, now, secs(3_600));
        for side in SIDES {
            let end = run_to_close(&mut pair, side);
            assert_eq!(reason(&pair, side), Some(ConnectionError::TimedOut));
            assert!(end - now < secs(8), "{:?}", end - now);
        }
    }
}

#[test]
fn an_unacknowledged_sender_times_out_once() {
    // Unanswered probes don't postpone the end forever.
    let mut pair =
        connected(Pair::builder().both_configs(|config| config.max_idle_timeout = Some(secs(4))));
    let now = pair.now();
    black_out(&mut pair, now, secs(3_600));
    pair.start_transfer(50_000, Direction::ToServer);
    let end = run_to_close(&mut pair, Side::Client);
    assert_eq!(reason(&pair, Side::Client), Some(ConnectionError::TimedOut));
    assert!((secs(4)..secs(5)).contains(&(end - now)), "{:?}", end - now);
}

// --- closing

#[test]
fn code_and_reason_reach_the_other_side() {
    for cipher in [Cipher::Null, Cipher::Tls] {
        for side in SIDES {
            for (code, text) in [
                (0, &b""[..]),
                (7, b"bye"),
                ((1 << 62) - 1, b"\xff\x00 not text"),
            ] {
                let mut pair = connected(Pair::builder().cipher(cipher));
                let start = pair.now();
                close(&mut pair, side, code, text);
                let end = run_to_close(&mut pair, other(side));
                assert!(end - start < millis(21), "{:?}", end - start);
                assert_eq!(
                    reason(&pair, side),
                    Some(ConnectionError::LocallyClosed { code })
                );
                assert_eq!(reason(&pair, other(side)), Some(application(code, text)));
                assert!(pair.run_to_end());
                for side in SIDES {
                    assert_eq!(end_events(&pair, side), 1);
                    assert_eq!(pair.events(side).last(), Some(&Event::Drained));
                }
            }
        }
    }
}

#[test]
fn an_over_long_reason_is_cut() {
    let mut pair = connected(Pair::builder());
    close(&mut pair, Side::Server, 3, &vec![b'x'; 100_000]);
    run_to_close(&mut pair, Side::Client);
    let Some(ConnectionError::PeerApplication { code: 3, reason }) = reason(&pair, Side::Client)
    else {
        panic!("{:?}", reason(&pair, Side::Client));
    };
    assert!((100..1_200).contains(&reason.len()), "{}", reason.len());
    assert!(reason.iter().all(|&byte| byte == b'x'));
}

#[test]
fn a_close_in_the_middle_of_a_transfer_stops_it() {
    for side in SIDES {
        for direction in BOTH {
            let mut pair = connected(Pair::builder());
            let id = pair.start_transfer(5_000_000, direction);
            pair.advance(millis(500));
            close(&mut pair, side, 42, b"enough");
            assert!(!pair.finish_transfers());
            let report = pair.transfer_report(id);
            assert!(
                report.intact && !report.verified && report.received > 0,
                "{report:?}"
            );
            assert!(pair.run_to_end());
            assert_eq!(reason(&pair, other(side)), Some(application(42, b"enough")));
        }
    }
}

#[test]
fn a_lost_close_is_repeated_for_a_peer_that_goes_on() {
    for side in SIDES {
        let mut pair = connected(Pair::builder());
        pair.drop_next(direction_from(side));
        let start = pair.now();
        close(&mut pair, side, 5, b"again");
        pair.advance(millis(30));
        assert!(!pair.connection(other(side)).unwrap().is_closed());
        // The peer hasn't received it; its packets are answered with CONNECTION_CLOSE again.
        pair.connection(other(side)).unwrap().ping();
        let end = run_to_close(&mut pair, other(side));
        assert_eq!(reason(&pair, other(side)), Some(application(5, b"again")));
        assert!(end - start < millis(80), "{side:?}: {:?}", end - start);
    }
}

#[test]
fn a_peer_that_never_receives_the_close_times_out_or_is_reset() {
    // Without a packet: it times out.
    let mut pair =
        connected(Pair::builder().both_configs(|config| config.max_idle_timeout = Some(secs(3))));
    pair.drop_next(Direction::ToServer);
    close(&mut pair, Side::Client, 5, b"");
    let end = run_to_close(&mut pair, Side::Server);
    assert_eq!(reason(&pair, Side::Server), Some(ConnectionError::TimedOut));
    assert!(end < Instant::from_millis(3_500), "{end}");
    // With something to send after the server has discarded the connection: a stateless reset.
    let mut pair = connected(Pair::builder());
    pair.drop_next(Direction::ToClient);
    close(&mut pair, Side::Server, 5, b"");
    pair.advance(secs(10));
    assert!(pair.server().is_drained());
    pair.start_transfer(100, Direction::ToServer);
    run_to_close(&mut pair, Side::Client);
    assert_eq!(reason(&pair, Side::Client), Some(ConnectionError::Reset));
}

#[test]
fn closing_and_draining_take_three_probe_timeouts() {
    let mut pair = connected(Pair::builder());
    assert!(pair.transfer(100_000, Direction::ToServer).verified);
    pair.advance(secs(1));
    let start = pair.now();
    close(&mut pair, Side::Client, 1, b"");
    for side in SIDES {
        let path = path(&pair, side);
        let pto = path.smoothed_rtt + path.rtt_var.max(millis(1)) * 4 + millis(25);
        assert!(pair.run_until(|pair| pair.view(side).unwrap().is_drained()));
        let heard = if side == Side::Server {
            millis(20)
        } else {
            Duration::ZERO
        };
        let took = pair.now() - (start + heard);
        let least = pto * 3;
        assert!(
            (least..least + millis(20)).contains(&took),
            "{side:?}: {took:?} not {least:?}"
        );
    }
}

#[test]
fn both_close_at_once() {
    for gap in [0, 5, 15] {
        let mut pair = connected(Pair::builder());
        close(&mut pair, Side::Client, 1, b"client");
        pair.advance(millis(gap));
        close(&mut pair, Side::Server, 2, b"server");
        let before = BOTH.map(|direction| pair.offered(direction));
        assert!(pair.run_to_end());
        for (side, code) in [(Side::Client, 1), (Side::Server, 2)] {
            // Each processes its own close first.
            assert_eq!(
                reason(&pair, side),
                Some(ConnectionError::LocallyClosed { code })
            );
            assert_eq!(end_events(&pair, side), 1);
        }
        for (direction, before) in BOTH.into_iter().zip(before) {
            let sent = pair.offered(direction) - before;
            assert!(sent <= 3, "{direction:?}: {sent} datagrams to say good-bye");
        }
    }
}

#[test]
fn a_closing_side_answers_ever_more_rarely() {
    let mut pair = connected(Pair::builder());
    pair.start_transfer(5_000_000, Direction::ToServer);
    pair.advance(millis(500));
    // The client never receives CONNECTION_CLOSE and continues to send.
    drop_if(&mut pair, Direction::ToClient, |_| true);
    let before = pair.offered(Direction::ToClient);
    let got = pair.stats(Side::Server).datagrams_received;
    close(&mut pair, Side::Server, 9, b"");
    assert!(pair.run_until(|pair| pair.view(Side::Server).unwrap().is_drained()));
    let answers = pair.offered(Direction::ToClient) - before;
    let got = pair.stats(Side::Server).datagrams_received - got;
    assert!(got > 30, "{got}");
    assert!(
        (2..=10).contains(&answers),
        "{answers} answers to {got} datagrams"
    );
}

#[test]
fn a_close_during_the_handshake_reaches_the_other_side() {
    for cipher in [Cipher::Null, Cipher::Tls] {
        // The client closes before it has received a packet: the server gets the permitted
        // information.
        let mut pair = Pair::builder()
            .cipher(cipher)
            .link(link(10, 20))
            .build()
            .unwrap();
        pair.start().unwrap();
        pair.advance(millis(25));
        close(&mut pair, Side::Client, 77, b"secret");
        run_to_close(&mut pair, Side::Server);
        let Some(ConnectionError::PeerTransport(error)) = reason(&pair, Side::Server) else {
            panic!("{cipher:?}: {:?}", reason(&pair, Side::Server));
        };
        assert_eq!(
            error.code,
            ErrorCode::APPLICATION_ERROR,
            "no code of an application's yet"
        );
        assert!(!error.reason.contains("secret"));
        assert!(pair.now() < Instant::from_millis(50), "{}", pair.now());
        assert!(pair.run_to_end());

        // It closes when it is complete but the server is not.
        let mut pair = Pair::builder()
            .cipher(cipher)
            .link(link(10, 20))
            .build()
            .unwrap();
        pair.start().unwrap();
        assert!(pair.run_until(|pair| !pair.client().is_handshaking()));
        close(&mut pair, Side::Client, 77, b"");
        run_to_close(&mut pair, Side::Server);
        assert!(pair.now() < Instant::from_millis(70), "{}", pair.now());
        assert!(pair.run_to_end());

        // The server closes as soon as it is connected, before the client is confirmed.
        let mut pair = Pair::builder()
            .cipher(cipher)
            .link(link(10, 20))
            .build()
            .unwrap();
        pair.start().unwrap();
        assert!(pair.run_until(|pair| pair.events(Side::Server).contains(&Event::Connected)));
        close(&mut pair, Side::Server, 78, b"busy");
        run_to_close(&mut pair, Side::Client);
        assert_eq!(reason(&pair, Side::Client), Some(application(78, b"busy")));
        assert!(pair.run_to_end());
    }
}

#[test]
fn closes_get_through_loss() {
    for seed in 0..30 {
        let mut pair = Pair::builder()
            .seed(seed)
            .link(link(10, 20).loss(LossModel::Bernoulli(0.3)))
            .both_configs(|config| {
                config.handshake_timeout = secs(60);
                config.max_idle_timeout = Some(secs(20));
            })
            .build()
            .unwrap();
        assert!(pair.connect(), "seed {seed}");
        pair.start_transfer(1_000_000, Direction::ToServer);
        pair.advance(millis(400));
        let start = pair.now();
        close(&mut pair, Side::Server, 3, b"");
        let end = run_to_close(&mut pair, Side::Client);
        let heard = reason(&pair, Side::Client);
        // Usually at once; later by a stateless reset, because the client still has things to say.
        assert!(
            heard == Some(application(3, b"")) || heard == Some(ConnectionError::Reset),
            "seed {seed}: {heard:?}"
        );
        assert!(end - start < secs(8), "seed {seed}: {:?}", end - start);
    }
}

#[test]
fn after_the_end_every_call_says_so() {
    let mut pair = connected(Pair::builder());
    let id = pair.client().open(Dir::Bi).unwrap();
    assert_eq!(pair.client().send_stream(id).write(b"x"), Ok(1));
    close(&mut pair, Side::Server, 4, b"gone");
    run_to_close(&mut pair, Side::Client);
    let lost = application(4, b"gone");
    let client = pair.client();
    assert_eq!(client.open(Dir::Uni), None);
    let write = client.send_stream(id).write(b"y");
    assert_eq!(write, Err(WriteError::ConnectionLost(lost.clone())));
    let read = client.recv_stream(id).read(&mut [0; 8]);
    assert_eq!(read, Err(ReadError::ConnectionLost(lost.clone())));
    let sent = client.send_datagram(vec![1].into());
    assert_eq!(sent, Err(SendDatagramError::ConnectionLost(lost)));
    // A second close changes nothing.
    let (now, before) = (pair.now(), reason(&pair, Side::Client));
    pair.client().close(now, 99, b"");
    assert_eq!(reason(&pair, Side::Client), before);
}

// --- stateless reset

#[test]
fn a_restarted_peer_resets_a_connection_under_traffic() {
    for cipher in [Cipher::Null, Cipher::Tls] {
        for direction in BOTH {
            let mut pair = connected(Pair::builder().cipher(cipher));
            pair.start_transfer(10_000_000, direction);
            pair.advance(millis(700));
            pair.restart(Side::Server);
            let start = pair.now();
            // A client that only receives detects it when it has something to send.
            pair.client().ping();
            let end = run_to_close(&mut pair, Side::Client);
            assert_eq!(
                reason(&pair, Side::Client),
                Some(ConnectionError::Reset),
                "{direction:?}"
            );
            assert!(
                end - start < secs(1),
                "{cipher:?} {direction:?}: {:?}",
                end - start
            );
            let host = pair.host(Side::Server);
            let stats = pair.network().endpoint_stats(host);
            assert!(stats.resets_sent >= 1);
            assert_eq!(end_events(&pair, Side::Client), 1);
            // A new connection to the restarted server works.
            let handle = pair.start().unwrap();
            pair.advance(millis(300));
            let host = pair.host(Side::Client);
            let connection = pair.network().view(host, handle).unwrap();
            assert!(!connection.is_handshaking() && !connection.is_closed());
        }
    }
}

#[test]
fn a_restarted_client_resets_too() {
    let mut pair = connected(Pair::builder());
    // No reset token belongs to a client's first connection ID.
    pair.server().rotate_connection_ids();
    pair.start_transfer(10_000_000, Direction::ToClient);
    pair.advance(millis(500));
    pair.restart(Side::Client);
    run_to_close(&mut pair, Side::Server);
    assert_eq!(reason(&pair, Side::Server), Some(ConnectionError::Reset));
}

#[test]
fn a_server_without_resets_leaves_clients_to_their_timeout() {
    let mut pair = connected(
        Pair::builder()
            .endpoint(Side::Server, |config| config.stateless_reset = false)
            .both_configs(|config| config.max_idle_timeout = Some(secs(5))),
    );
    pair.restart(Side::Server);
    let start = pair.now();
    pair.start_transfer(1_000, Direction::ToServer);
    let end = run_to_close(&mut pair, Side::Client);
    assert_eq!(reason(&pair, Side::Client), Some(ConnectionError::TimedOut));
    assert!(
        (secs(5)..secs(6)).contains(&(end - start)),
        "{:?}",
        end - start
    );
}

#[test]
fn a_forged_reset_changes_nothing() {
    let mut pair = connected(Pair::builder());
    let sent = pair.record(Direction::ToClient);
    pair.start_transfer(500_000, Direction::ToClient);
    for nth in 0..20u8 {
        pair.advance(millis(20));
        let mut data = sent.datagrams().pop().unwrap().data;
        let from = data.len() - 16;
        data[from..].fill(nth);
        pair.inject(Direction::ToClient, &data, None);
    }
    assert!(pair.finish_transfers());
}
