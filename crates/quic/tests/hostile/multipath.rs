//! Frames of multipath that break its rules, and floods of them (draft-ietf-quic-multipath-21, sections 2 to
//! 4).

use swiftwater_quic::wire::frame::{self, types};
use swiftwater_quic::wire::{ErrorCode, Frame, ResetToken, TransportParameters};
use swiftwater_quic::{MultipathConfig, TransportConfig};
use swiftwater_units::{PathId, Side};

use crate::attack::{Attack, Setup, on_client, on_server};
use crate::coding::{cid, varints};
use crate::persona::Persona;

const SIDES: [Side; 2] = [Side::Client, Side::Server];
/// The largest identifier that the victim accepts.
const LAST: PathId = PathId::new(3);
const BEYOND: PathId = PathId::new(4);

/// A victim that accepts four paths, and a peer that declares `max` as its largest identifier.
fn with_paths(side: Side, max: u32) -> Attack {
    let persona = Persona::default();
    let setup = Setup {
        transport: TransportConfig {
            multipath: Some(MultipathConfig::default()),
            ..TransportConfig::default()
        },
        persona: Persona {
            parameters: TransportParameters {
                initial_max_path_id: Some(max),
                ..persona.parameters
            },
            ..persona
        },
        ..Setup::default()
    };
    match side {
        Side::Client => on_client(setup),
        Side::Server => on_server(setup),
    }
}

#[track_caller]
fn refuses(frame: &Frame<'_>, code: ErrorCode) {
    for side in SIDES {
        let mut attack = with_paths(side, 3);
        attack.send_frames(std::slice::from_ref(frame));
        attack.assert_closed(code, frame.frame_type());
    }
}

fn issue(path: u32, sequence: u64, bytes: &[u8]) -> Frame<'static> {
    Frame::NewConnectionId(frame::NewConnectionId {
        path: Some(PathId::new(path)),
        sequence,
        retire_prior_to: 0,
        cid: cid(bytes),
        reset_token: ResetToken([path as u8; 16]),
    })
}

#[test]
fn frames_about_paths_above_the_limit_are_violations() {
    let violation = ErrorCode::PROTOCOL_VIOLATION;
    let error = ErrorCode::NO_ERROR;
    refuses(
        &Frame::PathAbandon {
            path: BEYOND,
            error,
            reason: &[],
        },
        violation,
    );
    for backup in [false, true] {
        let status = Frame::PathStatus {
            path: BEYOND,
            sequence: 0,
            backup,
        };
        refuses(&status, violation);
    }
    refuses(&issue(BEYOND.get(), 0, b"12345678"), violation);
    let retire = Frame::RetireConnectionId {
        path: Some(BEYOND),
        sequence: 0,
    };
    refuses(&retire, violation);
    let blocked = Frame::PathCidsBlocked {
        path: BEYOND,
        next_sequence: 0,
    };
    refuses(&blocked, violation);
    refuses(&Frame::PathsBlocked { max: BEYOND }, violation);
    for side in SIDES {
        let mut attack = with_paths(side, 3);
        attack.send(&varints(&[
            types::PATH_ACK,
            BEYOND.get().into(),
            0,
            0,
            0,
            0,
        ]));
        attack.assert_closed(violation, types::PATH_ACK);
    }
}

#[test]
fn the_limit_of_path_identifiers_never_falls_below_the_declared_one() {
    refuses(
        &Frame::MaxPathId {
            max: PathId::new(2),
        },
        ErrorCode::PROTOCOL_VIOLATION,
    );
    for side in SIDES {
        let mut attack = with_paths(side, 3);
        for max in [9, 5, 3] {
            let max = PathId::new(max);
            attack.send_frames(&[Frame::MaxPathId { max }]);
        }
        attack.assert_open();
    }
}

#[test]
fn packets_of_a_path_that_was_never_open_cannot_be_acknowledged() {
    for side in SIDES {
        let mut attack = with_paths(side, 3);
        attack.send(&varints(&[types::PATH_ACK, 1, 0, 0, 0, 0]));
        attack.assert_closed(ErrorCode::PROTOCOL_VIOLATION, types::PATH_ACK);
    }
}

#[test]
fn path_0_is_acknowledged_with_and_without_its_name() {
    for side in SIDES {
        let mut attack = with_paths(side, 3);
        let number = |attack: &Attack| {
            let level = swiftwater_quic::crypto::EncryptionLevel::OneRtt;
            attack.peer.numbers(level).last().copied()
        };
        let last = number(&attack).unwrap();
        attack.send(&varints(&[types::PATH_ACK, 0, last, 0, 0, 0]));
        attack.send(&varints(&[types::ACK, last, 0, 0, 0]));
        attack.assert_open();
    }
}

