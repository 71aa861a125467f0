//! Packets: headers, numbers, acknowledgements, handshake bytes (RFC 9000, sections 12 to 14 and
//! 17; RFC 9001, section 4).

use std::time::Duration;

use swiftwater_quic::crypto::EncryptionLevel;
use swiftwater_quic::wire::frame::{self, types};
use swiftwater_quic::wire::{ErrorCode, Frame};
use swiftwater_units::{Dir, Side};

use crate::attack::{Attack, Setup, client_victim, home, on, on_client, on_server, server_victim};
use crate::coding::{ack, cid, encode, ranges};
use crate::peer::Packet;
use crate::persona::Persona;

const SIDES: [Side; 2] = [Side::Client, Side::Server];

fn ping() -> Vec<u8> {
    encode(&[Frame::Ping])
}

fn crypto(offset: u64, data: &[u8]) -> Vec<u8> {
    encode(&[Frame::Crypto(frame::Crypto { offset, data })])
}

/// A server that has answered the client's first flight.
fn answered_server() -> Attack {
    let mut attack = server_victim(Setup::default());
    for datagram in attack.peer.answers() {
        attack.deliver(&datagram);
    }
    assert!(attack.peer.has_keys(EncryptionLevel::Handshake));
    attack
}

#[test]
fn reserved_bits_are_violations() {
    for bits in [0x08, 0x10, 0x18] {
        for side in SIDES {
            let mut attack = on(side);
            attack.send_packet(&Packet {
                bits,
                ..Packet::new(EncryptionLevel::OneRtt, &ping())
            });
            attack.assert_closed(ErrorCode::PROTOCOL_VIOLATION, 0);
        }
    }
    for bits in [0x04, 0x08, 0x0c] {
        let mut attack = answered_server();
        attack.send_packet(&Packet {
            bits,
            ..Packet::new(EncryptionLevel::Handshake, &ping())
        });
        attack.assert_closed(ErrorCode::PROTOCOL_VIOLATION, 0);
        let mut attack = answered_server();
        let mut payload = ping();
        payload.resize(1200, 0);
        attack.send_packet(&Packet {
            bits,
            ..Packet::new(EncryptionLevel::Initial, &payload)
        });
        attack.assert_closed(ErrorCode::PROTOCOL_VIOLATION, 0);
    }
}

#[test]
fn reserved_bits_of_forged_packets_mean_nothing() {
    let mut attack = on(Side::Server);
    let mut datagram = attack.peer.seal_payload(&ping());
    datagram[0] |= 0x18;
    attack.deliver(&datagram);
    attack.assert_open();
}

#[test]
fn packets_without_the_fixed_bit_are_dropped() {
    for grease in [false, true] {
        let mut attack = on_server(Setup {
            grease,
            ..Setup::default()
        });
        assert_eq!(attack.peer.victims_parameters().grease_quic_bit, grease);
        let number = attack.peer.next_number(EncryptionLevel::OneRtt);
        let payload = ping();
        attack.send_packet(&Packet {
            quic_bit: false,
            ..Packet::new(EncryptionLevel::OneRtt, &payload)
        });
        attack.assert_open();
        // RFC 9287, section 3: those who say so accept them.
        assert_eq!(
            attack.peer.is_acked(EncryptionLevel::OneRtt, number),
            grease
        );
    }
}

#[test]
fn the_fixed_bit_is_cleared_only_for_peers_with_the_parameter() {
    for side in [Side::Client, Side::Server] {
        for (ours, peers) in [(false, true), (true, false), (true, true)] {
            let mut persona = Persona::default();
            persona.parameters.grease_quic_bit = peers;
            let setup = Setup {
                persona,
                grease: ours,
                ..Setup::default()
            };
            let mut attack = match side {
                Side::Server => on_server(setup),
                Side::Client => on_client(setup),
            };
            for _ in 0..40 {
                attack.send_frames(&[Frame::Ping]);
                attack.pass(Duration::from_millis(30));
            }
            let packets = &attack.peer.packets;
            let cleared = packets.iter().filter(|packet| !packet.quic_bit).count();
            if ours && peers {
                assert!(
                    (10..30).contains(&cleared),
                    "{cleared} of {}",
                    packets.len()
                );
                // A client has no parameters of the server in its first packet.
                assert!(side.is_server() || packets[0].quic_bit);
            } else {
                assert_eq!(cleared, 0, "{side:?}");
            }
        }
    }
}

#[test]
fn repeated_packets_are_processed_once() {
    let mut attack = on(Side::Server);
    let datagram = attack
        .peer
        .seal_payload(&encode(&[Frame::PathChallenge { data: *b"echo me!" }]));
    for _ in 0..5 {
        attack.deliver(&datagram);
    }
    let echoes = |frame: &Frame<'_>| matches!(frame, Frame::PathResponse { .. });
    assert_eq!(attack.peer.count(echoes), 1);
    attack.assert_open();
}

