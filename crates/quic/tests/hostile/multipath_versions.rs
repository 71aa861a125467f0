//! Frames of the multipath extension in a version that is not in use, and the error codes of
//! draft-ietf-quic-multipath-10 (sections 7 and 8).

use swiftwater_quic::crypto::EncryptionLevel;
use swiftwater_quic::wire::frame::types::{self, draft10};
use swiftwater_quic::wire::{ConnectionId, ErrorCode, Frame, MultipathVersion};
use swiftwater_quic::wire::{TransportParameters, Writer};
use swiftwater_quic::{MultipathConfig, MultipathVersions, TransportConfig};
use swiftwater_units::{PathId, Side};

use crate::attack::{Attack, Setup, client_victim, on_client, on_server, server_victim};
use crate::coding::varints;
use crate::peer::Packet;
use crate::persona::Persona;

const SIDES: [Side; 2] = [Side::Client, Side::Server];
/// The largest identifier that both ends accept.
const LAST: u32 = 3;
const BEYOND: PathId = PathId::new(4);

fn setup(versions: MultipathVersions) -> Setup {
    let persona = Persona::default();
    let declared = |version| versions.includes(version).then_some(LAST);
    Setup {
        transport: TransportConfig {
            multipath: Some(MultipathConfig {
                versions,
                ..MultipathConfig::default()
            }),
            ..TransportConfig::default()
        },
        persona: Persona {
            parameters: TransportParameters {
                initial_max_path_id: declared(MultipathVersion::Rfc10069),
                initial_max_path_id_draft10: declared(MultipathVersion::Draft10),
                ..persona.parameters
            },
            ..persona
        },
        ..Setup::default()
    }
}

fn with_versions(side: Side, versions: MultipathVersions) -> Attack {
    match side {
        Side::Client => on_client(setup(versions)),
        Side::Server => on_server(setup(versions)),
    }
}

fn encode(version: MultipathVersion, frame: &Frame<'_>) -> Vec<u8> {
    let mut buf = vec![0; frame.size_in(version)];
    frame.encode_in(version, &mut Writer::new(&mut buf));
    buf
}

/// Frames that any path of a connection may be named in, each with its type.
fn frames(version: MultipathVersion, path: PathId) -> Vec<(u64, Vec<u8>)> {
    let ack = match version {
        MultipathVersion::Rfc10069 => types::PATH_ACK,
        MultipathVersion::Draft10 => draft10::PATH_ACK,
    };
    let frames = [
        Frame::PathAbandon {
            path,
            error: ErrorCode::NO_ERROR,
            reason: b"because",
        },
        Frame::PathStatus {
            path,
            sequence: 1,
            backup: true,
        },
        Frame::PathStatus {
            path,
            sequence: 2,
            backup: false,
        },
        Frame::RetireConnectionId {
            path: Some(path),
            sequence: 0,
        },
    ];
    let number = u64::from(path.get());
    let frames = frames.iter();
    let frames = frames.map(|frame| (frame.frame_type_in(version), encode(version, frame)));
    frames
        .chain([(ack, varints(&[ack, number, 0, 0, 0, 0]))])
        .collect()
}

#[test]
fn frames_of_the_version_that_is_not_in_use_are_unknown() {
    let all = [
        (MultipathVersions::Rfc10069, MultipathVersion::Draft10),
        (MultipathVersions::Draft10, MultipathVersion::Rfc10069),
        // Both ends declare both: that of the RFC is in use.
        (MultipathVersions::Both, MultipathVersion::Draft10),
    ];
    for (in_use, other) in all {
        for side in SIDES {
            for (frame_type, bytes) in frames(other, PathId::new(1)) {
                let mut attack = with_versions(side, in_use);
                attack.send(&bytes);
                attack.assert_closed(ErrorCode::FRAME_ENCODING_ERROR, frame_type);
            }
        }
    }
}

#[test]
fn frames_of_draft_10_without_negotiation_are_unknown() {
    for (frame_type, bytes) in frames(MultipathVersion::Draft10, PathId::new(1)) {
        for on_side in [on_client, on_server] {
            let mut attack = on_side(Setup::default());
            attack.send(&bytes);
            attack.assert_closed(ErrorCode::FRAME_ENCODING_ERROR, frame_type);
        }
    }
}

