//! FEEDBACK frames: only as agreed, and floods of them take a bounded amount of memory.

use swiftwater_quic::TransportConfig;
use swiftwater_quic::wire::frame::{Feedback, FeedbackKind, types};
use swiftwater_quic::wire::{ErrorCode, Frame};
use swiftwater_units::Side;

use crate::attack::{Attack, Setup, on, on_client, on_server};
use crate::coding::{encode, varints};

/// A victim that accepts feedback of up to `max_feedback_size` bytes.
fn accepting(side: Side, max_feedback_size: u8) -> Attack {
    let setup = Setup {
        transport: TransportConfig {
            max_feedback_size,
            ..TransportConfig::default()
        },
        ..Setup::default()
    };
    match side {
        Side::Client => on_client(setup),
        Side::Server => on_server(setup),
    }
}

fn message(kind: u8, sequence: u64, payload: &[u8], ack_eliciting: bool) -> Frame<'_> {
    Frame::Feedback(Feedback {
        kind: FeedbackKind::new(kind).unwrap(),
        sequence,
        payload,
        ack_eliciting,
    })
}

fn frame_type(ack_eliciting: bool) -> u64 {
    if ack_eliciting {
        types::FEEDBACK
    } else {
        types::FEEDBACK_NOT_ELICITING
    }
}

#[test]
fn feedback_that_was_not_negotiated_is_a_violation() {
    for side in [Side::Client, Side::Server] {
        for ack_eliciting in [false, true] {
            let mut attack = on(side);
            assert_eq!(attack.peer.victims_parameters().max_feedback_size, 0);
            attack.send_frames(&[message(0, 0, b"", ack_eliciting)]);
            attack.assert_closed(ErrorCode::PROTOCOL_VIOLATION, frame_type(ack_eliciting));
        }
    }
}

#[test]
fn feedback_may_be_as_large_as_agreed_and_not_a_byte_larger() {
    for side in [Side::Client, Side::Server] {
        let mut attack = accepting(side, 20);
        assert_eq!(attack.peer.victims_parameters().max_feedback_size, 20);
        attack.send_frames(&[message(1, 0, &[7; 20], true)]);
        attack.assert_open();
        let received = attack.victim.connection().recv_feedback().unwrap();
        assert_eq!(received.payload.as_bytes(), [7; 20]);
        attack.send_frames(&[message(1, 1, &[7; 21], true)]);
        attack.assert_closed(ErrorCode::PROTOCOL_VIOLATION, types::FEEDBACK);
    }
}

#[test]
fn feedback_of_no_kind_or_above_the_largest_size_is_malformed() {
    let mut no_kind = varints(&[types::FEEDBACK, 16, 0, 1]);
    no_kind.push(0);
    let mut too_large = varints(&[types::FEEDBACK, 0, 0, 65]);
    too_large.extend([0; 65]);
    for payload in [no_kind, too_large] {
        let mut attack = accepting(Side::Server, 64);
        attack.send(&payload);
        attack.assert_closed(ErrorCode::FRAME_ENCODING_ERROR, types::FEEDBACK);
    }
}

#[test]
fn a_flood_of_feedback_leaves_the_newest_of_each_kind() {
    let mut attack = accepting(Side::Server, 64);
    for round in 0..200 {
        let payload = [round as u8; 64];
        let frames: Vec<_> = (0..15)
            .map(|kind| message(kind, round, &payload, true))
            .collect();
        attack.send(&encode(&frames));
    }
    // Older ones are no news.
    attack.send_frames(&[
        message(0, 5, &[1; 64], true),
        message(0, 199, &[1; 64], true),
    ]);
    attack.assert_open();
    let mut unread = 0;
    while let Some(received) = attack.victim.connection().recv_feedback() {
        assert_eq!(received.sequence, 199);
        assert_eq!(received.payload.as_bytes(), [199; 64]);
        unread += 1;
    }
    assert_eq!(unread, 15);
}

#[test]
fn a_number_that_leaves_no_larger_one_ends_nothing() {
    let mut attack = accepting(Side::Client, 64);
    attack.send_frames(&[message(0, (1 << 62) - 1, b"last", true)]);
    attack.send_frames(&[message(0, 0, b"old", true)]);
    attack.assert_open();
    let received = attack.victim.connection().recv_feedback().unwrap();
    assert_eq!(received.payload.as_bytes(), b"last");
    assert!(attack.victim.connection().recv_feedback().is_none());
}