#[test]
fn packet_numbers_may_jump() {
    let mut attack = on(Side::Server);
    for shift in [10, 20, 30] {
        attack
            .peer
            .set_next_number(EncryptionLevel::OneRtt, 1 << shift);
        attack.assert_open();
    }
}

#[test]
fn acknowledging_what_was_never_sent_is_a_violation() {
    for side in SIDES {
        let mut attack = on(side);
        let next = attack
            .peer
            .numbers(EncryptionLevel::OneRtt)
            .iter()
            .max()
            .unwrap()
            + 1;
        for number in [next + 1, next + 1000, (1 << 62) - 1] {
            let mut attack = on(side);
            attack.send(&ack(&[number..=number], None));
            attack.assert_closed(ErrorCode::PROTOCOL_VIOLATION, types::ACK);
        }
        attack.assert_open();
    }
    let mut attack = answered_server();
    attack.send_packet(&Packet::new(
        EncryptionLevel::Handshake,
        &ack(&[9..=9], None),
    ));
    attack.assert_closed(ErrorCode::PROTOCOL_VIOLATION, types::ACK);
    let mut attack = answered_server();
    let datagram = attack
        .peer
        .seal_initial(&ack(&[9..=9], Some([1, 0, 0])), 1200);
    attack.deliver(&datagram);
    attack.assert_closed(ErrorCode::PROTOCOL_VIOLATION, types::ACK_ECN);
}

#[test]
fn acknowledging_a_number_that_was_left_out_is_a_violation() {
    for side in SIDES {
        let mut attack = match side {
            Side::Server => server_victim(Setup::default()),
            Side::Client => client_victim(Setup::default()).meet_server(),
        };
        attack.establish();
        attack.peer.acknowledges = false;
        let id = attack.victim.connection().open(Dir::Uni).unwrap();
        let mut written = 0;
        let mut honest = 0;
        loop {
            let data = [1; 4000];
            written += attack
                .victim
                .connection()
                .send_stream(id)
                .write(&data)
                .unwrap();
            assert!(
                written < 1 << 20,
                "no number was left out, or it wasn't noticed"
            );
            attack.wait(Duration::from_millis(5));
            // Claims to have everything, lost or not.
            let largest = *attack
                .peer
                .numbers(EncryptionLevel::OneRtt)
                .iter()
                .max()
                .unwrap();
            let numbers = attack.peer.numbers(EncryptionLevel::OneRtt);
            let gap = (honest..largest).find(|number| !numbers.contains(number));
            attack.send(&ack(&[honest.min(largest)..=largest], None));
            if let Some(gap) = gap {
                assert!(gap > 0);
                break;
            }
            assert!(
                attack.victim.reasons().is_empty(),
                "{:?}",
                attack.victim.reasons()
            );
            honest = largest;
            attack.send_frames(&[
                Frame::MaxData { limit: 1 << 30 },
                Frame::MaxStreamData { id, limit: 1 << 30 },
            ]);
        }
        attack.assert_closed(ErrorCode::PROTOCOL_VIOLATION, types::ACK);
    }
}

#[test]
fn acknowledging_nothing_new_is_harmless() {
    let mut attack = on(Side::Server);
    let numbers = attack.peer.numbers(EncryptionLevel::OneRtt);
    let largest = *numbers.iter().max().unwrap();
    for _ in 0..100 {
        attack.send(&ack(&[largest..=largest], None));
    }
    // An ACK delay without measure.
    let mut delayed = crate::coding::varints(&[types::ACK, largest, (1 << 62) - 1, 0, 0]);
    delayed.extend(ping());
    attack.send(&delayed);
    attack.assert_open();
}

#[test]
fn ecn_counts_are_kept_for_each_packet_number_space() {
    let mut attack = client_victim(Setup::default()).meet_server();
    attack.peer.acknowledges = false;
    attack.converse();
    assert!(attack.peer.is_complete());
    // All of the client's packets were marked; each space reports its own.
    for level in [EncryptionLevel::Handshake, EncryptionLevel::OneRtt] {
        attack.send_frames(&[Frame::Ping]);
        attack.wait(Duration::from_millis(50));
        let numbers = attack.peer.numbers(level);
        let counts = [numbers.len() as u64, 0, 0];
        let payload = ack(&ranges(numbers), Some(counts));
        attack.send_packet(&Packet::new(level, &payload));
        if level == EncryptionLevel::Handshake {
            attack.send_frames(&[Frame::HandshakeDone]);
        }
    }
    attack.assert_open();
    assert!(attack.victim.connection().stats().paths[0].ecn);
}

