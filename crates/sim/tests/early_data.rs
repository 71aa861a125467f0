//! Resumption, early data (0-RTT) and what servers send before the handshake is complete (0.5-RTT)
//! (RFC 9000, section 7.4.1; RFC 9001, sections 4.5, 4.6, 5.7 and 9.2).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use swiftwater_quic::crypto::{ClientCrypto, ServerCrypto};
use swiftwater_quic::wire::{PacketType, VERSION_1, VERSION_2};
use swiftwater_quic::{
    ConnectionError, EarlyData, EarlyDataOutcome, Event, RetryPolicy, TransportConfig,
};
use swiftwater_sim::{Direction, Pair, PairBuilder, SERVER_NAME, Verdict};
use swiftwater_tls::null::{NullClient, NullServer};
use swiftwater_tls::{
    CipherSuite, ClientTls, DevCertificate, MemorySessionStore, ServerTls, Tickets,
};
use swiftwater_units::{ByteCount, Dir, Instant, Side};

use crate::support::hands::Hands;
use crate::support::{BOTH, drop_if, link, millis, packet_types, reason, secs};

/// A day on which the deterministic certificate is valid.
const TODAY: Duration = Duration::from_secs(1_735_689_600);

/// State that a client and a server keep from one connection to the next.
#[derive(Clone)]
struct World {
    client: Arc<dyn ClientCrypto>,
    server: Arc<dyn ServerCrypto>,
}

fn null_client(alpn: &[&str], store: &Arc<MemorySessionStore>) -> Arc<dyn ClientCrypto> {
    let client = NullClient::new(alpn.iter().copied()).with_early_data(true);
    Arc::new(client.with_sessions(Arc::clone(store) as _))
}

fn null_server() -> NullServer {
    NullServer::new(["sim"])
        .with_ticket(true)
        .with_early_data(true)
}

fn null_world() -> World {
    World {
        client: null_client(&["sim"], &Arc::default()),
        server: Arc::new(null_server()),
    }
}

fn tls_world() -> World {
    let certificate = DevCertificate::deterministic([SERVER_NAME]).unwrap();
    let suites = [CipherSuite::Aes128Gcm];
    let client = ClientTls::with_roots([certificate.certificate_der()])
        .unwrap()
        .with_cipher_suites(&suites)
        .unwrap()
        .alpn(["sim"])
        .at_unix_time(TODAY)
        .sessions(Arc::new(MemorySessionStore::default()))
        .early_data(true);
    let server = ServerTls::from_dev_certificate(&certificate)
        .unwrap()
        .alpn(["sim"])
        .tickets(Tickets::SingleUse { capacity: 100 })
        .unwrap()
        .early_data(true);
    World {
        client: Arc::new(client),
        server: Arc::new(server),
    }
}

fn worlds() -> [World; 2] {
    [null_world(), tls_world()]
}

impl World {
    /// The next visit: another seed, so that connection IDs differ.
    fn visit(&self, seed: u64, early: EarlyData) -> PairBuilder {
        Pair::builder()
            .seed(seed)
            .crypto(Arc::clone(&self.client), Arc::clone(&self.server))
            .server_settings(move |server| server.early_data = early)
    }

    /// The client's first connection to the server.
    fn meet(&self) {
        let mut pair = self.visit(1, EarlyData::Accept).build().unwrap();
        assert!(pair.connect());
        pair.advance(secs(1));
        assert!(!pair.stats(Side::Client).resumed);
        assert_eq!(pair.stats(Side::Client).early_data, None);
    }

    /// A second connection, started but not run.
    fn return_to(&self, change: impl FnOnce(PairBuilder) -> PairBuilder) -> Pair {
        self.meet();
        let mut pair = change(self.visit(2, EarlyData::Accept)).build().unwrap();
        pair.start().unwrap();
        pair
    }
}

fn outcome(pair: &Pair) -> [Option<EarlyDataOutcome>; 2] {
    [Side::Client, Side::Server].map(|side| pair.stats(side).early_data)
}

