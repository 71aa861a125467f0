//! Rules that concern several features: challenges (RFC 9000, section 8.2), address tokens (section
//! 8.1.3), what early data share with the rest (sections 7.4.1 and 17.2.3), when acknowledgements come
//! (section 13.2.1), what is repeated (section 13.3), and closed
//! connections (section 10.2.1).

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use swiftwater_quic::crypto::EncryptionLevel;
use swiftwater_quic::wire::frame;
use swiftwater_quic::wire::{
    ErrorCode, Frame, PacketType, PartialHeader, TransportParameters, VERSION_1, Writer,
    write_retry,
};
use swiftwater_quic::{ConnectionError, EarlyDataOutcome, Event, TransportConfig};
use swiftwater_tls::{MemorySessionStore, ServerId, SessionStore};
use swiftwater_units::{Dir, Instant, PathId, Side, StreamId};

use crate::attack::{Attack, LoneClient, Setup, client_victim, home, on, server_victim};
use crate::cids::issue;
use crate::coding::{cid, encode};
use crate::early_data::{begun, meet_again};
use crate::peer::{Packet, RawPeer};

/// Least probe timeout of a path of which nothing is known (RFC 9002, sections 6.2.1 and 6.2.2).
const FIRST_TIMEOUT: Duration = Duration::from_millis(999);

fn place(n: u8) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, n], 7_777))
}

/// A server under attack with connection IDs to spare.
fn server() -> Attack {
    let mut attack = on(Side::Server);
    for n in 1..4_u64 {
        attack.send_frames(&[issue(n, 0, &n.to_be_bytes())]);
    }
    attack
}

/// A frame of the victim, where it went, and the size of its datagram.
type Sent = (SocketAddr, usize, [u8; 8]);

