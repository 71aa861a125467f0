//! Probe timeouts as configured, and handshake data that is repeated early or in copies.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use swiftwater_link::LossModel;
use swiftwater_quic::wire::PacketType;
use swiftwater_quic::{Event, PtoLimit, TransportConfig};
use swiftwater_sim::{Direction, Pair, PairBuilder, Verdict};
use swiftwater_tls::null::NullServer;
use swiftwater_units::{Instant, Side};

use crate::support::{BOTH, SIDES, Watch, drop_if, link, millis, packet_types, path, secs};

/// Times of the client's probe timeouts while its first packet is unanswered.
fn unanswered(change: impl Fn(&mut TransportConfig), time: Duration) -> Vec<Duration> {
    let watch = Watch::new(Side::Client);
    let factory = watch.factory();
    let mut pair = Pair::builder()
        .client_config(|config| {
            config.handshake_timeout = secs(10_000);
            config.max_idle_timeout = None;
            config.observer = Some(factory);
            change(config);
        })
        .build()
        .unwrap();
    drop_if(&mut pair, Direction::ToServer, |_| true);
    pair.start().unwrap();
    pair.advance(time);
    let timeouts = watch.notes().probe_timeouts;
    timeouts.iter().map(|(at, _)| *at - Instant::ZERO).collect()
}

#[test]
fn the_first_timeout_and_the_back_off_are_as_configured() {
    // RFC 9002: three times the assumed round trip, then twice as long each time.
    let usual = unanswered(|config| config.initial_rtt = millis(100), secs(5));
    assert_eq!(
        usual,
        [millis(300), millis(900), millis(2_100), millis(4_500)]
    );
    let short = unanswered(|config| config.initial_pto = Some(millis(500)), secs(4));
    assert_eq!(short, [millis(500), millis(1_500), millis(3_500)]);
    let gentle = |config: &mut TransportConfig| {
        config.initial_pto = Some(millis(400));
        config.pto_backoff = 1.5;
    };
    assert_eq!(
        unanswered(gentle, secs(3)),
        [millis(400), millis(1_000), millis(1_900)]
    );
    let constant = |config: &mut TransportConfig| {
        config.initial_pto = Some(millis(500));
        // Below the range: the nearest that is in it.
        config.pto_backoff = 0.1;
    };
    assert_eq!(unanswered(constant, millis(2_100)).len(), 4);
}

#[test]
fn timeouts_grow_no_longer_than_permitted() {
    let capped = |config: &mut TransportConfig| {
        config.initial_pto = Some(millis(500));
        config.max_pto = secs(1);
    };
    let times = unanswered(capped, millis(5_600));
    assert_eq!(times, [500, 1_500, 2_500, 3_500, 4_500, 5_500].map(millis));
    // A cap below the first timeout caps the back-off only.
    let low = |config: &mut TransportConfig| {
        config.initial_pto = Some(millis(500));
        config.max_pto = millis(100);
    };
    assert_eq!(
        unanswered(low, millis(1_600)),
        [500, 1_000, 1_500].map(millis)
    );
    let default = unanswered(|_| {}, secs(600));
    let last = default.windows(2).last().unwrap();
    assert_eq!(last[1], last[0] + secs(60));
}

/// The bound for young outages is for paths that have answered.
#[test]
fn a_path_that_never_answered_is_probed_ever_more_rarely() {
    let limited = |config: &mut TransportConfig| {
        config.initial_rtt = millis(100);
        config.pto_limit = Some(PtoLimit::default());
    };
    let times = unanswered(limited, secs(5));
    assert_eq!(
        times,
        [millis(300), millis(900), millis(2_100), millis(4_500)]
    );
}

/// Only the wait before the first answer is assumed; what is measured counts afterwards.
#[test]
fn the_first_timeout_is_for_the_first_answer_only() {
    let mut pair = Pair::builder()
        .link(link(10, 20))
        .both_configs(|config| config.initial_pto = Some(secs(5)))
        .build()
        .unwrap();
    assert!(pair.connect());
    pair.drop_next(Direction::ToServer);
    let start = pair.now();
    assert!(pair.transfer(100, Direction::ToServer).verified);
    assert!(pair.now() - start < millis(300));
}

/// Times at which handshake packets of the server left: those with Initial packets.
fn server_flights(pair: &mut Pair) -> Rc<RefCell<Vec<Instant>>> {
    let flights: Rc<RefCell<Vec<Instant>>> = Rc::default();
    let seen = Rc::clone(&flights);
    pair.tap(Direction::ToClient, move |datagram| {
        if packet_types(datagram.data).contains(&PacketType::Initial) {
            seen.borrow_mut().push(datagram.now);
        }
        Verdict::Pass
    });
    flights
}

fn long_chain() -> PairBuilder {
    Pair::builder().server_settings(|server| {
        server.crypto = Arc::new(NullServer::new(["sim"]).with_chain_len(2_500));
    })
}

/// The server's first datagram is lost, the rest of its flight arrives: the client has no keys for
/// it, repeats its Initial at once, and the server answers at once.
#[test]
fn packets_without_keys_show_that_the_first_is_missing() {
    let took = |times: u8| {
        let mut pair = long_chain()
            .both_configs(|config| config.handshake_retransmissions_before_timeout = times)
            .build()
            .unwrap();
        pair.drop_datagram(Direction::ToClient, 0);
        assert!(pair.connect());
        pair.now() - Instant::ZERO
    };
    // Two round trips of 20 ms more than without loss, instead of a timeout of a second.
    assert!(took(1) < millis(100), "{:?}", took(1));
    assert!(took(0) > millis(900), "{:?}", took(0));
}

