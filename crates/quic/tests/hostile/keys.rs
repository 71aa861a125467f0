//! Key updates (RFC 9001, section 6).

use std::time::Duration;

use swiftwater_quic::crypto::EncryptionLevel;
use swiftwater_quic::wire::{ErrorCode, Frame};
use swiftwater_units::Side;

use crate::attack::on;
use crate::coding::encode;
use crate::peer::Packet;

const SIDES: [Side; 2] = [Side::Client, Side::Server];

fn ping() -> Vec<u8> {
    encode(&[Frame::Ping])
}

#[test]
fn peers_that_update_their_keys_are_followed() {
    for side in SIDES {
        let mut attack = on(side);
        for generation in 1..5 {
            attack.peer.update_keys();
            attack.assert_open();
            let last = attack.peer.packets.last().unwrap();
            assert_eq!(last.generation, generation);
            assert_eq!(
                attack.victim.connection().stats().key_updates,
                generation as u64
            );
        }
    }
}

#[test]
fn old_keys_after_new_ones_are_not_accepted() {
    let mut attack = on(Side::Server);
    attack.peer.update_keys();
    attack.assert_open();
    let number = attack.peer.next_number(EncryptionLevel::OneRtt);
    attack.send_packet(&Packet {
        generation: Some(0),
        ..Packet::new(EncryptionLevel::OneRtt, &ping())
    });
    attack.assert_open();
    assert!(!attack.peer.is_acked(EncryptionLevel::OneRtt, number));
}

#[test]
fn late_packets_of_the_previous_keys_are_accepted_for_a_while() {
    let mut attack = on(Side::Server);
    let late = attack.peer.next_number(EncryptionLevel::OneRtt);
    attack
        .peer
        .set_next_number(EncryptionLevel::OneRtt, late + 2);
    attack.peer.update_keys();
    attack.assert_open();
    let packet = |number| Packet {
        generation: Some(0),
        number: Some(number),
        ..Packet::new(EncryptionLevel::OneRtt, &[1])
    };
    attack.send_packet(&packet(late));
    attack.assert_open();
    assert!(attack.peer.is_acked(EncryptionLevel::OneRtt, late));
    attack.pass(Duration::from_secs(10));
    attack.send_packet(&packet(late + 1));
    attack.assert_open();
    assert!(!attack.peer.is_acked(EncryptionLevel::OneRtt, late + 1));
}

#[test]
fn newer_keys_on_an_older_number_are_an_error() {
    let mut attack = on(Side::Server);
    let older = attack.peer.next_number(EncryptionLevel::OneRtt);
    attack
        .peer
        .set_next_number(EncryptionLevel::OneRtt, older + 1);
    attack.peer.update_keys();
    attack.assert_open();
    attack.pass(Duration::from_secs(10));
    attack.send_packet(&Packet {
        generation: Some(2),
        number: Some(older),
        ..Packet::new(EncryptionLevel::OneRtt, &ping())
    });
    attack.assert_closed(ErrorCode::KEY_UPDATE_ERROR, 0);
}

#[test]
fn a_flipped_key_phase_alone_updates_nothing() {
    let mut attack = on(Side::Server);
    attack.send_packet(&Packet {
        bits: 0x04,
        ..Packet::new(EncryptionLevel::OneRtt, &ping())
    });
    attack.assert_open();
    assert_eq!(attack.victim.connection().stats().key_updates, 0);
}

#[test]
fn keys_are_not_updated_again_before_the_peer_followed() {
    let mut attack = on(Side::Server);
    for _ in 0..5 {
        attack.victim.connection().update_keys();
        attack.victim.connection().ping();
        // The peer acknowledges, but goes on with its old keys.
        attack.assert_open();
    }
    assert_eq!(attack.victim.connection().stats().key_updates, 1);
    attack.peer.update_keys();
    attack.assert_open();
    attack.pass(Duration::from_secs(10));
    attack.assert_open();
    assert_eq!(attack.victim.connection().stats().key_updates, 2);
}