fn settled(pair: &Pair) -> Vec<Event> {
    let events = pair.events(Side::Client).iter();
    events
        .filter(|event| !matches!(event, Event::Stream(_) | Event::NewToken { .. }))
        .cloned()
        .collect()
}

const ACCEPTED: [Option<EarlyDataOutcome>; 2] = [Some(EarlyDataOutcome::Accepted); 2];
const REJECTED: [Option<EarlyDataOutcome>; 2] = [Some(EarlyDataOutcome::Rejected); 2];

#[test]
fn early_data_arrive_after_half_a_round_trip() {
    for world in worlds() {
        let mut pair = world.return_to(|builder| builder);
        assert!(pair.client().may_send_early_data());
        let request = pair.start_transfer(3_000, Direction::ToServer);
        assert!(pair.finish_transfers());
        assert!(pair.transfer_report(request).finish < Instant::from_millis(11));
        assert!(pair.connect());
        assert!(!pair.client().may_send_early_data());
        assert_eq!(outcome(&pair), ACCEPTED);
        for side in [Side::Client, Side::Server] {
            assert!(pair.stats(side).resumed);
        }
        assert_eq!(
            settled(&pair),
            [
                Event::EarlyDataReady,
                Event::EarlyData(EarlyDataOutcome::Accepted),
                Event::Connected,
                Event::Confirmed,
            ]
        );
        assert_eq!(pair.stats(Side::Client).stream_bytes_retransmitted.get(), 0);
    }
}

/// The RTT isn't known yet, so a pacer that went by the assumed one would hold most of it back.
#[test]
fn a_whole_initial_window_of_requests_goes_early() {
    for world in worlds() {
        let mut pair = world.return_to(|builder| builder);
        let sent = pair.record(Direction::ToServer);
        // One after the other, so that between two there is nothing to send.
        for _ in 0..39 {
            pair.start_transfer(200, Direction::ToServer);
            pair.advance(Duration::from_micros(100));
        }
        assert!(pair.finish_transfers());
        let early: usize = sent
            .datagrams()
            .iter()
            .filter(|each| packet_types(&each.data).contains(&PacketType::ZeroRtt))
            .map(|each| each.data.len())
            .sum();
        assert!(early > 39 * 200, "{early}");
        // All of it arrived half a round trip after it was asked for.
        assert!(pair.now() < Instant::from_millis(15), "{}", pair.now());
    }
}

#[test]
fn the_answer_to_early_data_takes_one_round_trip() {
    for world in worlds() {
        let mut pair = world.return_to(|builder| builder);
        let mut hands = Hands::echoing();
        let id = hands
            .send(&mut pair, Side::Client, Dir::Bi, b"request".to_vec())
            .unwrap();
        assert!(hands.run(&mut pair, |hands, _| hands.ends(Side::Client) == 1));
        assert!(pair.now() < Instant::from_millis(21), "{}", pair.now());
        assert_eq!(hands.read(Side::Client, id).data, b"request");
    }
}

#[test]
fn servers_see_which_streams_brought_early_data() {
    let mut pair = null_world().return_to(|builder| builder);
    let mut early = Hands::lazy(Side::Server);
    let first = early
        .send(&mut pair, Side::Client, Dir::Bi, b"early".to_vec())
        .unwrap();
    assert!(pair.connect());
    let second = early
        .send(&mut pair, Side::Client, Dir::Bi, b"late".to_vec())
        .unwrap();
    pair.advance(millis(50));
    for (id, is_early) in [(first, true), (second, false)] {
        assert_eq!(pair.server().recv_stream(id).is_early_data(), is_early);
        assert!(!pair.client().recv_stream(id).is_early_data());
    }
}

#[test]
fn sessions_resume_without_early_data_too() {
    let store = Arc::default();
    let world = World {
        client: null_client(&["sim"], &store),
        server: Arc::new(NullServer::new(["sim"]).with_ticket(true)),
    };
    let pair = &mut world.return_to(|builder| builder);
    assert!(!pair.client().may_send_early_data());
    assert!(pair.connect());
    assert!(pair.stats(Side::Client).resumed && pair.stats(Side::Server).resumed);
    assert_eq!(outcome(pair), [None, None]);
    assert_eq!(settled(pair), [Event::Connected, Event::Confirmed]);
}

