//! When keys of each kind count, and what the handshake's acknowledgements mean (RFC 9001, sections
//! 4.9 and 5.7; RFC 9002, section 5).

use std::time::Duration;

use swiftwater_quic::crypto::EncryptionLevel;
use swiftwater_quic::wire::Frame;
use swiftwater_quic::wire::frame;
use swiftwater_units::Side;

use crate::attack::{Attack, Setup, client_victim, on, server_victim};
use crate::coding::{ack, encode};
use crate::peer::Packet;

const SIDES: [Side; 2] = [Side::Client, Side::Server];

fn received(attack: &mut Attack) -> u64 {
    attack.victim.connection().stats().packets_received.get()
}

#[test]
fn early_keys_are_gone_once_the_handshake_is_confirmed() {
    for side in SIDES {
        let mut attack = on(side);
        let before = received(&mut attack);
        for level in [EncryptionLevel::Initial, EncryptionLevel::Handshake] {
            let number = attack.peer.next_number(level);
            let ping = encode(&[Frame::Ping]);
            let datagram = match level {
                EncryptionLevel::Initial => attack.peer.seal_initial(&ping, 1200),
                _ => attack.peer.seal(&Packet::new(level, &ping)),
            };
            attack.deliver(&datagram);
            attack.wait(Duration::from_millis(100));
            assert!(!attack.peer.is_acked(level, number), "{side:?} {level:?}");
        }
        assert_eq!(received(&mut attack), before, "{side:?}");
        attack.assert_open();
    }
}

#[test]
fn a_client_sends_no_initial_after_its_first_handshake_packet() {
    let mut attack = client_victim(Setup::default()).meet_server();
    // The server sends, and then receives nothing for a while: the client probes.
    attack.peer.acknowledges = false;
    for datagram in attack.peer.answers() {
        attack.deliver(&datagram);
    }
    attack.wait(Duration::from_secs(5));
    let levels: Vec<_> = attack
        .peer
        .packets
        .iter()
        .map(|packet| packet.level)
        .collect();
    let first = levels
        .iter()
        .position(|&level| level == EncryptionLevel::Handshake)
        .unwrap();
    assert!(levels.len() > first + 3, "no probes: {levels:?}");
    assert!(
        !levels[first..].contains(&EncryptionLevel::Initial),
        "{levels:?}"
    );
}

#[test]
fn a_server_sends_no_initial_after_a_clients_handshake_packet() {
    let mut attack = server_victim(Setup::default());
    attack.peer.acknowledges = false;
    let hello = attack.peer.answers();
    for datagram in &hello {
        attack.deliver(datagram);
    }
    // Something under Handshake keys, but not yet the end of the handshake.
    let before = attack.peer.packets.len();
    assert!(attack.peer.has_keys(EncryptionLevel::Handshake));
    attack.send_packet(&Packet::new(
        EncryptionLevel::Handshake,
        &encode(&[Frame::Ping]),
    ));
    attack.wait(Duration::from_secs(5));
    let levels: Vec<_> = attack.peer.packets[before..]
        .iter()
        .map(|packet| packet.level)
        .collect();
    assert!(levels.len() > 3, "no probes: {levels:?}");
    assert!(!levels.contains(&EncryptionLevel::Initial), "{levels:?}");
}

#[test]
fn a_server_reads_no_application_data_before_the_client_has_finished() {
    let mut attack = server_victim(Setup::default());
    for datagram in attack.peer.answers() {
        attack.deliver(&datagram);
    }
    let finished = attack.peer.take_crypto(EncryptionLevel::Handshake);
    assert!(!finished.is_empty() && attack.peer.has_keys(EncryptionLevel::OneRtt));
    let before = received(&mut attack);
    let number = attack.peer.next_number(EncryptionLevel::OneRtt);
    attack.send_frames(&[Frame::Ping]);
    attack.wait(Duration::from_millis(100));
    assert_eq!(received(&mut attack), before);
    assert!(!attack.peer.is_acked(EncryptionLevel::OneRtt, number));
    // It was kept, and counts once the handshake is complete.
    let crypto = Frame::Crypto(frame::Crypto {
        offset: 0,
        data: &finished,
    });
    attack.send_packet(&Packet::new(EncryptionLevel::Handshake, &encode(&[crypto])));
    attack.wait(Duration::from_millis(100));
    assert!(attack.peer.is_acked(EncryptionLevel::OneRtt, number));
}

#[test]
fn a_client_reads_no_application_data_before_the_server_has_finished() {
    let mut attack = client_victim(Setup::default()).meet_server();
    let early = attack.peer.take_crypto(EncryptionLevel::Initial);
    let rest = attack.peer.take_crypto(EncryptionLevel::Handshake);
    let send = |attack: &mut Attack, level, data: &[u8]| {
        let payload = encode(&[Frame::Crypto(frame::Crypto { offset: 0, data })]);
        let datagram = match level {
            EncryptionLevel::Initial => attack.peer.seal_initial(&payload, 1200),
            level => attack.peer.seal(&Packet::new(level, &payload)),
        };
        attack.deliver(&datagram);
    };
    send(&mut attack, EncryptionLevel::Initial, &early);
    let (before, number) = (
        received(&mut attack),
        attack.peer.next_number(EncryptionLevel::OneRtt),
    );
    attack.send_frames(&[Frame::Ping]);
    assert_eq!(received(&mut attack), before);
    send(&mut attack, EncryptionLevel::Handshake, &rest);
    attack.wait(Duration::from_millis(100));
    assert!(attack.peer.is_acked(EncryptionLevel::OneRtt, number));
}

/// The last 1-RTT packet of the victim.
fn newest(attack: &Attack) -> u64 {
    *attack
        .peer
        .numbers(EncryptionLevel::OneRtt)
        .iter()
        .max()
        .unwrap()
}

#[test]
fn an_ack_of_nothing_that_asked_for_it_is_no_rtt_sample() {
    let mut attack = on(Side::Server);
    // Two PINGs are answered with an acknowledgement and nothing else.
    attack.send_frames(&[Frame::Ping]);
    attack.send_frames(&[Frame::Ping]);
    let number = newest(&attack);
    let rtt = |attack: &mut Attack| {
        let path = attack.victim.connection().stats().paths[0].clone();
        (path.latest_rtt, path.smoothed_rtt, path.min_rtt)
    };
    let before = rtt(&mut attack);
    attack.wait(Duration::from_millis(700));
    attack.send(&ack(&[number..=number], None));
    assert_eq!(rtt(&mut attack), before);
    attack.assert_open();
}

#[test]
fn a_reported_delay_counts_up_to_max_ack_delay_only() {
    let mut attack = on(Side::Server);
    attack.victim.connection().ping();
    attack.peer.acknowledges = false;
    attack.collect();
    let number = newest(&attack);
    let before = attack.victim.connection().stats().paths[0].smoothed_rtt;
    // The probe timeout sends more meanwhile; they are not acknowledged.
    attack.now += Duration::from_millis(300);
    let claimed = Duration::from_millis(250).as_micros() as u64 >> 3;
    let frame = frame::types::ACK;
    let payload = crate::coding::varints(&[frame, number, claimed, 0, 0]);
    attack.send(&payload);
    let after = attack.victim.connection().stats().paths[0].smoothed_rtt;
    // The peer declared 25 ms, the default.
    let expected = (before * 7 + Duration::from_millis(300 - 25)) / 8;
    assert!(
        after.abs_diff(expected) < Duration::from_millis(1),
        "{before:?}, then {after:?} instead of {expected:?}"
    );
}