#[test]
fn ecn_counts_that_cannot_be_true_switch_ecn_off() {
    for counts in [
        [0, 0, 0],
        [0, 100, 0],
        [(1 << 62) - 1, (1 << 62) - 1, (1 << 62) - 1],
    ] {
        let mut attack = on(Side::Server);
        attack.peer.acknowledges = false;
        attack.send_frames(&[Frame::Ping]);
        attack.wait(Duration::from_millis(50));
        attack.victim.connection().ping();
        attack.collect();
        let largest = *attack
            .peer
            .numbers(EncryptionLevel::OneRtt)
            .iter()
            .max()
            .unwrap();
        attack.send(&ack(&[largest..=largest], Some(counts)));
        attack.peer.acknowledges = true;
        attack.assert_open();
        assert!(!attack.victim.connection().stats().paths[0].ecn);
    }
}

#[test]
fn handshake_bytes_beyond_the_buffer_are_refused() {
    for side in SIDES {
        let mut attack = on(side);
        attack.send(&crypto(65_536, b"x"));
        attack.assert_closed(ErrorCode::CRYPTO_BUFFER_EXCEEDED, types::CRYPTO);
        // At least 4096 bytes must find room (section 7.5).
        let mut attack = on(side);
        attack.send(&crypto(4095, b"x"));
        attack.assert_open();
    }
    let mut attack = answered_server();
    attack.send_packet(&Packet::new(
        EncryptionLevel::Handshake,
        &crypto(1 << 40, b"x"),
    ));
    attack.assert_closed(ErrorCode::CRYPTO_BUFFER_EXCEEDED, types::CRYPTO);
}

#[test]
fn handshake_bytes_in_too_many_pieces_are_refused() {
    let mut attack = on(Side::Server);
    for n in 0..1000 {
        attack.send(&crypto(1 + 2 * n, b"x"));
        if !attack.victim.reasons().is_empty() {
            break;
        }
    }
    attack.assert_closed(ErrorCode::CRYPTO_BUFFER_EXCEEDED, types::CRYPTO);
}

#[test]
fn handshake_bytes_under_the_wrong_keys_are_refused() {
    // New bytes in Initial packets after TLS went on to Handshake.
    let mut attack = answered_server();
    let offset = attack.peer.crypto_offset(EncryptionLevel::Initial);
    let datagram = attack.peer.seal_initial(&crypto(offset, b"more"), 1200);
    attack.deliver(&datagram);
    attack.assert_closed(ErrorCode::PROTOCOL_VIOLATION, types::CRYPTO);
    // Bytes that were sent before are no new ones.
    let mut attack = answered_server();
    let datagram = attack.peer.seal_initial(&crypto(0, b"anything"), 1200);
    attack.deliver(&datagram);
    attack.establish();
}

#[test]
fn tls_messages_that_are_out_of_place_are_refused() {
    for real_tls in [false, true] {
        for side in SIDES {
            let setup = Setup {
                real_tls,
                ..Setup::default()
            };
            let mut attack = match side {
                Side::Server => on_server(setup),
                Side::Client => on_client(setup),
            };
            // TLS's KeyUpdate, which QUIC replaces (RFC 9001, section 6): unexpected_message.
            let offset = match side {
                Side::Server => 0,
                Side::Client => attack.peer.crypto_offset(EncryptionLevel::OneRtt),
            };
            attack.send(&crypto(offset, &[24, 0, 0, 1, 0]));
            attack.assert_closed(ErrorCode::crypto(10), types::CRYPTO);
        }
    }
}

#[test]
fn a_handshake_that_is_no_tls_is_refused() {
    for real_tls in [false, true] {
        let setup = Setup {
            real_tls,
            ..Setup::default()
        };
        let mut attack = server_victim(setup);
        let datagram = attack
            .peer
            .seal_initial(&crypto(0, &[0xff, 0, 0, 2, 9, 9]), 1200);
        attack.deliver(&datagram);
        let closes = attack.closes();
        assert!(!closes.is_empty());
        assert!(
            closes
                .iter()
                .all(|close| (0x100..0x200).contains(&close.code)),
            "{closes:?}"
        );
    }
}

#[test]
fn early_data_is_dropped() {
    let mut attack = answered_server();
    let stream = Frame::Stream(frame::Stream {
        id: swiftwater_units::StreamId::new(Side::Client, Dir::Bi, 0),
        offset: 0,
        fin: true,
        data: b"early",
    });
    attack.send_packet(&Packet {
        zero_rtt: true,
        ..Packet::new(EncryptionLevel::Handshake, &encode(&[stream]))
    });
    attack.establish();
    assert_eq!(attack.victim.connection().accept(Dir::Bi), None);
}