/// The victim's 1-RTT packets since `mark` (datagrams and packets) for which `wanted` holds.
fn sent_since(
    attack: &Attack,
    mark: (usize, usize),
    wanted: impl Fn(&Frame<'_>) -> Option<[u8; 8]>,
) -> Vec<Sent> {
    let (datagrams, packets) = (&attack.sent[mark.0..], &attack.peer.packets[mark.1..]);
    assert_eq!(datagrams.len(), packets.len(), "one packet in each");
    let mut sent = Vec::new();
    for (&(to, size), packet) in datagrams.iter().zip(packets) {
        let picked = packet.frames().filter_map(|(_, frame)| wanted(&frame));
        sent.extend(picked.map(|data| (to, size, data)));
    }
    sent
}

fn mark(attack: &Attack) -> (usize, usize) {
    (attack.sent.len(), attack.peer.packets.len())
}

fn challenge(frame: &Frame<'_>) -> Option<[u8; 8]> {
    match frame {
        Frame::PathChallenge { data } => Some(*data),
        _ => None,
    }
}

fn response(frame: &Frame<'_>) -> Option<[u8; 8]> {
    match frame {
        Frame::PathResponse { data } => Some(*data),
        _ => None,
    }
}

/// Sends a datagram of about 1200 bytes with this frame.
fn send_full(attack: &mut Attack, frame: &Frame<'_>) {
    let mut payload = encode(std::slice::from_ref(frame));
    payload.resize(1_150, 0);
    attack.send(&payload);
}

#[test]
fn challenges_are_all_different_and_not_in_haste() {
    let mut attack = server();
    attack.peer.acknowledges = false;
    let mut all = BTreeSet::new();
    for n in 1..4 {
        attack.from = place(n);
        let mut last: Option<(Instant, Duration)> = None;
        let mut count = 0;
        let mut before = mark(&attack);
        send_full(&mut attack, &Frame::Ping);
        for _ in 0..400 {
            for (to, _, data) in sent_since(&attack, before, challenge) {
                assert!(all.insert(data), "{data:?} twice");
                // Others go where the peer was before.
                if to == place(n) {
                    count += 1;
                    let waited = last.map(|(at, _)| attack.now - at);
                    let least = last.map(|(_, least)| least);
                    assert!(waited >= least, "{waited:?}");
                    // Two in each probe timeout, as an Initial packet is repeated.
                    last = Some((attack.now, waited.unwrap_or(FIRST_TIMEOUT / 2)));
                }
            }
            before = mark(&attack);
            attack.wait(Duration::from_millis(10));
        }
        // Of a first validation, and of a second after it as far as the limit of amplification permits.
        assert!((2..=8).contains(&count), "{count}");
    }
    assert!(all.len() >= 6);
}

#[test]
fn a_validation_in_a_small_datagram_is_followed_by_a_full_one() {
    let mut attack = server();
    attack.from = place(1);
    let before = mark(&attack);
    attack.send_frames(&[Frame::Ping]);
    let there = |sent: Vec<Sent>| -> Vec<Sent> {
        sent.into_iter().filter(|each| each.0 == place(1)).collect()
    };
    let first = there(sent_since(&attack, before, challenge));
    let [(_, size, data)] = first[..] else {
        panic!("{first:?}");
    };
    assert!(size < 100, "three times a small packet, not {size}");
    let before = mark(&attack);
    attack.send_frames(&[Frame::PathResponse { data }]);
    let second = there(sent_since(&attack, before, challenge));
    let [(_, size, again)] = second[..] else {
        panic!("{second:?}");
    };
    assert_eq!(size, 1200);
    assert_ne!(data, again);
    // The first answer is no answer to the second challenge.
    let before = mark(&attack);
    attack.send_frames(&[Frame::PathResponse { data: again }]);
    attack.pass(Duration::from_secs(5));
    assert!(there(sent_since(&attack, before, challenge)).is_empty());
    assert_eq!(attack.victim.connection().remote(), place(1));
}

#[test]
fn a_challenge_is_answered_at_once_where_it_came_from() {
    for side in [Side::Client, Side::Server] {
        let mut attack = match side {
            Side::Server => server(),
            Side::Client => on(side),
        };
        attack.peer.acknowledges = false;
        // A client accepts packets of its server from one address only.
        let places: &[SocketAddr] = match side {
            Side::Server => &[home(), place(1)],
            Side::Client => &[home()],
        };
        for &from in places {
            attack.from = from;
            let before = mark(&attack);
            let data = [u8::from(from == home()); 8];
            send_full(&mut attack, &Frame::PathChallenge { data });
            let echoes = sent_since(&attack, before, response);
            assert_eq!(echoes, [(from, 1200, data)], "{side:?}");
            // Once, whether or not it arrives.
            attack.wait(Duration::from_secs(5));
            assert_eq!(sent_since(&attack, before, response).len(), 1, "{side:?}");
        }
    }
}

#[test]
fn a_response_counts_from_wherever_it_comes() {
    let mut attack = server();
    attack.from = place(1);
    let before = mark(&attack);
    send_full(&mut attack, &Frame::Ping);
    let sent = sent_since(&attack, before, challenge);
    let asked = sent.iter().find(|each| each.0 == place(1)).copied();
    let (_, size, data) = asked.unwrap();
    assert_eq!(size, 1200);
    let moved = Event::PeerMoved {
        path: PathId::ZERO,
        remote: place(1),
    };
    assert!(!attack.victim.events.contains(&moved));
    // A probing packet from the old address, which moves nothing back.
    attack.from = home();
    attack.send_frames(&[Frame::PathResponse { data }]);
    assert!(attack.victim.events.contains(&moved));
    assert_eq!(attack.victim.connection().remote(), place(1));
    assert!(attack.victim.connection().stats().paths[0].validated);
}

fn server_named(name: &str) -> ServerId {
    ServerId {
        name: name.to_owned(),
        version: VERSION_1,
    }
}

/// A client whose store holds a token of the server `name`.
fn with_token(name: &str) -> (LoneClient, Arc<MemorySessionStore>) {
    let store = Arc::new(MemorySessionStore::new(2));
    store.put_token(&server_named(name), b"from before".to_vec());
    let lone = client_victim(Setup {
        sessions: Some(Arc::clone(&store)),
        ..Setup::default()
    });
    (lone, store)
}

fn token_of(initial: &[u8]) -> Vec<u8> {
    let header = PartialHeader::parse(initial, 0).unwrap();
    assert_eq!(header.packet_type, PacketType::Initial);
    initial[header.token].to_vec()
}

/// What a client sends when it receives nothing until its next timeout.
fn next_try(lone: &mut LoneClient) -> Vec<Vec<u8>> {
    lone.now = lone.victim.connection().poll_timeout().unwrap();
    lone.victim.handle_timeout(lone.now);
    let sent = lone.victim.transmits(lone.now);
    sent.into_iter().map(|(_, datagram)| datagram).collect()
}

#[test]
fn every_initial_carries_the_token_until_a_retry_replaces_it() {
    let (mut lone, store) = with_token("localhost");
    assert_eq!(token_of(&lone.first), b"from before");
    let mut seen = 0;
    for _ in 0..2 {
        for datagram in next_try(&mut lone) {
            assert_eq!(token_of(&datagram), b"from before");
            seen += 1;
        }
    }
    assert!(seen >= 2, "{seen}");
    let retry = RawPeer::retry(
        &*lone.crypto.primitives(),
        &lone.first,
        cid(b"retrycid"),
        b"of a retry",
    );
    let second = lone.receive(&retry);
    assert_eq!(second.len(), 1);
    assert_eq!(token_of(&second[0]), b"of a retry");
    let mut seen = 0;
    for _ in 0..2 {
        for datagram in next_try(&mut lone) {
            assert_eq!(token_of(&datagram), b"of a retry");
            seen += 1;
        }
    }
    assert!(seen >= 2, "{seen}");
    let mut attack = lone.meet(&second[0], true);
    attack.establish();
    // A token works once, and a Retry's only for its own attempt.
    assert_eq!(store.take_token(&server_named("localhost")), None);
}

/// Four bits of its first byte mean nothing (RFC 9000, section 17.2.5).
#[test]
fn a_retry_may_have_any_unused_bits() {
    for bits in 0..16 {
        let mut lone = client_victim(Setup::default());
        let header = PartialHeader::parse(&lone.first, 0).unwrap();
        let mut packet = vec![0; 200];
        let mut w = Writer::new(&mut packet);
        let source = cid(b"retrycid");
        write_retry(&mut w, VERSION_1, header.src_cid, source, b"token", bits);
        let primitives = lone.crypto.primitives();
        let tag = primitives.retry_tag(VERSION_1, &header.dst_cid, w.filled_mut());
        w.bytes(&tag);
        let len = w.filled_mut().len();
        let second = lone.receive(&packet[..len]);
        assert_eq!(second.len(), 1, "{bits}");
        assert_eq!(token_of(&second[0]), b"token");
    }
}

#[test]
fn tokens_of_other_servers_are_not_shown() {
    let (lone, store) = with_token("other.example");
    assert!(token_of(&lone.first).is_empty());
    assert!(store.take_token(&server_named("other.example")).is_some());
}

#[test]
fn clients_detect_whichever_limit_fell() {
    let limits: [fn(&mut TransportParameters) -> &mut u64; 8] = [
        |parameters| &mut parameters.active_connection_id_limit,
        |parameters| &mut parameters.initial_max_data,
        |parameters| &mut parameters.initial_max_stream_data_bidi_local,
        |parameters| &mut parameters.initial_max_stream_data_bidi_remote,
        |parameters| &mut parameters.initial_max_stream_data_uni,
        |parameters| &mut parameters.initial_max_streams_bidi,
        |parameters| &mut parameters.initial_max_streams_uni,
        |parameters| &mut parameters.max_datagram_frame_size,
    ];
    for (n, limit) in limits.into_iter().enumerate() {
        // The server lost its limits, and accepts early data all the same.
        let mut attack = meet_again(true, |persona| *limit(&mut persona.parameters) -= 1);
        attack.converse();
        let reasons = attack.victim.reasons();
        assert!(
            matches!(reasons[..], [ConnectionError::Transport(error)]
                if error.code == ErrorCode::PROTOCOL_VIOLATION),
            "{n}: {reasons:?}"
        );
        let mut attack = meet_again(true, |persona| *limit(&mut persona.parameters) += 1);
        attack.establish();
        let outcome = attack.victim.connection().early_data();
        assert_eq!(outcome, Some(EarlyDataOutcome::Accepted), "{n}");
    }
}

#[test]
fn early_data_and_the_rest_share_their_packet_numbers() {
    let mut attack = begun(TransportConfig::default());
    let number = attack.peer.next_number(EncryptionLevel::OneRtt);
    let early = encode(&[Frame::Stream(frame::Stream {
        id: StreamId::new(Side::Client, Dir::Uni, 0),
        offset: 0,
        data: b"early",
        fin: false,
    })]);
    let packet = attack
        .peer
        .seal(&Packet::new(EncryptionLevel::ZeroRtt, &early));
    attack.deliver(&packet);
    attack.establish();
    // Acknowledged under 1-RTT keys, and never again what a 1-RTT packet may be called.
    assert!(attack.peer.is_acked(EncryptionLevel::OneRtt, number));
    let received = |attack: &mut Attack| attack.victim.connection().stats().packets_received;
    let before = received(&mut attack);
    attack.send_packet(&Packet {
        number: Some(number),
        ..Packet::new(EncryptionLevel::OneRtt, &encode(&[Frame::Ping]))
    });
    assert_eq!(received(&mut attack), before);
    attack.assert_open();
}

#[test]
fn a_client_with_early_keys_takes_no_early_data_of_its_server() {
    let mut attack = meet_again(false, |_| {});
    attack.peer.take_early_keys();
    assert!(attack.peer.has_keys(EncryptionLevel::ZeroRtt));
    let dropped = |attack: &mut Attack| attack.victim.connection().stats().packets_dropped.get();
    let before = dropped(&mut attack);
    let ping = encode(&[Frame::Ping]);
    let packet = attack
        .peer
        .seal(&Packet::new(EncryptionLevel::ZeroRtt, &ping));
    attack.deliver(&packet);
    assert_eq!(dropped(&mut attack), before + 1);
    attack.establish();
    let outcome = attack.victim.connection().early_data();
    assert_eq!(outcome, Some(EarlyDataOutcome::Accepted));
    assert!(!attack.peer.is_acked(EncryptionLevel::OneRtt, 0));
}

#[test]
fn acknowledgements_come_within_the_declared_delay() {
    let mut attack = server_victim(Setup::default());
    for datagram in attack.peer.answers() {
        attack.deliver(&datagram);
    }
    // No time has passed, and no other kind of packet acknowledges them.
    assert!(attack.peer.is_acked(EncryptionLevel::Initial, 0));
    let ping = encode(&[Frame::Ping]);
    let number = attack.peer.next_number(EncryptionLevel::Handshake);
    attack.send_packet(&Packet::new(EncryptionLevel::Handshake, &ping));
    assert!(attack.peer.is_acked(EncryptionLevel::Handshake, number));
    for side in [Side::Client, Side::Server] {
        let mut attack = on(side);
        let promised = attack.peer.victims_parameters().max_ack_delay;
        let number = attack.peer.next_number(EncryptionLevel::OneRtt);
        attack.send(&ping);
        attack.wait(promised);
        assert!(
            attack.peer.is_acked(EncryptionLevel::OneRtt, number),
            "{side:?}"
        );
    }
}

#[test]
fn a_closed_victim_sends_little_elsewhere() {
    let mut attack = server();
    let reason = [b'x'; 200];
    attack.victim.connection().close(attack.now, 7, &reason);
    attack.collect();
    attack.from = place(1);
    let mut received = 0;
    for _ in 0..50 {
        let datagram = attack.peer.seal_payload(&encode(&[Frame::Ping]));
        received += datagram.len();
        attack.deliver(&datagram);
        assert!(attack.bytes_to(place(1)) <= 3 * received);
    }
}

#[test]
fn the_end_of_the_handshake_is_sent_until_it_is_acknowledged() {
    let mut attack = server_victim(Setup::default());
    attack.peer.acknowledges = false;
    attack.converse();
    assert!(attack.peer.is_complete());
    let told = |attack: &Attack| attack.peer.count(|frame| *frame == Frame::HandshakeDone);
    assert_eq!(told(&attack), 1);
    attack.wait(Duration::from_secs(3));
    assert!(told(&attack) > 1);
    attack.peer.acknowledges = true;
    attack.pass(Duration::from_secs(1));
    let before = told(&attack);
    attack.pass(Duration::from_secs(20));
    assert_eq!(told(&attack), before);
    attack.assert_open();
}
