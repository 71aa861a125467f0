//! Peers that abuse migration: floods of probes, moves that never end, addresses of others (RFC 9000,
//! sections 9.3 and 21.5).

use std::net::SocketAddr;
use std::time::Duration;

use swiftwater_quic::wire::Frame;
use swiftwater_quic::wire::frame::ConnectionClose;
use swiftwater_quic::{Event, TransportConfig};
use swiftwater_units::Side;

use crate::attack::{Attack, Setup, home, on, on_client};
use crate::cids::issue;
use crate::coding::encode;
use crate::peer::Opened;
use crate::persona::Persona;

fn place(n: u64) -> SocketAddr {
    let [.., a, b] = n.to_be_bytes();
    SocketAddr::from(([198, 51, a, b], 7_777))
}

/// Sends a datagram of 1200 bytes with this frame.
fn send_full(attack: &mut Attack, frame: &Frame<'_>) {
    let mut payload = encode(std::slice::from_ref(frame));
    payload.resize(1_150, 0);
    let datagram = attack.peer.seal_payload(&payload);
    attack.deliver(&datagram);
}

fn retirements(attack: &Attack) -> usize {
    attack
        .peer
        .count(|frame| matches!(frame, Frame::RetireConnectionId { .. }))
}

/// A victim that has this many connection IDs of the peer's, the one in use included.
fn with_ids(ids: u64) -> Attack {
    let mut attack = on(Side::Server);
    for n in 1..ids {
        attack.send_frames(&[issue(n, 0, &n.to_be_bytes())]);
    }
    attack
}

#[test]
fn probes_from_a_thousand_places_cost_few_answers_and_few_connection_ids() {
    for ids in [1, 2, 4] {
        let mut attack = with_ids(ids);
        for n in 0..1_000 {
            attack.from = place(n);
            send_full(&mut attack, &Frame::PathChallenge { data: [1; 8] });
        }
        // At most four places are known at a time, and none proves itself within three probe
        // timeouts.
        let elsewhere = attack.sent.iter().filter(|(to, _)| *to != home()).count();
        assert!(elsewhere <= 4, "{ids}: {elsewhere}");
        attack.from = home();
        attack.pass(Duration::from_secs(10));
        let retired = retirements(&attack);
        assert!(retired < 4, "{ids}: {retired}");
        attack.assert_open();
        // Afterwards there is room for well-behaved ones.
        for n in 10..13 {
            attack.send_frames(&[issue(n, 0, &[n as u8; 8])]);
        }
        attack.from = place(5_000);
        send_full(&mut attack, &Frame::PathChallenge { data: [9; 8] });
        let echo = Frame::PathResponse { data: [9; 8] };
        assert_eq!(attack.peer.count(|frame| *frame == echo), 1, "{ids}");
    }
}

#[test]
fn one_place_that_probes_without_end_is_answered_in_measure() {
    let mut attack = with_ids(4);
    attack.from = place(1);
    let mut received = 0;
    for n in 0..2_000_u64 {
        let mut payload = encode(&[Frame::PathChallenge {
            data: n.to_be_bytes(),
        }]);
        payload.resize(40, 0);
        let datagram = attack.peer.seal_payload(&payload);
        received += datagram.len();
        attack.deliver(&datagram);
        assert!(attack.bytes_to(place(1)) <= 3 * received);
    }
    attack.from = home();
    attack.assert_open();
}

#[test]
fn a_peer_that_moves_with_every_packet_is_bounded() {
    for ids in [1, 4] {
        let mut attack = with_ids(ids);
        let mut received = std::collections::BTreeMap::<SocketAddr, usize>::new();
        for n in 0..1_000 {
            // Another address each time, and back to some of them.
            attack.from = place(n % 300);
            let datagram = attack.peer.seal_payload(&encode(&[Frame::Ping]));
            *received.entry(attack.from).or_default() += datagram.len();
            attack.deliver(&datagram);
        }
        for (&to, &bytes) in &received {
            let sent = attack.bytes_to(to);
            assert!(sent <= 3 * bytes, "{sent} to {to} for {bytes}");
        }
        // No more IDs are retired than were given; what changes hands is nothing but addresses.
        assert!(retirements(&attack) <= 4, "{ids}");
        attack.from = home();
        attack.send_frames(&[Frame::Ping]);
        attack.pass(Duration::from_secs(30));
        attack.assert_open();
        assert_eq!(attack.victim.connection().remote(), home());
        assert!(
            !attack
                .victim
                .events
                .iter()
                .any(|event| matches!(event, Event::PeerMoved { .. }))
        );
    }
}