#[test]
fn frames_that_draft_10_does_not_have_are_unknown_in_it() {
    for side in SIDES {
        for frame in [
            Frame::PathsBlocked {
                max: PathId::new(1),
            },
            Frame::PathCidsBlocked {
                path: PathId::new(1),
                next_sequence: 0,
            },
        ] {
            let mut attack = with_versions(side, MultipathVersions::Draft10);
            attack.send_frames(std::slice::from_ref(&frame));
            attack.assert_closed(ErrorCode::FRAME_ENCODING_ERROR, frame.frame_type());
        }
    }
}

#[test]
fn violations_in_draft_10_have_its_code() {
    let violation = ErrorCode::MP_PROTOCOL_VIOLATION;
    for side in SIDES {
        for (frame_type, bytes) in frames(MultipathVersion::Draft10, BEYOND) {
            let mut attack = with_versions(side, MultipathVersions::Draft10);
            attack.send(&bytes);
            attack.assert_closed(violation, frame_type);
        }
        let falls = Frame::MaxPathId {
            max: PathId::new(LAST - 1),
        };
        let mut attack = with_versions(side, MultipathVersions::Draft10);
        attack.send(&encode(MultipathVersion::Draft10, &falls));
        attack.assert_closed(violation, draft10::MAX_PATH_ID);
        let mut attack = with_versions(side, MultipathVersions::Draft10);
        attack.send(&varints(&[draft10::MAX_PATH_ID, 1 << 32]));
        attack.assert_closed(violation, draft10::MAX_PATH_ID);
    }
}

#[test]
fn an_identifier_is_abandoned_with_a_reason_and_another_one_offered() {
    for side in SIDES {
        let mut attack = with_versions(side, MultipathVersions::Draft10);
        let (_, abandon) = &frames(MultipathVersion::Draft10, PathId::new(1))[0];
        attack.send(abandon);
        attack.assert_open();
        let answers = attack.peer.count(
            |frame| matches!(frame, Frame::PathAbandon { path, reason: [], .. } if path.get() == 1),
        );
        let offers = attack
            .peer
            .count(|frame| matches!(frame, Frame::MaxPathId { max } if *max == BEYOND));
        assert!(answers >= 1 && offers >= 1, "{side:?}");
    }
}

#[test]
fn multipath_with_empty_connection_ids_is_a_violation() {
    for (versions, code) in [
        (MultipathVersions::Rfc10069, ErrorCode::PROTOCOL_VIOLATION),
        (MultipathVersions::Draft10, ErrorCode::MP_PROTOCOL_VIOLATION),
    ] {
        for side in SIDES {
            let mut setup = setup(versions);
            setup.persona.cid = ConnectionId::EMPTY;
            let mut attack = match side {
                Side::Client => client_victim(setup).meet_server(),
                Side::Server => server_victim(setup),
            };
            attack.converse();
            attack.assert_closed_with(code);
        }
        // Without the parameter they are fine.
        let mut setup = setup(versions);
        setup.persona.cid = ConnectionId::EMPTY;
        setup.persona.parameters.initial_max_path_id = None;
        setup.persona.parameters.initial_max_path_id_draft10 = None;
        on_server(setup).assert_open();
    }
}

#[test]
fn frames_about_paths_belong_into_1_rtt_packets() {
    for level in [EncryptionLevel::Initial, EncryptionLevel::Handshake] {
        for (version, versions, code) in [
            (
                MultipathVersion::Rfc10069,
                MultipathVersions::Rfc10069,
                ErrorCode::PROTOCOL_VIOLATION,
            ),
            (
                MultipathVersion::Draft10,
                MultipathVersions::Draft10,
                ErrorCode::FRAME_ENCODING_ERROR,
            ),
        ] {
            for (frame_type, bytes) in frames(version, PathId::ZERO) {
                let mut attack = server_victim(setup(versions));
                for answer in attack.peer.answers() {
                    attack.deliver(&answer);
                }
                attack.peer.acknowledges = false;
                let datagram = match level {
                    EncryptionLevel::Initial => attack.peer.seal_initial(&bytes, 1200),
                    _ => attack.peer.seal(&Packet::new(level, &bytes)),
                };
                attack.deliver(&datagram);
                attack.assert_closed(code, frame_type);
            }
        }
    }
}
