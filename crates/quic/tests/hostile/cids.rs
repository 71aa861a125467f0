//! NEW_CONNECTION_ID and RETIRE_CONNECTION_ID (RFC 9000, sections 5.1, 19.15 and 19.16).

use std::collections::BTreeSet;
use std::time::Duration;

use swiftwater_quic::crypto::EncryptionLevel;
use swiftwater_quic::wire::frame::{self, types};
use swiftwater_quic::wire::{ErrorCode, Frame, ResetToken};
use swiftwater_units::Side;

use crate::attack::{Setup, on, on_client, on_server};
use crate::coding::{cid, encode, varints};
use crate::peer::Packet;
use crate::persona::Persona;

/// A NEW_CONNECTION_ID frame.
pub(crate) fn issue(sequence: u64, retire_prior_to: u64, bytes: &[u8]) -> Frame<'static> {
    let mut token = [0; 16];
    token[..bytes.len().min(16)].copy_from_slice(&bytes[..bytes.len().min(16)]);
    Frame::NewConnectionId(frame::NewConnectionId {
        path: None,
        sequence,
        retire_prior_to,
        cid: cid(bytes),
        reset_token: ResetToken(token),
    })
}

fn numbered(n: u64) -> [u8; 8] {
    n.to_be_bytes()
}

fn retire(sequence: u64) -> Frame<'static> {
    Frame::RetireConnectionId {
        path: None,
        sequence,
    }
}

const NEW: u64 = types::NEW_CONNECTION_ID;
const RETIRE: u64 = types::RETIRE_CONNECTION_ID;

#[test]
fn as_many_connection_ids_as_declared_and_not_one_more() {
    for side in [Side::Client, Side::Server] {
        let mut attack = on(side);
        // Four: the handshake's and three more.
        for n in 1..=3 {
            attack.send_frames(&[issue(n, 0, &numbered(n))]);
        }
        attack.assert_open();
        attack.send_frames(&[issue(4, 0, &numbered(4))]);
        attack.assert_closed(ErrorCode::CONNECTION_ID_LIMIT_ERROR, NEW);
    }
}

#[test]
fn ids_that_retire_others_do_not_count_together_with_them() {
    let mut attack = on(Side::Server);
    for n in 1..=3 {
        attack.send_frames(&[issue(n, 0, &numbered(n))]);
    }
    for n in 4..40 {
        attack.send_frames(&[issue(n, n - 3, &numbered(n))]);
        attack.converse();
    }
    attack.assert_open();
    // The victim moved on and said so.
    let last = attack.peer.packets.last().unwrap();
    assert!(last.dst.as_bytes()[7] >= 36, "{:?}", last.dst);
    let retired: BTreeSet<u64> = attack
        .peer
        .packets
        .iter()
        .flat_map(|packet| {
            packet.frames().filter_map(|(_, frame)| match frame {
                Frame::RetireConnectionId { sequence, .. } => Some(sequence),
                _ => None,
            })
        })
        .collect();
    assert_eq!(retired, (0..36).collect());
}

#[test]
fn one_sequence_number_has_one_connection_id() {
    let mut attack = on(Side::Server);
    attack.send_frames(&[issue(1, 0, b"12345678")]);
    attack.send_frames(&[issue(1, 0, b"12345678")]);
    attack.assert_open();
    attack.send_frames(&[issue(1, 0, b"87654321")]);
    attack.assert_closed(ErrorCode::PROTOCOL_VIOLATION, NEW);
    // The handshake's ID has number 0.
    let mut attack = on(Side::Server);
    attack.send_frames(&[issue(0, 0, b"12345678")]);
    attack.assert_closed(ErrorCode::PROTOCOL_VIOLATION, NEW);
}

#[test]
fn one_connection_id_has_one_sequence_number() {
    let mut attack = on(Side::Server);
    attack.send_frames(&[issue(1, 0, b"12345678")]);
    attack.send_frames(&[issue(2, 0, b"12345678")]);
    attack.assert_closed(ErrorCode::PROTOCOL_VIOLATION, NEW);
    let mut attack = on(Side::Server);
    attack.send_frames(&[issue(1, 0, b"raw peer")]);
    attack.assert_closed(ErrorCode::PROTOCOL_VIOLATION, NEW);
}

#[test]
fn malformed_new_connection_ids_are_encoding_errors() {
    let token = [0; 16];
    // Retire Prior To beyond the sequence number.
    let payload = [varints(&[NEW, 1, 2, 8]), vec![1; 8], token.to_vec()].concat();
    let mut attack = on(Side::Client);
    attack.send(&payload);
    attack.assert_closed(ErrorCode::FRAME_ENCODING_ERROR, NEW);
    // Lengths 0 and 21.
    for len in [0, 21] {
        let payload = [
            varints(&[NEW, 1, 0]),
            vec![len],
            vec![1; usize::from(len)],
            token.to_vec(),
        ]
        .concat();
        let mut attack = on(Side::Client);
        attack.send(&payload);
        attack.assert_closed(ErrorCode::FRAME_ENCODING_ERROR, NEW);
    }
}

