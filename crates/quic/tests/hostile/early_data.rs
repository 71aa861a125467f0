//! Early data: what they may carry, when they may come, and how much of them (RFC 9000, sections
//! 7.4.1, 12.4 and 12.5; RFC 9001, sections 4.6 and 4.9.3).

use std::sync::Arc;
use std::time::Duration;

use swiftwater_quic::crypto::{EncryptionLevel, ServerCrypto};
use swiftwater_quic::wire::frame;
use swiftwater_quic::wire::{ErrorCode, Frame};
use swiftwater_quic::{ConnectionError, EarlyDataOutcome, Event, StreamEvent, TransportConfig};
use swiftwater_tls::MemorySessionStore;
use swiftwater_tls::null::NullServer;
use swiftwater_units::{ByteCount, Dir, Side, StreamId};

use crate::attack::{Attack, Setup, client_victim, home, returning_client};
use crate::coding::{ack, encode};
use crate::peer::Packet;
use crate::persona::Persona;

fn stream(offset: u64, data: &[u8]) -> Vec<u8> {
    encode(&[Frame::Stream(frame::Stream {
        id: StreamId::new(Side::Client, Dir::Uni, 0),
        offset,
        data,
        fin: false,
    })])
}

/// A server that has the first Initial of a returning client.
pub(crate) fn begun(transport: TransportConfig) -> Attack {
    let (mut attack, _) = returning_client(transport);
    let initial = attack.peer.answers().remove(0);
    attack.deliver(&initial);
    assert_eq!(attack.victim.accepted, 2);
    assert!(attack.victim.reasons().is_empty());
    attack
}

impl Attack {
    fn send_early(&mut self, payload: &[u8]) {
        let packet = self
            .peer
            .seal(&Packet::new(EncryptionLevel::ZeroRtt, payload));
        self.deliver(&packet);
    }

    fn early_outcome(&mut self) -> Option<EarlyDataOutcome> {
        self.victim.connection().early_data()
    }
}

#[test]
fn frames_that_early_data_must_not_carry_are_violations() {
    let forbidden: [(u64, Vec<u8>); 7] = [
        (0x02, ack(&[0..=0], None)),
        (
            0x06,
            encode(&[Frame::Crypto(frame::Crypto {
                offset: 0,
                data: b"hello",
            })]),
        ),
        (0x07, encode(&[Frame::NewToken { token: b"token" }])),
        (
            0x19,
            encode(&[Frame::RetireConnectionId {
                path: None,
                sequence: 0,
            }]),
        ),
        (0x1b, encode(&[Frame::PathResponse { data: [7; 8] }])),
        (0x1e, encode(&[Frame::HandshakeDone])),
        // Nothing at all.
        (0, Vec::new()),
    ];
    for (frame_type, mut payload) in forbidden {
        let mut attack = begun(TransportConfig::default());
        if payload.is_empty() {
            attack.send_early(&payload);
        } else {
            payload.resize(40, 0);
            attack.send_early(&payload);
        }
        attack.assert_closed(ErrorCode::PROTOCOL_VIOLATION, frame_type);
    }
}

#[test]
fn frames_that_early_data_may_carry_are_taken() {
    let id = StreamId::new(Side::Client, Dir::Bi, 0);
    let permitted = encode(&[
        Frame::Ping,
        Frame::MaxData { limit: 1 << 30 },
        Frame::MaxStreams {
            dir: Dir::Uni,
            count: 50,
        },
        Frame::DataBlocked { limit: 5 },
        Frame::StreamsBlocked {
            dir: Dir::Bi,
            limit: 5,
        },
        Frame::StreamDataBlocked { id, limit: 7 },
        Frame::MaxStreamData { id, limit: 1 << 29 },
        Frame::PathChallenge { data: [3; 8] },
        Frame::Datagram { data: b"datagram" },
    ]);
    let mut attack = begun(TransportConfig::default());
    attack.send_early(&permitted);
    attack.send_early(&stream(0, b"early"));
    assert!(attack.victim.reasons().is_empty());
    assert_eq!(attack.early_outcome(), Some(EarlyDataOutcome::Accepted));
    let opened = Event::Stream(StreamEvent::Opened { dir: Dir::Uni });
    assert!(attack.victim.events.contains(&opened));
    attack.establish();
}

#[test]
fn more_early_data_than_permitted_are_a_flow_control_error() {
    let transport = TransportConfig {
        stream_receive_window: ByteCount::new(2_000),
        receive_window: ByteCount::new(2_000),
        ..TransportConfig::default()
    };
    let mut attack = begun(transport.clone());
    attack.send_early(&stream(1_000, &[0; 1_000]));
    assert!(attack.victim.reasons().is_empty());
    attack.send_early(&stream(1_999, &[0; 2]));
    attack.assert_closed(ErrorCode::FLOW_CONTROL_ERROR, 0x0e);
}

