//! Delivery and repetition of control values.

use swiftwater_units::{Dir, StreamId};
use swiftwater_wire::frame::types;
use swiftwater_wire::{Reader, Writer, frame};

use super::*;

const RTT: Duration = Duration::from_millis(80);
const KEY: ControlKey = ControlKey::MaxData;

fn millis(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// Sends a packet; the versions of the values in it.
fn send(control: &mut Control, at: Instant, number: u64) -> Vec<u32> {
    let mut buf = [0; 1200];
    let mut carried = Vec::new();
    let mut writer = Writer::new(&mut buf);
    let packet = ControlPacket {
        path: PathId::ZERO,
        sent_at: at,
        number: PacketNumber::new(number),
    };
    control.fill(
        &mut FrameWriter::new(&mut writer, 1200, &mut carried),
        packet,
    );
    let version = |carried: &Carried| match carried {
        Carried::Control { version, .. } => *version,
        other => panic!("{other:?}"),
    };
    carried.iter().map(version).collect()
}

#[test]
fn a_retirement_names_its_path_unless_the_packet_is_on_it() {
    let (zero, one) = (PathId::ZERO, PathId::new(1));
    for (path, sent_on, kind) in [
        (zero, zero, types::RETIRE_CONNECTION_ID),
        (zero, one, types::PATH_RETIRE_CONNECTION_ID),
        (one, zero, types::PATH_RETIRE_CONNECTION_ID),
    ] {
        let mut control = Control::default();
        control.retire_connection_id(path, 5);
        let (mut buf, mut carried) = ([0; 100], Vec::new());
        let mut writer = Writer::new(&mut buf);
        let packet = ControlPacket {
            path: sent_on,
            sent_at: millis(0),
            number: PacketNumber::new(0),
        };
        control.fill(
            &mut FrameWriter::new(&mut writer, 100, &mut carried),
            packet,
        );
        let written = Reader::new(&buf).varint();
        assert_eq!(written.ok(), Some(kind), "{path} on {sent_on}");
    }
}

fn report(now: Instant, limit: u64, largest_acked: Option<u64>) -> BlockedReport {
    BlockedReport {
        now,
        limit,
        smoothed_rtt: RTT,
        path: PathId::ZERO,
        largest_acked: largest_acked.map(PacketNumber::new),
    }
}

fn with_limit_sent() -> Control {
    let mut control = Control::default();
    control.set(KEY, ControlValue::Limit(2000));
    assert_eq!(send(&mut control, millis(0), 0).len(), 1);
    control
}

#[test]
fn a_limit_that_should_have_arrived_is_repeated_at_once() {
    let mut control = with_limit_sent();
    control.on_blocked(KEY, report(millis(81), 1000, None));
    assert_eq!(send(&mut control, millis(81), 1).len(), 1);
    // And one that was sent before an acknowledged packet.
    let mut control = with_limit_sent();
    control.on_blocked(KEY, report(millis(20), 1000, Some(1)));
    assert_eq!(send(&mut control, millis(20), 2).len(), 1);
}

#[test]
fn a_limit_that_may_arrive_yet_is_repeated_when_it_is_late() {
    let mut control = with_limit_sent();
    control.on_blocked(KEY, report(millis(20), 1000, None));
    assert!(!control.has_pending());
    assert_eq!(control.next_repetition(), Some(millis(90)));
    control.repeat_by(millis(89));
    assert!(!control.has_pending());
    control.repeat_by(millis(90));
    assert!(control.has_pending());
    assert_eq!(control.next_repetition(), None);
    // The next time after twice as long.
    send(&mut control, millis(90), 1);
    assert_eq!(control.next_repetition(), Some(millis(180)));
    control.repeat_by(millis(180));
    send(&mut control, millis(180), 2);
    assert_eq!(control.next_repetition(), Some(millis(360)));
}

#[test]
fn repetition_ends_with_an_acknowledgement_of_any_version() {
    let mut control = with_limit_sent();
    control.on_blocked(KEY, report(millis(81), 1000, None));
    let version = send(&mut control, millis(81), 1)[0];
    control.set(KEY, ControlValue::Limit(3000));
    send(&mut control, millis(82), 2);
    assert!(!control.on_frame_fate(KEY, version, Fate::Acked));
    control.repeat_by(millis(10_000));
    assert!(!control.has_pending());
    assert_eq!(control.next_repetition(), None);
}

#[test]
fn a_peer_blocked_at_the_newest_limit_gets_nothing() {
    let mut control = with_limit_sent();
    control.on_blocked(KEY, report(millis(500), 2000, Some(9)));
    assert!(!control.has_pending());
    assert_eq!(control.next_repetition(), None);
}

#[test]
fn other_limits_in_flight_go_along() {
    let mut control = with_limit_sent();
    let stream = ControlKey::MaxStreamData(StreamId::from_wire(0));
    control.set(stream, ControlValue::Limit(2000));
    send(&mut control, millis(1), 1);
    control.on_blocked(stream, report(millis(100), 1000, None));
    assert_eq!(send(&mut control, millis(100), 2).len(), 2);
}

#[test]
fn probe_timeouts_repeat_the_newest_limits() {
    let mut control = with_limit_sent();
    for nth in 0..20 {
        let key = ControlKey::MaxStreamData(StreamId::from_wire(4 * nth));
        control.set(key, ControlValue::Limit(2000));
    }
    send(&mut control, millis(1), 1);
    control.repeat_limits();
    let versions = send(&mut control, millis(300), 2);
    assert_eq!(versions.len(), MAX_REPEATED_LIMITS);
    assert!(versions.iter().all(|version| *version > 20 - 8));
}

/// True for the limits that this end gives the peer.
fn is_limit(key: ControlKey) -> bool {
    match key {
        ControlKey::MaxData | ControlKey::MaxStreamData(_) | ControlKey::MaxStreams(_) => true,
        ControlKey::HandshakeDone
        | ControlKey::RetireConnectionId(..)
        | ControlKey::NewConnectionId(..)
        | ControlKey::ResetStream(_)
        | ControlKey::StopSending(_)
        | ControlKey::DataBlocked
        | ControlKey::StreamDataBlocked(_)
        | ControlKey::StreamsBlocked(_)
        | ControlKey::NewToken
        | ControlKey::AckFrequency
        | ControlKey::Feedback(_)
        | ControlKey::PathAbandon(_)
        | ControlKey::PathStatus(_)
        | ControlKey::MaxPathId
        | ControlKey::PathsBlocked
        | ControlKey::PathCidsBlocked(_) => false,
    }
}

#[test]
fn the_range_of_limits_contains_every_limit_and_nothing_else() {
    let first = PathId::ZERO;
    let last = PathId::new(u32::MAX);
    let ids = [StreamId::from_wire(0), StreamId::from_wire((1 << 62) - 1)];
    let mut keys = vec![
        ControlKey::HandshakeDone,
        ControlKey::RetireConnectionId(first, 0),
        ControlKey::RetireConnectionId(last, u64::MAX),
        ControlKey::NewConnectionId(first, 0),
        ControlKey::NewConnectionId(last, u64::MAX),
        ControlKey::MaxData,
        ControlKey::DataBlocked,
        ControlKey::NewToken,
        ControlKey::AckFrequency,
        ControlKey::Feedback(frame::FeedbackKind::new(1).unwrap()),
        ControlKey::PathAbandon(first),
        ControlKey::PathStatus(last),
        ControlKey::MaxPathId,
        ControlKey::PathsBlocked,
        ControlKey::PathCidsBlocked(last),
    ];
    for dir in [Dir::Bi, Dir::Uni] {
        keys.extend([ControlKey::MaxStreams(dir), ControlKey::StreamsBlocked(dir)]);
    }
    for id in ids {
        keys.extend([
            ControlKey::MaxStreamData(id),
            ControlKey::ResetStream(id),
            ControlKey::StopSending(id),
            ControlKey::StreamDataBlocked(id),
        ]);
    }
    for key in keys {
        assert_eq!(ControlKey::LIMITS.contains(&key), is_limit(key), "{key:?}");
    }
}