#[test]
fn connection_ids_may_be_withdrawn_while_paths_are_probed() {
    let mut attack = with_ids(4);
    for n in 0..4 {
        attack.from = place(n);
        send_full(&mut attack, &Frame::PathChallenge { data: [2; 8] });
    }
    attack.from = place(9);
    attack.send_frames(&[Frame::Ping]);
    attack.from = home();
    // All IDs so far are withdrawn, those of the probed paths and of the one left among them.
    attack.send_frames(&[issue(7, 7, b"the last")]);
    attack.pass(Duration::from_secs(1));
    attack.send_frames(&[Frame::Ping]);
    attack.assert_open();
    let sequences: Vec<u64> = (0..4).collect();
    for sequence in sequences {
        let wanted = Frame::RetireConnectionId {
            path: None,
            sequence,
        };
        assert!(
            attack.peer.count(|frame| *frame == wanted) > 0,
            "{sequence}"
        );
    }
}

#[test]
fn guessed_responses_validate_nothing() {
    let mut attack = with_ids(4);
    attack.from = place(1);
    attack.send_frames(&[Frame::Ping]);
    for n in 0..1_000_u64 {
        attack.send_frames(&[Frame::PathResponse {
            data: n.to_be_bytes(),
        }]);
    }
    let paths = attack.victim.connection().stats().paths;
    assert!(!paths[0].validated, "{paths:?}");
}

/// A client whose server prefers the address 192.0.2.1:4433, or whatever `edit` makes of it.
fn lured(edit: impl FnOnce(&mut Vec<u8>), config: TransportConfig) -> Attack {
    let mut value = vec![192, 0, 2, 1, 0x11, 0x51];
    value.extend([0; 18]);
    value.push(8);
    value.extend(b"lured on");
    value.extend([7; 16]);
    edit(&mut value);
    on_client(Setup {
        transport: config,
        persona: Persona::default().edit(0x0d, Some(&value)),
        ..Setup::default()
    })
}

#[test]
fn a_server_that_prefers_the_address_of_another_makes_clients_send_little_there() {
    let mut attack = lured(|_| (), TransportConfig::default());
    let id = attack
        .victim
        .connection()
        .open(swiftwater_units::Dir::Uni)
        .unwrap();
    let written = attack
        .victim
        .connection()
        .send_stream(id)
        .write(&vec![3; 100_000]);
    assert!(written.is_ok());
    attack.pass(Duration::from_secs(20));
    let sent: Vec<_> = attack.sent.iter().filter(|(to, _)| *to != home()).collect();
    // Challenges alone, not more often than Initial packets would be repeated: two in each of three probe
    // timeouts.
    assert!((1..=6).contains(&sent.len()), "{sent:?}");
    attack.assert_open();
    assert_eq!(attack.victim.connection().remote(), home());
}

#[test]
fn addresses_that_no_server_can_have_are_not_tried() {
    for ip in [[0, 0, 0, 0], [224, 0, 0, 1], [127, 0, 0, 1], [255; 4]] {
        let mut attack = lured(
            |value| value[..4].copy_from_slice(&ip),
            TransportConfig::default(),
        );
        attack.pass(Duration::from_secs(5));
        assert!(attack.sent.iter().all(|(to, _)| *to == home()), "{ip:?}");
        attack.assert_open();
    }
}

#[test]
fn a_server_cannot_move_by_probing_from_elsewhere() {
    let mut attack = on_client(Setup::default());
    attack.from = place(3);
    send_full(&mut attack, &Frame::PathChallenge { data: [4; 8] });
    attack.pass(Duration::from_secs(1));
    assert_eq!(attack.bytes_to(place(3)), 0);
    attack.from = home();
    attack.assert_open();
}

/// The migration was reported after the close, after which nothing may be sent.
#[test]
fn a_close_from_a_validated_address_is_not_followed() {
    let mut attack = with_ids(4);
    attack.from = place(1);
    send_full(&mut attack, &Frame::PathChallenge { data: [1; 8] });
    let challenges: Vec<[u8; 8]> = attack
        .peer
        .packets
        .iter()
        .flat_map(Opened::frames)
        .filter_map(|(_, frame)| match frame {
            Frame::PathChallenge { data } => Some(data),
            _ => None,
        })
        .collect();
    assert!(!challenges.is_empty());
    for data in challenges {
        send_full(&mut attack, &Frame::PathResponse { data });
    }
    let goodbye = ConnectionClose::Application {
        error: 0,
        reason: b"",
    };
    attack.send_frames(&[Frame::ConnectionClose(goodbye)]);
    let events = &attack.victim.events;
    let is_end = |event: &Event| matches!(event, Event::Closed { .. });
    let end = events.iter().position(is_end).expect("it is closed");
    assert_eq!(events[end + 1..], [], "{events:?}");
}
