//! Handshakes on bad networks: each packet lost, heavy loss, damage, long round trips, no answers, and
//! what an unvalidated address may cost.

use crate::support;

use std::sync::Arc;
use std::time::Duration;

use swiftwater_link::{Jitter, LossModel, Reorder, ReorderBy};
use swiftwater_quic::wire::{ErrorCode, PacketType};
use swiftwater_quic::{ClientConfig, ConnectionError, RetryPolicy};
use swiftwater_sim::{Cipher, Direction, Pair, PairBuilder, Verdict};
use swiftwater_tls::null::{NullClient, NullServer};
use swiftwater_tls::{ClientTls, DevCertificate};
use swiftwater_units::{Instant, Side};

use support::{
    BOTH, SIDES, count, drop_if, link, millis, packet_types, reason, run_to_close, secs,
};

/// A day on which the deterministic certificates are valid.
const TODAY: Duration = Duration::from_secs(1_735_689_600);

/// The server's flight with so many bytes of certificates.
fn chain(bytes: usize) -> impl FnOnce(&mut swiftwater_quic::ServerConfig) + 'static {
    move |server| server.crypto = Arc::new(NullServer::new(["sim"]).with_chain_len(bytes))
}

/// Connects and moves a little both ways; true if all went well.
fn works(pair: &mut Pair) -> bool {
    if !pair.connect() {
        return false;
    }
    for direction in BOTH {
        pair.start_transfer(4_000, direction);
    }
    pair.finish_transfers()
}

fn every_setup() -> impl Iterator<Item = (&'static str, Box<dyn Fn() -> PairBuilder>)> {
    fn make(cipher: Cipher, retry: RetryPolicy) -> PairBuilder {
        Pair::builder().cipher(cipher).retry(retry)
    }
    [
        (
            "null",
            Box::new(|| make(Cipher::Null, RetryPolicy::Never)) as Box<dyn Fn() -> PairBuilder>,
        ),
        (
            "null, Retry",
            Box::new(|| make(Cipher::Null, RetryPolicy::Always)),
        ),
        ("TLS", Box::new(|| make(Cipher::Tls, RetryPolicy::Never))),
        (
            "TLS, Retry",
            Box::new(|| make(Cipher::Tls, RetryPolicy::Always)),
        ),
        (
            "long chain",
            Box::new(|| make(Cipher::Null, RetryPolicy::Never).server_settings(chain(4_500))),
        ),
        (
            "very long chain",
            Box::new(|| make(Cipher::Null, RetryPolicy::Never).server_settings(chain(12_000))),
        ),
    ]
    .into_iter()
}

#[test]
fn any_single_datagram_may_be_lost() {
    for (name, builder) in every_setup() {
        let mut clean = builder().build().unwrap();
        assert!(works(&mut clean), "{name}");
        let finish = clean.now();
        for direction in BOTH {
            for index in 0..clean.offered(direction) {
                let mut pair = builder().build().unwrap();
                pair.drop_datagram(direction, index);
                assert!(works(&mut pair), "{name}, {direction:?} {index}");
                // One probe timeout without an RTT sample is 3 x 333 ms.
                let late = pair.now() - finish;
                assert!(
                    late < millis(1_200),
                    "{name}, {direction:?} {index}: {late:?}"
                );
            }
        }
    }
}

#[test]
fn any_two_datagrams_may_be_lost() {
    let places: Vec<_> = BOTH
        .into_iter()
        .flat_map(|direction| (0..7).map(move |index| (direction, index)))
        .collect();
    for (name, builder) in every_setup() {
        let mut clean = builder().build().unwrap();
        assert!(works(&mut clean));
        for (nth, first) in places.iter().enumerate() {
            for second in &places[nth + 1..] {
                let mut pair = builder().build().unwrap();
                for (direction, index) in [*first, *second] {
                    pair.drop_datagram(direction, index);
                }
                assert!(works(&mut pair), "{name}, {first:?}, {second:?}");
                // Two timeouts in a row, the second twice as long, or one on each side.
                let late = pair.now() - clean.now();
                assert!(
                    late < millis(3_200),
                    "{name}, {first:?}, {second:?}: {late:?}"
                );
            }
        }
    }
}

