//! DATAGRAM frames (RFC 9221).

use swiftwater_quic::TransportConfig;
use swiftwater_quic::wire::frame::types;
use swiftwater_quic::wire::{ErrorCode, Frame};
use swiftwater_units::{ByteCount, Side};

use crate::attack::{Attack, Setup, on_client, on_server};
use crate::coding::varints;

fn accepting(side: Side, max_datagram_frame_size: Option<u64>, queue: u64) -> Attack {
    let setup = Setup {
        transport: TransportConfig {
            max_datagram_frame_size,
            datagram_queue: ByteCount::new(queue),
            ..TransportConfig::default()
        },
        ..Setup::default()
    };
    match side {
        Side::Client => on_client(setup),
        Side::Server => on_server(setup),
    }
}

/// A frame of type 0x30, to the end of the packet.
fn to_end(len: usize) -> Vec<u8> {
    let mut payload = varints(&[types::DATAGRAM]);
    payload.resize(1 + len, 7);
    payload
}

/// A frame of type 0x31, with its length.
fn with_len(len: usize) -> Vec<u8> {
    let mut payload = varints(&[types::DATAGRAM_LEN, len as u64]);
    payload.resize(payload.len() + len, 7);
    payload
}

#[test]
fn datagrams_that_were_not_negotiated_are_violations() {
    for side in [Side::Client, Side::Server] {
        for limit in [None, Some(0)] {
            for payload in [to_end(0), to_end(5), with_len(0), with_len(5)] {
                let mut attack = accepting(side, limit, 1 << 20);
                assert_eq!(attack.peer.victims_parameters().max_datagram_frame_size, 0);
                attack.send(&payload);
                attack.assert_closed(ErrorCode::PROTOCOL_VIOLATION, u64::from(payload[0]));
            }
        }
    }
}

#[test]
fn datagram_frames_may_be_as_large_as_declared_and_not_a_byte_larger() {
    // The limit is for the whole frame, type and length included (section 3).
    for (fits, too_large) in [
        (to_end(99), to_end(100)),
        // The length takes two bytes from 64 on.
        (with_len(97), with_len(98)),
    ] {
        let mut attack = accepting(Side::Server, Some(100), 1 << 20);
        attack.send(&fits);
        attack.assert_open();
        assert!(attack.victim.connection().recv_datagram().is_some());
        attack.send(&too_large);
        attack.assert_closed(ErrorCode::PROTOCOL_VIOLATION, u64::from(too_large[0]));
    }
}

#[test]
fn unread_datagrams_take_a_bounded_amount_of_memory() {
    // Bytes beyond the queue push out the oldest ones.
    let mut attack = accepting(Side::Server, Some(65_535), 10_000);
    for _ in 0..100 {
        attack.send(&with_len(1000));
    }
    attack.assert_open();
    let mut unread = 0;
    while let Some(data) = attack.victim.connection().recv_datagram() {
        unread += data.len();
    }
    assert!((1..=10_000).contains(&unread), "{unread} bytes");
}

#[test]
fn empty_datagrams_take_a_bounded_amount_of_memory() {
    let mut attack = accepting(Side::Server, Some(65_535), 10_000);
    let payload = Frame::Datagram { data: b"" };
    let payload = crate::coding::encode(&vec![payload; 500]);
    for _ in 0..100 {
        attack.send(&payload);
    }
    attack.assert_open();
    let mut unread = 0;
    while attack.victim.connection().recv_datagram().is_some() {
        unread += 1;
    }
    assert!((1..=1000).contains(&unread), "{unread} datagrams are kept");
}

#[test]
fn victims_send_no_datagrams_that_the_peer_does_not_accept() {
    let mut setup = Setup::default();
    setup.persona.parameters.max_datagram_frame_size = 0;
    let mut attack = on_server(setup);
    assert_eq!(attack.victim.connection().max_datagram_size(), None);
    assert!(
        attack
            .victim
            .connection()
            .send_datagram(vec![1].into())
            .is_err()
    );
    // A limit that leaves no room for a payload.
    for limit in 1..=3 {
        let mut setup = Setup::default();
        setup.persona.parameters.max_datagram_frame_size = limit;
        let mut attack = on_server(setup);
        let max = attack.victim.connection().max_datagram_size().unwrap_or(0);
        assert!(max as u64 + 2 <= limit.max(2), "{max} of {limit}");
        let _ = attack
            .victim
            .connection()
            .send_datagram(vec![1; max].into());
        attack.assert_open();
        let sizes = attack.peer.packets.iter().flat_map(|packet| {
            packet.frames().filter_map(|(_, frame)| match frame {
                Frame::Datagram { .. } => Some(frame.size() as u64),
                _ => None,
            })
        });
        assert!(sizes.max().unwrap_or(0) <= limit);
    }
}