#[test]
fn rejected_early_data_are_sent_anew() {
    for world in worlds() {
        let reject = |builder: PairBuilder| {
            builder.server_settings(|server| server.early_data = EarlyData::Reject)
        };
        let mut pair = world.return_to(reject);
        let transfers: Vec<_> = [0, 1, 3_000, 100_000]
            .map(|bytes| pair.start_transfer(bytes, Direction::ToServer))
            .into();
        assert!(pair.finish_transfers());
        for transfer in transfers {
            // A round trip for the handshake came first.
            let report = pair.transfer_report(transfer);
            assert!(report.finish >= Instant::from_millis(30), "{report:?}");
        }
        assert!(pair.connect());
        assert_eq!(outcome(&pair), REJECTED);
        assert!(pair.stats(Side::Client).resumed);
        assert!(settled(&pair).contains(&Event::EarlyData(EarlyDataOutcome::Rejected)));
        for direction in BOTH {
            pair.start_transfer(50_000, direction);
        }
        assert!(pair.finish_transfers());
    }
}

#[test]
fn what_was_reset_or_stopped_before_a_rejection_stays_so() {
    let world = null_world();
    let mut pair = world.return_to(|builder| {
        builder.server_settings(|server| server.early_data = EarlyData::Reject)
    });
    let mut hands = Hands::default();
    let id = hands
        .send(&mut pair, Side::Client, Dir::Bi, vec![1; 5_000])
        .unwrap();
    pair.advance(millis(1));
    pair.client().send_stream(id).reset(7).unwrap();
    pair.client().recv_stream(id).stop(8).unwrap();
    assert!(hands.run(&mut pair, |hands, _| hands.ends(Side::Server) == 1));
    let read = hands.read(Side::Server, id);
    assert_eq!(
        read.end,
        Some(Err(swiftwater_quic::ReadError::Reset(7))),
        "{read:?}"
    );
    hands.run(&mut pair, |_, pair| pair.now() > Instant::from_millis(200));
    assert_eq!(reason(&pair, Side::Client), None);
    assert_eq!(reason(&pair, Side::Server), None);
}

/// A server with reduced limits must not accept early data.
#[test]
fn early_data_are_rejected_by_a_server_with_lower_limits() {
    for (nth, world) in worlds().into_iter().enumerate() {
        let shrink = |builder: PairBuilder| {
            builder.server_config(|config| {
                config.stream_receive_window = ByteCount::new(4_000);
                config.receive_window = ByteCount::new(9_000);
                config.max_receive_window = ByteCount::new(9_000);
                config.max_stream_receive_window = ByteCount::new(4_000);
            })
        };
        let mut pair = world.return_to(shrink);
        for _ in 0..4 {
            pair.start_transfer(20_000, Direction::ToServer);
        }
        assert!(pair.finish_transfers());
        assert!(pair.connect());
        assert_eq!(outcome(&pair), REJECTED);
        // The null cipher can distinguish limits from session; rustls finds no session.
        assert_eq!(pair.stats(Side::Client).resumed, nth == 0);
        assert_eq!(reason(&pair, Side::Client), None);
    }
}

#[test]
fn early_data_are_accepted_by_a_server_with_higher_limits() {
    let grow = |builder: PairBuilder| {
        builder.server_config(|config| config.receive_window = ByteCount::new(8 << 20))
    };
    let mut pair = null_world().return_to(grow);
    pair.start_transfer(3_000_000, Direction::ToServer);
    assert!(pair.finish_transfers() && pair.connect());
    assert_eq!(outcome(&pair), ACCEPTED);
}

#[test]
fn clients_keep_to_stored_limits_and_then_to_the_present_ones() {
    let world = null_world();
    let small = |config: &mut TransportConfig| config.max_concurrent_uni_streams = 3;
    let first = world.visit(1, EarlyData::Accept).server_config(small);
    let mut pair = first.build().unwrap();
    assert!(pair.connect());
    pair.advance(secs(1));
    let mut pair = world.visit(2, EarlyData::Accept).build().unwrap();
    pair.start().unwrap();
    let opened = (0..10).map_while(|_| pair.client().open(Dir::Uni)).count();
    assert_eq!(opened, 3);
    assert!(pair.connect());
    assert_eq!(outcome(&pair)[0], Some(EarlyDataOutcome::Accepted));
    assert!(pair.client().open(Dir::Uni).is_some());
}