#[test]
fn heavy_loss_both_ways_is_survived() {
    let lossy = link(20, 20).loss(LossModel::Bernoulli(0.3));
    let mut total = Duration::ZERO;
    let seeds = 60;
    for seed in 0..seeds {
        let cipher = [Cipher::Null, Cipher::Tls][usize::from(seed % 4 == 0)];
        let mut pair = Pair::builder()
            .seed(seed)
            .cipher(cipher)
            .link(lossy.clone())
            .retry([RetryPolicy::Never, RetryPolicy::Always][usize::from(seed % 3 == 0)])
            .both_configs(|config| config.handshake_timeout = secs(60))
            .build()
            .unwrap();
        assert!(
            pair.connect(),
            "seed {seed}: {:?}",
            reason(&pair, Side::Client)
        );
        for direction in BOTH {
            pair.start_transfer(30_000, direction);
        }
        assert!(pair.finish_transfers(), "seed {seed}");
        let took = pair.now() - Instant::ZERO;
        assert!(took < secs(30), "seed {seed}: {took:?}");
        total += took;
    }
    let mean = total / u32::try_from(seeds).unwrap();
    assert!(mean < secs(4), "{mean:?}");
}

#[test]
fn disorder_and_copies_do_no_harm() {
    let mut rough = link(20, 20)
        .duplicate(0.5)
        .jitter(Jitter::Uniform(millis(40)));
    rough.jitter_reorders = true;
    rough.reorder = Some(Reorder {
        probability: 0.4,
        by: ReorderBy::Delay(millis(60)),
    });
    for seed in 0..40 {
        let mut pair = Pair::builder()
            .seed(seed)
            .cipher([Cipher::Null, Cipher::Tls][usize::from(seed % 4 == 0)])
            .link(rough.clone())
            .build()
            .unwrap();
        assert!(pair.connect(), "seed {seed}");
        let connected = pair.now() - Instant::ZERO;
        assert!(connected < millis(700), "seed {seed}: {connected:?}");
        for direction in BOTH {
            let report = pair.transfer(50_000, direction);
            assert!(report.verified, "seed {seed}: {report:?}");
        }
        let host = pair.host(Side::Server);
        assert_eq!(
            pair.network().endpoint_stats(host).accepted,
            1,
            "copies start nothing"
        );
    }
}

#[test]
fn damage_never_shows_in_the_data() {
    let mut damaged = 0;
    for seed in 0..60u64 {
        let share = 0.01 + 0.19 * (seed as f64 / 59.0);
        let mut pair = Pair::builder()
            .seed(seed)
            .cipher([Cipher::Null, Cipher::Tls][usize::from(seed % 2 == 0)])
            .link(link(20, 20).corrupt(share))
            .both_configs(|config| config.handshake_timeout = secs(60))
            .build()
            .unwrap();
        assert!(
            pair.connect(),
            "seed {seed}: {:?}",
            reason(&pair, Side::Client)
        );
        for direction in BOTH {
            let report = pair.transfer(100_000, direction);
            assert!(report.verified && report.intact, "seed {seed}: {report:?}");
        }
        damaged += BOTH
            .iter()
            .map(|direction| pair.counters(*direction).corrupted.packets.get())
            .sum::<u64>();
        // Damage is loss, no more: it mustn't end or slow the connection otherwise.
        let took = pair.now() - Instant::ZERO;
        assert!(took < secs(20), "seed {seed}: {took:?}");
    }
    assert!(damaged > 500, "{damaged}");
}

#[test]
fn a_long_round_trip_below_the_probe_timeout_costs_no_probe() {
    let mut pair = Pair::builder().link(link(10, 300)).build().unwrap();
    assert!(works(&mut pair));
    let handshake = pair.stats(Side::Client).handshake_duration.unwrap();
    assert!(
        (millis(600)..millis(605)).contains(&handshake),
        "{handshake:?}"
    );
    for side in SIDES {
        let path = support::path(&pair, side);
        assert_eq!(
            (path.pto_count, path.lost_packets.get()),
            (0, 0),
            "{side:?}"
        );
        assert!(
            (millis(600)..millis(660)).contains(&path.smoothed_rtt),
            "{side:?} {path:?}"
        );
    }
}

#[test]
fn a_round_trip_beyond_the_probe_timeout_only_costs_copies() {
    for cipher in [Cipher::Null, Cipher::Tls] {
        let mut pair = Pair::builder()
            .cipher(cipher)
            .link(link(10, 1_250))
            .build()
            .unwrap();
        assert!(works(&mut pair));
        let handshake = pair.stats(Side::Client).handshake_duration.unwrap();
        assert!(
            (millis(2_500)..millis(2_520)).contains(&handshake),
            "{handshake:?}"
        );
        assert!(pair.stats(Side::Client).packets_sent.get() < 40);
    }
}