#[test]
fn handshake_packets_from_another_source_are_dropped() {
    let offence = encode(&[Frame::HandshakeDone]);
    // By a client: once it has a valid Initial, whatever long header (section 7.2).
    for level in [EncryptionLevel::Initial, EncryptionLevel::Handshake] {
        let mut attack = client_victim(Setup::default()).meet_server();
        let hello = attack.peer.take_crypto(EncryptionLevel::Initial);
        let datagram = attack.peer.seal_initial(&crypto(0, &hello), 1200);
        attack.deliver(&datagram);
        let mut payload = offence.clone();
        payload.resize(1200, 0);
        attack.send_packet(&Packet {
            src: Some(cid(b"foreigner")),
            ..Packet::new(level, &payload)
        });
        assert!(attack.victim.reasons().is_empty(), "{level:?}");
        attack.establish();
    }
    // By a server.
    let mut attack = answered_server();
    let mut payload = offence.clone();
    payload.resize(1200, 0);
    attack.send_packet(&Packet {
        src: Some(cid(b"foreigner")),
        ..Packet::new(EncryptionLevel::Initial, &payload)
    });
    attack.establish();
}

#[test]
fn initial_packets_of_a_server_carry_no_token() {
    let mut attack = client_victim(Setup::default()).meet_server();
    let hello = attack.peer.take_crypto(EncryptionLevel::Initial);
    let payload = crypto(0, &hello);
    let with_token = attack.peer.seal(&Packet {
        token: b"token",
        ..Packet::new(EncryptionLevel::Initial, &payload)
    });
    attack.deliver(&with_token);
    // Dropped: the client is where it was.
    assert!(!attack.peer.is_acked(EncryptionLevel::Initial, 0));
    assert!(attack.victim.reasons().is_empty());
    let datagram = attack.peer.seal_initial(&payload, 1200);
    attack.deliver(&datagram);
    assert!(attack.peer.is_acked(EncryptionLevel::Initial, 1));
    attack.establish();
}

#[test]
fn small_datagrams_start_no_connection() {
    for size in [1199, 1200] {
        let mut attack = server_victim(Setup::default());
        let hello = attack.peer.take_crypto(EncryptionLevel::Initial);
        let datagram = attack.peer.seal_initial(&crypto(0, &hello), size);
        assert_eq!(datagram.len(), size);
        attack.deliver(&datagram);
        assert_eq!(attack.victim.has_connection(), size == 1200);
        assert_eq!(attack.bytes_to(home()) > 0, size == 1200);
        assert!(attack.victim.answers.is_empty());
    }
}

#[test]
fn later_initial_packets_in_small_datagrams_are_dropped() {
    let mut attack = answered_server();
    let offence = encode(&[Frame::HandshakeDone]);
    let datagram = attack.peer.seal_initial(&offence, 1199);
    attack.deliver(&datagram);
    attack.establish();
}

#[test]
fn coalesced_packets_to_different_ids_are_not_mixed() {
    let mut attack = on(Side::Server);
    let other = attack.peer.issued()[0].1;
    let number = attack.peer.next_number(EncryptionLevel::OneRtt);
    // A Handshake packet (to be dropped: no keys) and behind it a 1-RTT packet to another ID.
    let handshake = attack
        .peer
        .seal(&Packet::new(EncryptionLevel::Handshake, &ping()));
    let short = attack.peer.seal(&Packet {
        dst: Some(other),
        ..Packet::new(EncryptionLevel::OneRtt, &ping())
    });
    attack.deliver(&[handshake.clone(), short].concat());
    attack.assert_open();
    assert!(!attack.peer.is_acked(EncryptionLevel::OneRtt, number));
    // To the same ID it counts.
    let number = attack.peer.next_number(EncryptionLevel::OneRtt);
    let short = attack.peer.seal_payload(&ping());
    attack.deliver(&[handshake, short].concat());
    attack.assert_open();
    assert!(attack.peer.is_acked(EncryptionLevel::OneRtt, number));
}

#[test]
fn damaged_packets_in_a_datagram_do_not_hide_the_others() {
    let mut attack = on(Side::Server);
    let mut handshake = attack
        .peer
        .seal(&Packet::new(EncryptionLevel::Handshake, &ping()));
    *handshake.last_mut().unwrap() ^= 1;
    let number = attack.peer.next_number(EncryptionLevel::OneRtt);
    let short = attack.peer.seal_payload(&ping());
    attack.deliver(&[handshake, short].concat());
    attack.assert_open();
    assert!(attack.peer.is_acked(EncryptionLevel::OneRtt, number));
}