#[test]
fn early_data_on_more_streams_than_the_server_now_takes_are_lost() {
    let shrink = |builder: PairBuilder| {
        builder.server_config(|config| config.max_concurrent_uni_streams = 3)
    };
    let mut pair = null_world().return_to(shrink);
    for _ in 0..4 {
        pair.start_transfer(10, Direction::ToServer);
    }
    assert!(!pair.connect());
    assert_eq!(
        reason(&pair, Side::Client),
        Some(ConnectionError::EarlyDataLost)
    );
    assert!(!pair.events(Side::Client).contains(&Event::Connected));
}

#[test]
fn early_data_of_another_protocol_are_never_sent_anew() {
    let store = Arc::default();
    let client = null_client(&["new", "old"], &store);
    let server = |alpn| {
        let server = NullServer::new([alpn]).with_ticket(true);
        Arc::new(server.with_early_data(true).with_replayable_tickets(true))
    };
    let old = World {
        client: Arc::clone(&client),
        server: server("old"),
    };
    let new = World {
        client,
        server: server("new"),
    };
    for sends in [true, false] {
        old.meet();
        let mut pair = new.visit(2, EarlyData::Accept).build().unwrap();
        pair.start().unwrap();
        assert!(pair.client().may_send_early_data());
        if sends {
            pair.start_transfer(10, Direction::ToServer);
            assert!(!pair.connect());
            let error = reason(&pair, Side::Client);
            assert_eq!(error, Some(ConnectionError::EarlyDataLost));
        } else {
            // Nothing was said in the old protocol.
            assert!(pair.connect());
            assert_eq!(pair.client().alpn(), Some(b"new".as_slice()));
        }
    }
}

#[test]
fn lost_early_data_are_repeated() {
    for lost in [vec![0], vec![1], vec![0, 1, 2, 3], (1..12).collect()] {
        let mut pair = null_world().return_to(|builder| builder);
        let which = lost.clone();
        let dropped = drop_if(&mut pair, Direction::ToServer, move |datagram| {
            which.contains(&datagram.index)
        });
        pair.start_transfer(8_000, Direction::ToServer);
        assert!(pair.finish_transfers(), "{lost:?}");
        assert!(pair.connect());
        assert!(*dropped.borrow() > 0);
        assert_eq!(outcome(&pair)[0], Some(EarlyDataOutcome::Accepted));
        // One probe timeout of the assumed round trip at most, and some.
        assert!(pair.now() < Instant::from_millis(1_500), "{}", pair.now());
    }
}

#[test]
fn early_data_may_overtake_their_initial() {
    for world in worlds() {
        let mut pair = world.return_to(|builder| builder);
        pair.tap(Direction::ToServer, |datagram| match datagram.index {
            0 => Verdict::Delay(millis(20)),
            _ => Verdict::Pass,
        });
        pair.start_transfer(8_000, Direction::ToServer);
        assert!(pair.finish_transfers());
        // All of it was available when the first datagram arrived.
        assert!(pair.now() < Instant::from_millis(31), "{}", pair.now());
        let host = pair.host(Side::Server);
        let stats = pair.network().endpoint_stats(host);
        assert!(stats.zero_rtt_kept >= 5, "{stats:?}");
        assert!(pair.connect());
        assert_eq!(outcome(&pair), ACCEPTED);
        assert_eq!(pair.stats(Side::Client).stream_bytes_retransmitted.get(), 0);
    }
}

#[test]
fn early_data_survive_a_retry() {
    for world in worlds() {
        let mut pair = world.return_to(|builder| builder.retry(RetryPolicy::Always));
        pair.start_transfer(1_500, Direction::ToServer);
        assert!(pair.finish_transfers());
        // One round trip for the Retry, half of one for the data.
        assert!(pair.now() < Instant::from_millis(31), "{}", pair.now());
        assert!(pair.connect());
        assert_eq!(outcome(&pair), ACCEPTED);
        let host = pair.host(Side::Server);
        assert_eq!(pair.network().endpoint_stats(host).retries_sent, 1);
    }
}