#[test]
fn a_handshake_without_answers_ends_at_the_configured_time() {
    for timeout in [secs(3), secs(10), secs(25)] {
        let mut pair = Pair::builder()
            .client_config(|config| config.handshake_timeout = timeout)
            .build()
            .unwrap();
        drop_if(&mut pair, Direction::ToServer, |_| true);
        pair.start().unwrap();
        let end = run_to_close(&mut pair, Side::Client);
        assert_eq!(
            reason(&pair, Side::Client),
            Some(ConnectionError::HandshakeTimedOut)
        );
        assert_eq!(end, Instant::ZERO + timeout);
        // Probes after 1, 2, 4 … seconds, two datagrams each.
        let datagrams = pair.offered(Direction::ToServer);
        assert!((3..=11).contains(&datagrams), "{timeout:?}: {datagrams}");
    }
}

#[test]
fn a_server_discards_a_client_that_stopped_sending() {
    let mut pair = Pair::builder()
        .server_config(|config| config.handshake_timeout = secs(4))
        .build()
        .unwrap();
    drop_if(&mut pair, Direction::ToServer, |datagram| {
        datagram.index > 0
    });
    pair.start().unwrap();
    pair.advance(millis(50));
    let end = run_to_close(&mut pair, Side::Server);
    assert_eq!(
        reason(&pair, Side::Server),
        Some(ConnectionError::HandshakeTimedOut)
    );
    assert_eq!(end, Instant::from_millis(4_010));
}

#[test]
fn an_unvalidated_address_gets_three_times_what_it_sent_to_the_byte() {
    for chain_bytes in [300, 3_000, 20_000] {
        let mut pair = Pair::builder()
            .server_settings(chain(chain_bytes))
            .both_configs(|config| config.handshake_timeout = secs(30))
            .build()
            .unwrap();
        let answers = pair.record(Direction::ToClient);
        let asked = pair.record(Direction::ToServer);
        // Only the client's first datagram arrives, and copies of it later: they prove nothing.
        drop_if(&mut pair, Direction::ToServer, |datagram| {
            datagram.index > 0
        });
        pair.start().unwrap();
        pair.advance(millis(1));
        let first = asked.datagrams()[0].data.clone();
        for copies in 1..=3 {
            pair.advance(secs(5));
            let (received, sent) = (copies * first.len() as u64, answers.bytes());
            assert!(sent <= 3 * received, "{sent} after {received}");
            if chain_bytes == 20_000 {
                // No packet worth sending is smaller than what is left.
                assert!(sent + 64 > 3 * received, "{sent} after {received}");
            }
            pair.inject(Direction::ToServer, &first, None);
        }
        assert!(pair.events(Side::Server).is_empty());
    }
}

#[test]
fn a_server_stuck_at_the_limit_is_freed_by_the_clients_probe() {
    // Four datagrams are due, three permitted; the client's answers to those are lost.
    let mut pair = Pair::builder()
        .server_settings(chain(4_200))
        .build()
        .unwrap();
    let lost = drop_if(&mut pair, Direction::ToServer, |datagram| {
        datagram.now > Instant::ZERO && datagram.now < Instant::from_millis(100)
    });
    assert!(pair.connect());
    assert!(*lost.borrow() >= 1);
    assert!(pair.now() < Instant::from_millis(1_300), "{}", pair.now());

    // The whole answer is lost: the client has nothing in flight but its first flight, and the
    // server nothing it may send.
    let mut pair = Pair::builder()
        .server_settings(chain(4_200))
        .build()
        .unwrap();
    drop_if(&mut pair, Direction::ToClient, |datagram| {
        datagram.now < Instant::from_millis(500)
    });
    assert!(pair.connect());
    assert!(pair.now() < Instant::from_millis(2_300), "{}", pair.now());
}

#[test]
fn initial_packets_fill_datagrams_and_handshake_packets_ride_along() {
    for cipher in [Cipher::Null, Cipher::Tls] {
        let mut pair = Pair::builder().cipher(cipher).build().unwrap();
        let recordings = BOTH.map(|direction| pair.record(direction));
        assert!(works(&mut pair));
        for (recording, direction) in recordings.iter().zip(BOTH) {
            for datagram in recording.datagrams() {
                let types = packet_types(&datagram.data);
                if types.contains(&PacketType::Initial) {
                    assert!(
                        datagram.data.len() >= 1_200,
                        "{cipher:?} {direction:?} {types:?}"
                    );
                }
                assert!(datagram.data.len() <= 1_200);
            }
        }
        let answer = packet_types(&recordings[1].datagrams()[0].data);
        assert_eq!(
            answer[..2],
            [PacketType::Initial, PacketType::Handshake],
            "{cipher:?}"
        );
    }
}