/// The whole flight of the server is lost. When the client repeats itself, the server does too, at
/// once and once.
#[test]
fn a_repeated_hello_is_answered_at_once() {
    for times in [0, 1] {
        let mut pair = long_chain()
            // The client's timeout expires long before the server's.
            .client_config(|config| config.initial_pto = Some(millis(200)))
            .server_config(|config| config.handshake_retransmissions_before_timeout = times)
            .build()
            .unwrap();
        drop_if(&mut pair, Direction::ToClient, |datagram| {
            datagram.now < Instant::ZERO + millis(100)
        });
        let flights = server_flights(&mut pair);
        assert!(pair.connect());
        let after = flights
            .borrow()
            .iter()
            .filter(|at| **at > Instant::ZERO + millis(100))
            .count();
        let took = pair.now() - Instant::ZERO;
        if times == 0 {
            assert!(took > millis(900), "{took:?}");
        } else {
            assert!(took < millis(300), "{took:?}");
            assert!(after <= 3, "{after} datagrams with Initial packets");
        }
    }
}

/// A peer that repeats itself without end gets no more than the permitted answers.
#[test]
fn early_answers_are_few() {
    let mut pair = long_chain()
        .server_config(|config| {
            config.handshake_retransmissions_before_timeout = 2;
            config.initial_rtt = secs(3);
        })
        .client_config(|config| {
            config.initial_pto = Some(millis(50));
            config.pto_backoff = 1.0;
            config.handshake_retransmissions_before_timeout = 0;
        })
        .build()
        .unwrap();
    // The client never receives a packet.
    let dropped = drop_if(&mut pair, Direction::ToClient, |_| true);
    pair.start().unwrap();
    pair.advance(secs(5));
    assert!(pair.offered(Direction::ToServer) > 100);
    let to_client = *dropped.borrow();
    // The first flight, two more, and acknowledgements; the server's own timeout expires after 9 s.
    let bytes = pair.stats(Side::Server).bytes_sent.get();
    assert!(bytes < 3 * 6_000 + 100 * 1_300, "{bytes} in {to_client}");
    let stats = path(&pair, Side::Server);
    assert!(stats.sent_bytes.get() <= 3 * 5_000, "{stats:?}");
}

/// A timeout before the handshake is confirmed sends so many copies of what may be lost.
#[test]
fn timeouts_send_copies() {
    for copies in 1..=3 {
        let mut pair = Pair::builder()
            .client_config(|config| config.handshake_pto_copies = copies)
            .build()
            .unwrap();
        drop_if(&mut pair, Direction::ToServer, |datagram| {
            datagram.now == Instant::ZERO
        });
        // No packet is received until the copies are counted.
        drop_if(&mut pair, Direction::ToClient, |datagram| {
            datagram.now < Instant::ZERO + millis(1_200)
        });
        // The null cipher leaves the frames readable: a CRYPTO frame at offset 0 follows the header.
        let crypto = Rc::new(RefCell::new(0));
        let seen = Rc::clone(&crypto);
        pair.tap(Direction::ToServer, move |datagram| {
            if datagram.now > Instant::ZERO && has_client_hello(datagram.data) {
                *seen.borrow_mut() += 1;
            }
            Verdict::Pass
        });
        pair.start().unwrap();
        // The pacer holds back what is no probe.
        pair.advance(millis(1_200));
        assert_eq!(*crypto.borrow(), copies, "copies of the client's hello");
        assert!(pair.connect());
    }
}

/// True if an Initial packet carries something other than PING and PADDING.
fn has_client_hello(data: &[u8]) -> bool {
    // An acknowledgement of the server's hello has Handshake packets behind it.
    let has_initial = packet_types(data) == [PacketType::Initial];
    // Everything after the headers of a PING in a padded Initial is zero, up to the null cipher's
    // tag.
    has_initial && data[60..data.len() - 20].iter().any(|byte| *byte != 0)
}

/// Copies and early repeats are subject to the limit of addresses that are not validated.
#[test]
fn haste_amplifies_nothing() {
    for seed in 0..40 {
        let mut pair = Pair::builder()
            .seed(seed)
            .link(link(10, 20).loss(LossModel::Bernoulli(0.3)))
            .both_configs(|config| {
                config.handshake_pto_copies = 3;
                config.handshake_retransmissions_before_timeout = 9;
                config.initial_pto = Some(millis(60));
            })
            .server_settings(|server| {
                server.crypto = Arc::new(NullServer::new(["sim"]).with_chain_len(9_000));
            })
            .build()
            .unwrap();
        // Bytes that reached the server and that it sent, until the client proves its address.
        let to_server = pair.record(Direction::ToServer);
        let to_client = pair.record(Direction::ToClient);
        pair.start().unwrap();
        let proven = |pair: &mut Pair| {
            pair.events(Side::Server).contains(&Event::Connected)
                || to_server
                    .datagrams()
                    .iter()
                    .any(|datagram| packet_types(&datagram.data).contains(&PacketType::Handshake))
        };
        while !proven(&mut pair) && pair.step() {
            assert!(
                to_client.bytes() <= 3 * to_server.bytes(),
                "seed {seed} at {:?}",
                pair.now()
            );
        }
        assert!(pair.connect(), "seed {seed}");
        for direction in BOTH {
            assert!(pair.transfer(4_000, direction).verified);
        }
        for side in SIDES {
            assert!(!pair.view(side).unwrap().is_closed());
        }
    }
}