#[test]
fn tokens_are_kept_beside_sessions() {
    for world in worlds() {
        world.meet();
        // The same seed gives the same server, which accepts its tokens again.
        let mut pair = world
            .visit(1, EarlyData::Accept)
            .retry(RetryPolicy::Always)
            .build()
            .unwrap();
        pair.advance(secs(5));
        assert!(pair.connect());
        let host = pair.host(Side::Server);
        assert_eq!(pair.network().endpoint_stats(host).retries_sent, 0);
        let told = |event: &Event| matches!(event, Event::NewToken { .. });
        assert!(!pair.events(Side::Client).iter().any(told));
    }
}

/// Records the first flight of a returning client and gives it to the same server once more.
fn replay(world: &World) -> Pair {
    let mut pair = world.return_to(|builder| builder);
    let sent = pair.record(Direction::ToServer);
    pair.start_transfer(3_000, Direction::ToServer);
    assert!(pair.finish_transfers() && pair.connect());
    assert_eq!(outcome(&pair), ACCEPTED);
    let mut victim = world.visit(3, EarlyData::Accept).build().unwrap();
    for datagram in sent.datagrams() {
        if datagram.at < Instant::from_millis(10) {
            victim.inject(Direction::ToServer, &datagram.data, None);
        }
    }
    victim.advance(millis(5));
    victim
}

#[test]
fn replayed_early_data_are_refused_where_tickets_work_once() {
    for world in worlds() {
        let mut victim = replay(&world);
        assert_eq!(victim.server().accept(Dir::Uni), None);
        assert_eq!(
            victim.stats(Side::Server).early_data,
            Some(EarlyDataOutcome::Rejected)
        );
    }
}

#[test]
fn replayed_early_data_are_marked_where_tickets_work_often() {
    let mut world = null_world();
    world.server = Arc::new(null_server().with_replayable_tickets(true));
    let mut victim = replay(&world);
    let id = victim.server().accept(Dir::Uni).unwrap();
    assert!(victim.server().recv_stream(id).is_early_data());
    // And this is how a server detects an unvalidated client.
    assert!(victim.server().is_handshaking());
    victim.advance(secs(20));
    assert!(victim.stats(Side::Server).handshake_duration.is_none());
}

#[test]
fn datagrams_can_be_early_data() {
    let mut pair = null_world().return_to(|builder| builder);
    let max = pair.client().max_datagram_size().unwrap();
    for len in [max, 1] {
        let data = Bytes::from(vec![9; len]);
        pair.client().send_datagram(data).unwrap();
    }
    pair.advance(millis(11));
    for len in [max, 1] {
        assert_eq!(pair.server().recv_datagram().unwrap().len(), len);
    }
    assert!(pair.connect());
    assert!(pair.client().max_datagram_size().unwrap() > max);
}

#[test]
fn packets_of_early_data_carry_what_they_may_and_end_with_the_handshake() {
    let mut pair = null_world().return_to(|builder| builder);
    let sent = pair.record(Direction::ToServer);
    pair.start_transfer(100_000, Direction::ToServer);
    assert!(pair.finish_transfers() && pair.connect());
    let mut has_ended = false;
    let mut early = 0;
    for datagram in sent.datagrams() {
        for kind in packet_types(&datagram.data) {
            has_ended |= kind == PacketType::OneRtt;
            early += usize::from(kind == PacketType::ZeroRtt);
            assert!(!(has_ended && kind == PacketType::ZeroRtt));
        }
    }
    // The initial window, no more.
    assert!((9..=12).contains(&early), "{early}");
}

