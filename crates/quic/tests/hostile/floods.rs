//! Floods of small things: what a peer can make the victim store or send is bounded.

use swiftwater_quic::ReadOutcome;
use swiftwater_quic::crypto::EncryptionLevel;
use swiftwater_quic::wire::frame::{self, types};
use swiftwater_quic::wire::{ErrorCode, Frame};
use swiftwater_units::{Dir, Side, StreamId};

use crate::attack::{Attack, Setup, on, server_victim};
use crate::coding::{encode, varints};
use crate::peer::Packet;

#[test]
fn challenges_in_numbers_are_answered_in_part() {
    let mut attack = on(Side::Server);
    // More than could be stored, all in one packet: a few echoes, no growth, no close.
    let frames: Vec<Frame<'_>> = (0..100)
        .map(|n| Frame::PathChallenge { data: [n; 8] })
        .collect();
    for _ in 0..20 {
        attack.send_frames(&frames);
    }
    let echoes = attack
        .peer
        .count(|frame| matches!(frame, Frame::PathResponse { .. }));
    assert!((1..=20 * 8).contains(&echoes), "{echoes}");
    attack.assert_open();
}

#[test]
fn stray_path_responses_are_ignored() {
    let mut attack = on(Side::Server);
    for n in 0..100 {
        attack.send_frames(&[Frame::PathResponse { data: [n; 8] }]);
    }
    attack.assert_open();
}

#[test]
fn floods_of_small_things_are_survived() {
    let mut attack = on(Side::Server);
    let id = |index| StreamId::new(Side::Client, Dir::Bi, index);
    for index in 0..100 {
        attack.send_frames(&[
            Frame::StopSending(frame::StopSending {
                id: id(index),
                error: 1,
            }),
            Frame::ResetStream(frame::ResetStream {
                id: id(index),
                error: 1,
                final_size: 0,
            }),
        ]);
    }
    for n in 0..2000_u64 {
        let index = n % 100;
        attack.send_frames(&[
            Frame::MaxData { limit: n },
            Frame::DataBlocked { limit: n },
            Frame::StreamsBlocked {
                dir: Dir::Uni,
                limit: n,
            },
            Frame::StopSending(frame::StopSending {
                id: id(index),
                error: n,
            }),
            Frame::MaxStreamData {
                id: id(index),
                limit: n,
            },
        ]);
    }
    attack.assert_open();
    // What the victim said is bounded by the streams, not by the frames.
    let resets = attack
        .peer
        .count(|frame| matches!(frame, Frame::ResetStream(_)));
    assert!(resets <= 300, "{resets}");
}

#[test]
fn holes_in_packet_numbers_make_no_endless_acknowledgements() {
    let mut attack = on(Side::Server);
    attack.peer.acknowledges = false;
    for n in 0..3000 {
        attack
            .peer
            .set_next_number(EncryptionLevel::OneRtt, 1000 + 2 * n);
        attack.send_frames(&[Frame::Ping]);
    }
    // A few dozen ranges at most are reported; ACKs stay small.
    let largest = attack.sent.iter().map(|(_, len)| *len).max().unwrap();
    assert!(largest <= 1200);
    let ranges = attack.peer.packets.iter().flat_map(|packet| {
        packet.frames().filter_map(|(_, frame)| match frame {
            Frame::Ack(ack) => Some(ack.ranges().count()),
            _ => None,
        })
    });
    assert!(ranges.max().unwrap() <= 64);
    // A number from long ago counts as a copy.
    let before = attack.peer.packets.len();
    attack.send_packet(&Packet {
        number: Some(1001),
        ..Packet::new(
            EncryptionLevel::OneRtt,
            &encode(&[Frame::PathChallenge { data: [1; 8] }]),
        )
    });
    assert_eq!(attack.peer.packets.len(), before);
    attack.assert_open();
}

#[test]
fn streams_in_single_bytes_are_put_together_or_refused() {
    // In falling order: every byte opens a gap until the last one.
    let id = StreamId::new(Side::Client, Dir::Bi, 0);
    let mut attack = on(Side::Server);
    for offset in (0..400_u64).rev() {
        attack.send_frames(&[Frame::Stream(frame::Stream {
            id,
            offset,
            fin: offset == 399,
            data: &[offset as u8],
        })]);
    }
    attack.assert_open();
    let mut buf = [0; 500];
    assert_eq!(attack.victim.connection().accept(Dir::Bi), Some(id));
    let read = attack.victim.connection().recv_stream(id).read(&mut buf);
    assert_eq!(read, Ok(ReadOutcome::Data(400)));
    assert!(
        buf[..400]
            .iter()
            .enumerate()
            .all(|(i, &byte)| byte == i as u8)
    );
    // Every second byte of a whole window: memory for gaps is bounded too.
    let mut attack = on(Side::Server);
    for n in 0..4000 {
        let mut payload = Vec::new();
        for k in 0..100 {
            let offset = 2 * (100 * n + k) + 1;
            payload.extend(varints(&[types::STREAM | 6, id.get(), offset, 1]));
            payload.push(0);
        }
        attack.send(&payload);
        if !attack.victim.reasons().is_empty() {
            break;
        }
    }
    attack.assert_closed_with(ErrorCode::INTERNAL_ERROR);
}

/// A server that has answered a client's first packet and received nothing since.
fn half_open() -> Attack {
    let mut attack = server_victim(Setup::default());
    for datagram in attack.peer.answers() {
        attack.deliver(&datagram);
    }
    attack.peer.acknowledges = false;
    attack.victim.meter.restart();
    attack
}

#[test]
fn packets_before_their_keys_take_a_bounded_amount_of_memory() {
    for len in [100, 1500, 60_000] {
        let mut attack = half_open();
        let held = attack.victim.meter.held();
        let mut datagram = vec![0x55; len];
        datagram[1..9].copy_from_slice(attack.peer.dst.as_bytes());
        for _ in 0..200 {
            attack.deliver(&datagram);
        }
        let grown = attack.victim.meter.peak() - held;
        assert!(grown <= 20 << 10, "{grown} for packets of {len}");
        attack.peer.acknowledges = true;
        attack.establish();
    }
}

/// Each of its packets is acknowledged, and none of the server's is.
#[test]
fn a_half_open_client_that_asks_without_end_is_closed() {
    let mut attack = half_open();
    let held = attack.victim.meter.held();
    let mut sent = 0;
    while attack.victim.reasons().is_empty() {
        sent += 1;
        assert!(sent <= 300, "it goes on for ever");
        let datagram = attack.peer.seal_initial(&encode(&[Frame::Ping]), 1200);
        attack.deliver(&datagram);
    }
    attack.assert_closed_with(ErrorCode::PROTOCOL_VIOLATION);
    let grown = attack.victim.meter.peak() - held;
    assert!(grown <= 128 << 10, "{grown}");
}