#[test]
fn a_peer_without_connection_ids_may_not_issue_any() {
    let persona = || Persona {
        cid: cid(b""),
        ..Persona::default()
    };
    for side in [Side::Client, Side::Server] {
        let setup = Setup {
            persona: persona(),
            ..Setup::default()
        };
        let mut attack = match side {
            Side::Client => on_client(setup),
            Side::Server => on_server(setup),
        };
        attack.send_frames(&[issue(1, 0, b"12345678")]);
        attack.assert_closed(ErrorCode::PROTOCOL_VIOLATION, NEW);
    }
}

#[test]
fn a_flood_of_retirements_is_stopped() {
    let mut attack = on(Side::Server);
    // Every frame makes the victim retire the one before; nothing is acknowledged.
    attack.peer.acknowledges = false;
    let mut n = 0;
    while attack.victim.reasons().is_empty() {
        n += 1;
        assert!(n < 100, "the victim keeps {n} retirements");
        attack.send_frames(&[issue(n, n, &numbered(n))]);
    }
    attack.assert_closed(ErrorCode::CONNECTION_ID_LIMIT_ERROR, NEW);
}

#[test]
fn a_flood_of_late_connection_ids_is_stopped() {
    let mut attack = on(Side::Server);
    attack.send_frames(&[issue(1000, 1000, &numbered(1000))]);
    attack.peer.acknowledges = false;
    for n in 1..1000 {
        attack.send_frames(&[issue(n, 0, &numbered(n))]);
        if !attack.victim.reasons().is_empty() {
            break;
        }
        assert!(n < 100, "the victim keeps {n} retirements");
    }
    attack.assert_closed(ErrorCode::CONNECTION_ID_LIMIT_ERROR, NEW);
}

#[test]
fn the_victim_keeps_to_the_peers_limit() {
    for limit in [2, 3, 100] {
        let mut persona = Persona::default();
        persona.parameters.active_connection_id_limit = limit;
        let attack = on_server(Setup {
            persona,
            ..Setup::default()
        });
        let issued: BTreeSet<u64> = attack.peer.issued().iter().map(|new| new.0).collect();
        assert_eq!(issued, (1..limit.min(8)).collect());
    }
}

#[test]
fn retired_connection_ids_are_replaced() {
    let mut attack = on(Side::Server);
    let before = attack.peer.issued();
    assert_eq!(before.len(), 3);
    attack.peer.dst = before[0].1;
    attack.send_frames(&[retire(0), retire(2)]);
    attack.converse();
    let after = attack.peer.issued();
    assert_eq!(
        after.iter().map(|new| new.0).collect::<Vec<_>>(),
        [1, 2, 3, 4, 5]
    );
    attack.assert_open();
    // Datagrams to a retired ID are no longer ours: they are answered with a reset.
    let old = before[1].1;
    let mut packet = Packet::new(EncryptionLevel::OneRtt, &[1; 50]);
    packet.dst = Some(old);
    let datagram = attack.peer.seal(&packet);
    attack.deliver(&datagram);
    assert_eq!(attack.victim.answers.len(), 1);
    assert!(attack.victim.answers[0].ends_with(&before[1].2.0));
    attack.assert_open();
}

#[test]
fn connection_ids_that_were_never_issued_cannot_be_retired() {
    for side in [Side::Client, Side::Server] {
        let mut attack = on(side);
        attack.send_frames(&[retire(4)]);
        attack.assert_closed(ErrorCode::PROTOCOL_VIOLATION, RETIRE);
    }
}

#[test]
fn connection_ids_that_were_not_sent_yet_cannot_be_retired() {
    // Retiring 1 makes the victim issue 4, which the peer can't know in the same packet.
    let mut attack = on(Side::Server);
    attack.send_frames(&[retire(1), retire(4)]);
    attack.assert_closed(ErrorCode::PROTOCOL_VIOLATION, RETIRE);
}

#[test]
fn the_connection_id_of_the_packet_itself_cannot_be_retired() {
    let mut attack = on(Side::Server);
    attack.send_frames(&[retire(0)]);
    attack.assert_closed(ErrorCode::PROTOCOL_VIOLATION, RETIRE);
    let mut attack = on(Side::Server);
    let (sequence, used, _) = attack.peer.issued()[1];
    let payload = encode(&[retire(sequence)]);
    let mut packet = Packet::new(EncryptionLevel::OneRtt, &payload);
    packet.dst = Some(used);
    attack.send_packet(&packet);
    attack.assert_closed(ErrorCode::PROTOCOL_VIOLATION, RETIRE);
}

#[test]
fn a_victim_without_connection_ids_has_none_to_retire() {
    for sequence in [0, 1] {
        let mut attack = on_client(Setup {
            cid_len: 0,
            ..Setup::default()
        });
        assert_eq!(attack.peer.issued().len(), 0);
        attack.send_frames(&[retire(sequence)]);
        attack.assert_closed(ErrorCode::PROTOCOL_VIOLATION, RETIRE);
    }
}

#[test]
fn repeated_retirement_is_harmless() {
    let mut attack = on(Side::Server);
    attack.send_frames(&[retire(1)]);
    attack.send_frames(&[retire(1)]);
    attack.pass(Duration::from_millis(100));
    attack.send_frames(&[retire(1)]);
    attack.assert_open();
}