#[test]
fn servers_may_send_before_the_handshake_is_complete() {
    for (half_rtt, arrives) in [(true, 20), (false, 40)] {
        for cipher in [swiftwater_sim::Cipher::Null, swiftwater_sim::Cipher::Tls] {
            let mut pair = Pair::builder()
                .cipher(cipher)
                .server_settings(move |server| server.half_rtt = half_rtt)
                .build()
                .unwrap();
            pair.start().unwrap();
            let greeting = pair.start_transfer(500, Direction::ToClient);
            assert!(pair.finish_transfers());
            let finish = pair.transfer_report(greeting).finish;
            let (least, most) = (millis(arrives), millis(arrives + 1));
            let took = finish - Instant::ZERO;
            assert!(took >= least && took < most, "{half_rtt} {took:?}");
            assert!(pair.connect());
            let ready = Event::EarlyDataReady;
            assert_eq!(pair.events(Side::Server).contains(&ready), half_rtt);
        }
    }
}

#[test]
fn a_server_that_sends_early_keeps_to_the_amplification_limit() {
    let mut pair = Pair::builder()
        .server_settings(|server| server.half_rtt = true)
        .build()
        .unwrap();
    let (received, sent) = (
        pair.record(Direction::ToServer),
        pair.record(Direction::ToClient),
    );
    // The client sends nothing after its first flight.
    drop_if(&mut pair, Direction::ToServer, |datagram| {
        datagram.index > 0
    });
    pair.start().unwrap();
    pair.start_transfer(100_000, Direction::ToClient);
    pair.advance(secs(5));
    let first = received.datagrams()[0].data.len() as u64;
    assert!(sent.bytes() <= 3 * first, "{} {first}", sent.bytes());
    assert!(sent.bytes() > 2 * first, "it did send early");
}

#[test]
fn lossy_returns_deliver_everything() {
    for seed in 0..20 {
        for early in [EarlyData::Accept, EarlyData::Reject] {
            let world = null_world();
            world.meet();
            let mut pair = world
                .visit(100 + seed, early)
                .link(link(10, 20).loss(swiftwater_link::LossModel::Bernoulli(0.2)))
                .build()
                .unwrap();
            pair.start().unwrap();
            for direction in BOTH {
                pair.start_transfer(30_000, direction);
            }
            assert!(pair.finish_transfers(), "seed {seed} {early:?}");
        }
    }
}

/// Sessions and early data belong to the version that they started with (RFC 9369, sections 4.1 and
/// 5).
#[test]
fn servers_that_change_the_version_reject_early_data() {
    for world in worlds() {
        world.meet();
        let mut pair = world
            .visit(2, EarlyData::Accept)
            .endpoint(Side::Server, |config| {
                config.versions = vec![VERSION_2, VERSION_1];
            })
            .build()
            .unwrap();
        pair.start().unwrap();
        assert!(pair.client().may_send_early_data());
        pair.start_transfer(8_000, Direction::ToServer);
        assert!(pair.finish_transfers() && pair.connect());
        assert_eq!(pair.stats(Side::Client).version, VERSION_2);
        assert_eq!(outcome(&pair), REJECTED);
        assert!(!pair.stats(Side::Client).resumed);
        pair.advance(secs(1));
        // It results in a session of the other version.
        let mut pair = world.visit(3, EarlyData::Accept).build().unwrap();
        pair.start().unwrap();
        // The remaining ticket is one of the first connection, and of its version.
        pair.start_transfer(8_000, Direction::ToServer);
        assert!(pair.finish_transfers() && pair.connect());
    }
}

#[test]
fn early_data_of_a_version_that_the_server_does_not_support_are_sent_anew() {
    for world in worlds() {
        world.meet();
        let mut pair = world
            .visit(2, EarlyData::Accept)
            .endpoint(Side::Server, |config| config.versions = vec![VERSION_2])
            .build()
            .unwrap();
        pair.start().unwrap();
        assert!(pair.client().may_send_early_data());
        pair.start_transfer(8_000, Direction::ToServer);
        pair.client()
            .send_datagram(Bytes::from_static(b"lost"))
            .unwrap();
        assert!(pair.finish_transfers() && pair.connect());
        assert_eq!(pair.stats(Side::Client).version, VERSION_2);
        assert_eq!(pair.stats(Side::Client).early_data, REJECTED[0]);
    }
}