#[test]
fn a_short_first_datagram_starts_nothing() {
    let mut pair = Pair::builder().build().unwrap();
    pair.tap(Direction::ToServer, |datagram| {
        datagram.data.truncate(1_199);
        Verdict::Pass
    });
    pair.start().unwrap();
    pair.advance(secs(2));
    let host = pair.host(Side::Server);
    let stats = pair.network().endpoint_stats(host);
    assert_eq!(stats.accepted, 0);
    assert!(
        stats.dropped_malformed + stats.dropped_too_short > 0,
        "{stats:?}"
    );
    assert_eq!(pair.offered(Direction::ToClient), 0);
}

#[test]
fn no_common_application_protocol_is_reported_to_both() {
    let null: ClientConfig = ClientConfig {
        crypto: Arc::new(NullClient::new(["other"])),
        transport: Arc::default(),
    };
    let certificate = DevCertificate::deterministic([swiftwater_sim::SERVER_NAME]).unwrap();
    let tls = ClientTls::with_roots([certificate.certificate_der()]).unwrap();
    let tls = ClientConfig {
        crypto: Arc::new(tls.alpn(["other"]).at_unix_time(TODAY)),
        transport: Arc::default(),
    };
    for (cipher, config) in [(Cipher::Null, null), (Cipher::Tls, tls)] {
        let mut pair = Pair::builder().cipher(cipher).build().unwrap();
        let remote = pair.address(Side::Server);
        pair.start_with(&config, remote).unwrap();
        assert!(!pair.connect());
        run_to_close(&mut pair, Side::Client);
        let code = ErrorCode::crypto(120);
        match (reason(&pair, Side::Client), reason(&pair, Side::Server)) {
            (
                Some(ConnectionError::PeerTransport(heard)),
                Some(ConnectionError::Transport(said)),
            ) => assert_eq!((heard.code, said.code), (code, code), "{cipher:?}"),
            other => panic!("{cipher:?}: {other:?}"),
        }
        assert_eq!(pair.now(), Instant::from_millis(20), "{cipher:?}");
    }
}

#[test]
fn a_certificate_of_another_root_is_refused() {
    let stranger = DevCertificate::generate([swiftwater_sim::SERVER_NAME]).unwrap();
    let client = ClientTls::with_roots([stranger.certificate_der()]).unwrap();
    let config = ClientConfig {
        crypto: Arc::new(client.alpn(["sim"]).at_unix_time(TODAY)),
        transport: Arc::default(),
    };
    let mut pair = Pair::builder().cipher(Cipher::Tls).build().unwrap();
    let remote = pair.address(Side::Server);
    pair.start_with(&config, remote).unwrap();
    assert!(!pair.connect());
    run_to_close(&mut pair, Side::Server);
    let Some(ConnectionError::Transport(said)) = reason(&pair, Side::Client) else {
        panic!("{:?}", reason(&pair, Side::Client));
    };
    assert!((0x100..0x200).contains(&said.code.0), "{said}");
    let Some(ConnectionError::PeerTransport(heard)) = reason(&pair, Side::Server) else {
        panic!("{:?}", reason(&pair, Side::Server));
    };
    assert_eq!(heard.code, said.code);
    assert_eq!(
        count(&pair, Side::Client, |event| *event
            == swiftwater_quic::Event::Connected),
        0
    );
}

#[test]
fn an_answer_to_another_attempt_changes_nothing() {
    // A datagram of another connection's server, sent to the client by mistake, changes nothing.
    let mut first = Pair::builder().seed(99).build().unwrap();
    let answers = first.record(Direction::ToClient);
    assert!(first.connect());
    let mut pair = Pair::builder().build().unwrap();
    pair.start().unwrap();
    for datagram in answers.datagrams() {
        pair.inject(Direction::ToClient, &datagram.data, None);
    }
    assert!(works(&mut pair));
    assert_eq!(
        pair.stats(Side::Client).handshake_duration,
        Some(millis(20))
    );
}