#[test]
fn acknowledgements_name_a_path_only_if_a_second_one_is_permitted() {
    for (side, max) in SIDES.into_iter().flat_map(|side| [(side, 0), (side, 1)]) {
        let mut attack = with_paths(side, max);
        let count = |attack: &Attack, is_named: bool| {
            let is_such = |frame: &Frame<'_>| matches!(frame, Frame::Ack(ack) if ack.path.is_some() == is_named);
            attack.peer.count(is_such)
        };
        let before = count(&attack, max > 0);
        for _ in 0..4 {
            attack.send_frames(&[Frame::Ping]);
        }
        attack.assert_open();
        assert!(count(&attack, max > 0) > before, "{side:?}, {max}");
        if max == 0 {
            assert_eq!(count(&attack, true), 0, "{side:?}");
        }
    }
}

#[test]
fn connection_ids_of_paths_are_counted_and_distinct() {
    for side in SIDES {
        let mut attack = with_paths(side, 3);
        for n in 0..4_u8 {
            attack.send_frames(&[issue(1, n.into(), &[n; 8])]);
        }
        attack.assert_open();
        attack.send_frames(&[issue(1, 4, &[9; 8])]);
        attack.assert_closed(
            ErrorCode::CONNECTION_ID_LIMIT_ERROR,
            types::PATH_NEW_CONNECTION_ID,
        );
        let mut attack = with_paths(side, 3);
        attack.send_frames(&[issue(1, 0, b"12345678"), issue(2, 0, b"12345678")]);
        attack.assert_closed(ErrorCode::PROTOCOL_VIOLATION, types::PATH_NEW_CONNECTION_ID);
    }
}

#[test]
fn connection_ids_that_were_never_issued_cannot_be_retired_or_missed() {
    let retire = Frame::RetireConnectionId {
        path: Some(LAST),
        sequence: 1,
    };
    refuses(&retire, ErrorCode::PROTOCOL_VIOLATION);
    let blocked = Frame::PathCidsBlocked {
        path: LAST,
        next_sequence: 2,
    };
    refuses(&blocked, ErrorCode::PROTOCOL_VIOLATION);
}

#[test]
fn the_victim_gives_connection_ids_for_paths_that_both_ends_accept() {
    for (side, max) in SIDES
        .into_iter()
        .flat_map(|side| [(side, 0), (side, 2), (side, 9)])
    {
        let attack = with_paths(side, max);
        let for_paths = attack
            .peer
            .count(|frame| matches!(frame, Frame::NewConnectionId(new) if new.path.is_some()));
        assert_eq!(for_paths, max.min(LAST.get()) as usize, "{side:?}, {max}");
    }
}

#[test]
fn an_abandoned_identifier_is_answered_and_another_one_offered() {
    for side in SIDES {
        let mut attack = with_paths(side, 3);
        let (path, error) = (PathId::new(1), ErrorCode::PATH_UNSTABLE_OR_POOR);
        attack.send_frames(&[Frame::PathAbandon {
            path,
            error,
            reason: &[],
        }]);
        attack.assert_open();
        let answers = attack
            .peer
            .count(|frame| matches!(frame, Frame::PathAbandon { path, .. } if path.get() == 1));
        let offers = attack
            .peer
            .count(|frame| matches!(frame, Frame::MaxPathId { max } if max.get() == 4));
        assert!(answers >= 1 && offers >= 1, "{side:?}");
        // Late frames about it are ignored.
        attack.send_frames(&[
            Frame::PathAbandon {
                path,
                error,
                reason: &[],
            },
            Frame::PathStatus {
                path,
                sequence: 1,
                backup: true,
            },
            issue(1, 0, b"12345678"),
        ]);
        attack.assert_open();
    }
}

#[test]
fn the_only_path_abandoned_ends_the_connection() {
    for side in SIDES {
        let mut attack = with_paths(side, 3);
        attack.send_frames(&[Frame::PathAbandon {
            path: PathId::ZERO,
            error: ErrorCode::NO_ERROR,
            reason: &[],
        }]);
        attack.assert_closed_with(ErrorCode::NO_VIABLE_PATH);
    }
}

#[test]
fn a_flood_of_abandoned_identifiers_costs_no_memory() {
    for side in SIDES {
        let mut attack = with_paths(side, 3);
        for id in 1..2_000 {
            attack.send_frames(&[Frame::PathAbandon {
                path: PathId::new(id),
                error: ErrorCode::NO_ERROR,
                reason: &[],
            }]);
        }
        attack.assert_open();
        let highest = attack
            .peer
            .count(|frame| matches!(frame, Frame::MaxPathId { max } if max.get() == 2_002));
        assert!(highest >= 1, "{side:?}");
        assert_eq!(attack.victim.connection().open_paths().count(), 1);
    }
}
