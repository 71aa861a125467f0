//! The peer decides how often it is acknowledged, within what was agreed
//! (draft-ietf-quic-ack-frequency).

use std::time::Duration;

use swiftwater_quic::TransportConfig;
use swiftwater_quic::crypto::EncryptionLevel;
use swiftwater_quic::wire::frame::{AckFrequency, types};
use swiftwater_quic::wire::{ErrorCode, Frame};
use swiftwater_units::Side;

use crate::attack::{Attack, Setup, on, on_server};

fn request(
    sequence: u64,
    ack_eliciting_threshold: u64,
    reordering_threshold: u64,
) -> Frame<'static> {
    Frame::AckFrequency(AckFrequency {
        sequence,
        ack_eliciting_threshold,
        max_ack_delay: 20_000,
        reordering_threshold,
    })
}

/// Sends a PING; true if the victim acknowledges it without being given any time.
fn is_acked_at_once(attack: &mut Attack) -> bool {
    let number = attack.peer.next_number(EncryptionLevel::OneRtt);
    attack.send_frames(&[Frame::Ping]);
    attack.peer.is_acked(EncryptionLevel::OneRtt, number)
}

/// Packet numbers, each sent after `request`, of which the victim acknowledges `expected` at once.
fn assert_acked(request: Frame<'static>, numbers: &[u64], expected: &[u64]) {
    let mut attack = on(Side::Server);
    attack.send_frames(&[request, Frame::ImmediateAck]);
    let base = attack.peer.next_number(EncryptionLevel::OneRtt);
    let mut acked = Vec::new();
    for &number in numbers {
        attack
            .peer
            .set_next_number(EncryptionLevel::OneRtt, base + number);
        if is_acked_at_once(&mut attack) {
            acked.push(number);
        }
    }
    assert_eq!(acked, expected);
}

#[test]
fn a_request_for_few_acknowledgements_is_granted() {
    let rising: Vec<u64> = (0..30).collect();
    assert_acked(request(0, 9, 3), &rising, &[9, 19, 29]);
    assert_acked(request(0, 1, 1), &rising[..6], &[1, 3, 5]);
    assert_acked(request(0, 0, 1), &rising[..4], &[0, 1, 2, 3]);
}

/// The examples of the draft, section 6.2.1.
#[test]
fn missing_packets_are_reported_at_the_distance_that_was_asked_for() {
    let received = [0, 1, 3, 4, 5, 8, 9, 10];
    assert_acked(request(0, 100, 3), &received, &[5, 9, 10]);
    let received = [0, 1, 3, 5, 6, 7, 8, 9];
    assert_acked(request(0, 100, 5), &received, &[7, 9]);
    // Never, and at once.
    assert_acked(request(0, 100, 0), &[0, 4, 9, 20], &[]);
    assert_acked(request(0, 100, 1), &[0, 2, 3, 5], &[2, 5]);
}

#[test]
fn requests_that_come_late_are_ignored() {
    let mut attack = on(Side::Server);
    attack.send_frames(&[request(5, 9, 0)]);
    attack.send_frames(&[request(4, 0, 0)]);
    attack.send_frames(&[request(5, 0, 0)]);
    assert!(!is_acked_at_once(&mut attack));
    attack.send_frames(&[request(6, 0, 0)]);
    assert!(is_acked_at_once(&mut attack));
}

#[test]
fn an_acknowledgement_comes_within_the_delay_that_was_asked_for() {
    let mut attack = on(Side::Client);
    let (sequence, threshold) = (0, 100);
    attack.send_frames(&[Frame::AckFrequency(AckFrequency {
        sequence,
        ack_eliciting_threshold: threshold,
        max_ack_delay: 60_000,
        reordering_threshold: 0,
    })]);
    let number = attack.peer.next_number(EncryptionLevel::OneRtt);
    attack.send_frames(&[Frame::Ping]);
    attack.wait(Duration::from_millis(55));
    assert!(!attack.peer.is_acked(EncryptionLevel::OneRtt, number));
    attack.wait(Duration::from_millis(10));
    assert!(attack.peer.is_acked(EncryptionLevel::OneRtt, number));
}

#[test]
fn delays_out_of_range_are_violations() {
    for delay in [0, 999, 16_384_000, (1 << 62) - 1] {
        let mut attack = on(Side::Server);
        attack.send_frames(&[Frame::AckFrequency(AckFrequency {
            sequence: 0,
            ack_eliciting_threshold: 1,
            max_ack_delay: delay,
            reordering_threshold: 1,
        })]);
        attack.assert_closed(ErrorCode::PROTOCOL_VIOLATION, types::ACK_FREQUENCY);
    }
    for delay in [1_000, 16_383_999] {
        let mut attack = on(Side::Server);
        attack.send_frames(&[Frame::AckFrequency(AckFrequency {
            sequence: 0,
            ack_eliciting_threshold: u64::MAX >> 2,
            max_ack_delay: delay,
            reordering_threshold: u64::MAX >> 2,
        })]);
        assert!(attack.closes().is_empty(), "{delay}");
    }
}

#[test]
fn a_request_without_the_transport_parameter_is_an_error() {
    let frames = [
        (request(0, 1, 1), types::ACK_FREQUENCY),
        (Frame::ImmediateAck, types::IMMEDIATE_ACK),
    ];
    for (frame, frame_type) in frames {
        let mut attack = on_server(Setup {
            transport: TransportConfig {
                min_ack_delay: None,
                ..TransportConfig::default()
            },
            ..Setup::default()
        });
        attack.send_frames(&[frame]);
        attack.assert_closed(ErrorCode::FRAME_ENCODING_ERROR, frame_type);
    }
}

#[test]
fn requests_for_immediate_acknowledgement_are_met_with_one_packet_each() {
    let mut attack = on(Side::Server);
    attack.send_frames(&[request(0, 1000, 0)]);
    let before = attack.peer.packets.len();
    for _ in 0..500 {
        attack.send_frames(&[const { Frame::ImmediateAck }; 20]);
    }
    let answers = attack.peer.packets.len() - before;
    assert!(answers <= 510, "{answers}");
    attack.assert_open();
}