#[test]
fn early_data_after_the_handshake_are_dropped_after_a_while() {
    let mut attack = begun(TransportConfig::default());
    attack.establish();
    // Those on their way may come for a moment.
    attack.send_early(&stream(0, b"late"));
    let opened = Event::Stream(StreamEvent::Opened { dir: Dir::Uni });
    assert!(attack.victim.events.contains(&opened));
    attack.send_frames(&[Frame::Ping]);
    attack.pass(Duration::from_secs(5));
    attack.converse();
    let before = attack.victim.connection().stats();
    attack.send_early(&stream(4, b"much too late"));
    let after = attack.victim.connection().stats();
    assert_eq!(before.packets_received, after.packets_received);
    assert_eq!(
        before.packets_dropped.get() + 1,
        after.packets_dropped.get()
    );
    assert!(attack.victim.reasons().is_empty());
}

/// Early data without an Initial occupy a bounded place for a moment.
#[test]
fn early_data_without_a_connection_are_kept_in_bounds() {
    let (mut attack, client) = returning_client(TransportConfig::default());
    let mut kept = 0;
    attack.victim.meter.restart();
    let held = attack.victim.meter.held();
    for port in 0..100 {
        attack.from.set_port(10_000 + port);
        for _ in 0..20 {
            let packet = attack.peer.seal(&Packet::new(
                EncryptionLevel::ZeroRtt,
                &stream(0, &[1; 1_000]),
            ));
            attack.deliver(&packet);
        }
        let stats = attack.victim.stats();
        // Ten of each client.
        assert_eq!(stats.zero_rtt_kept - kept, 10);
        kept = stats.zero_rtt_kept;
    }
    assert_eq!(attack.victim.accepted, 1);
    assert!(attack.victim.answers.is_empty());
    // 64 datagrams, and the list of them.
    let grown = attack.victim.meter.peak() - held;
    assert!(grown <= 112 << 10, "{grown}");
    // The client that came last has not lost its place.
    let initial = attack.peer.answers().remove(0);
    attack.deliver(&initial);
    let opened = Event::Stream(StreamEvent::Opened { dir: Dir::Uni });
    assert!(attack.victim.events.contains(&opened));
    drop(client);
}

#[test]
fn a_ticket_works_once() {
    let (mut attack, _) = returning_client(TransportConfig::default());
    let initial = attack.peer.answers().remove(0);
    let early = attack
        .peer
        .seal(&Packet::new(EncryptionLevel::ZeroRtt, &stream(0, b"once")));
    let outcomes = [EarlyDataOutcome::Accepted, EarlyDataOutcome::Rejected];
    for (port, outcome) in (20_000..).zip(outcomes) {
        attack.from.set_port(port);
        for datagram in [&initial, &early] {
            attack.deliver(datagram);
        }
        assert_eq!(attack.early_outcome(), Some(outcome));
    }
    let opened = Event::Stream(StreamEvent::Opened { dir: Dir::Uni });
    assert!(!attack.victim.events.contains(&opened));
}

/// A client that has met a server, and meets it again with other parameters.
pub(crate) fn meet_again(forgetful: bool, parameters: impl FnOnce(&mut Persona)) -> Attack {
    let store = Arc::new(MemorySessionStore::new(1));
    let setup = |persona| Setup {
        persona,
        sessions: Some(Arc::clone(&store)),
        ..Setup::default()
    };
    let mut lone = client_victim(setup(Persona::default()));
    let server = NullServer::new(["test"]).with_ticket(true);
    let crypto: Arc<dyn ServerCrypto> =
        Arc::new(server.with_early_data(true).forgetting_limits(forgetful));
    lone.crypto = Arc::clone(&crypto);
    let mut first = lone.meet_server();
    first.establish();
    first.converse();
    let mut persona = Persona::default();
    parameters(&mut persona);
    let mut again = client_victim(setup(persona));
    assert!(again.victim.connection().may_send_early_data());
    again.crypto = crypto;
    again.meet_server()
}

#[test]
fn clients_detect_servers_that_accept_early_data_with_lower_limits() {
    let lower = |persona: &mut Persona| persona.parameters.initial_max_streams_uni -= 1;
    let mut attack = meet_again(true, |_| {});
    attack.establish();
    assert_eq!(attack.early_outcome(), Some(EarlyDataOutcome::Accepted));

    let mut attack = meet_again(true, lower);
    attack.converse();
    let reasons = attack.victim.reasons();
    assert!(
        matches!(reasons[..], [ConnectionError::Transport(error)]
            if error.code == ErrorCode::PROTOCOL_VIOLATION),
        "{reasons:?}"
    );

    // A server that rejects them may lower any limit.
    let mut attack = meet_again(false, lower);
    attack.establish();
    assert_eq!(attack.early_outcome(), Some(EarlyDataOutcome::Rejected));
}

#[test]
fn a_server_must_not_send_early_data() {
    let store = Arc::new(MemorySessionStore::new(1));
    let lone = client_victim(Setup {
        sessions: Some(store),
        ..Setup::default()
    });
    let mut attack = lone.meet_server();
    attack.establish();
    let before = attack.victim.connection().stats().packets_dropped;
    attack.send_packet(&Packet {
        zero_rtt: true,
        ..Packet::new(EncryptionLevel::OneRtt, &encode(&[Frame::Ping]))
    });
    let after = attack.victim.connection().stats().packets_dropped;
    assert!(after > before);
    let none: Vec<&ConnectionError> = Vec::new();
    assert_eq!(attack.victim.reasons(), none);
    assert_eq!(attack.from, home());
}
