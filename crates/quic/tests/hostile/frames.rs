//! Frames that are malformed, in the wrong packet, or from the wrong side (RFC 9000, sections 12.4,
//! 17 and 19).

use swiftwater_quic::crypto::EncryptionLevel;
use swiftwater_quic::wire::frame::{self, ConnectionClose, types};
use swiftwater_quic::wire::{ErrorCode, Frame};
use swiftwater_units::{Dir, PathId, Side, StreamId};

use crate::attack::{Attack, Setup, client_victim, on, on_client, on_server, server_victim};
use crate::coding::{cid, encode, varints};
use crate::peer::Packet;

const SIDES: [Side; 2] = [Side::Client, Side::Server];

/// The victim closes with `code` and blames `frame_type` when it gets `payload`.
#[track_caller]
fn refuses(side: Side, payload: &[u8], code: ErrorCode, frame_type: u64) {
    let mut attack = on(side);
    attack.send(payload);
    attack.assert_closed(code, frame_type);
}

#[test]
fn well_behaved_peers_are_served() {
    for real_tls in [false, true] {
        let setup = || Setup {
            real_tls,
            ..Setup::default()
        };
        on_server(setup()).assert_open();
        on_client(setup()).assert_open();
    }
}

#[test]
fn frames_cut_short_are_encoding_errors() {
    let token = [7; 16];
    let new_cid = Frame::NewConnectionId(frame::NewConnectionId {
        path: None,
        sequence: 1,
        retire_prior_to: 0,
        cid: cid(b"12345678"),
        reset_token: swiftwater_quic::wire::ResetToken(token),
    });
    let stream = StreamId::new(Side::Client, Dir::Bi, 0);
    let whole = [
        Frame::Crypto(frame::Crypto {
            offset: 0,
            data: b"x",
        }),
        Frame::ResetStream(frame::ResetStream {
            id: stream,
            error: 0,
            final_size: 0,
        }),
        Frame::StopSending(frame::StopSending {
            id: stream,
            error: 0,
        }),
        Frame::NewToken { token: b"token" },
        Frame::Stream(frame::Stream {
            id: stream,
            offset: 1,
            fin: false,
            data: b"x",
        }),
        Frame::MaxData { limit: 1 },
        Frame::MaxStreamData {
            id: stream,
            limit: 1,
        },
        Frame::MaxStreams {
            dir: Dir::Bi,
            count: 1,
        },
        Frame::DataBlocked { limit: 1 },
        Frame::StreamDataBlocked {
            id: stream,
            limit: 1,
        },
        Frame::StreamsBlocked {
            dir: Dir::Uni,
            limit: 1,
        },
        new_cid,
        Frame::RetireConnectionId {
            path: None,
            sequence: 1,
        },
        Frame::PathChallenge { data: [1; 8] },
        Frame::PathResponse { data: [1; 8] },
        Frame::ConnectionClose(ConnectionClose::Transport {
            error: ErrorCode::NO_ERROR,
            frame_type: 0,
            reason: b"x",
        }),
        Frame::Datagram { data: b"x" },
    ];
    for frame in whole {
        let mut bytes = encode(std::slice::from_ref(&frame));
        bytes.pop();
        refuses(
            Side::Server,
            &bytes,
            ErrorCode::FRAME_ENCODING_ERROR,
            frame.frame_type(),
        );
    }
    let ack = varints(&[types::ACK, 0, 0, 1, 0]);
    refuses(
        Side::Server,
        &ack,
        ErrorCode::FRAME_ENCODING_ERROR,
        types::ACK,
    );
}

#[test]
fn unknown_frame_types_are_encoding_errors() {
    for frame_type in [0x21, 0x20, 0x2f, 0x32, 0x40, 0x3e7d, 1 << 40] {
        for side in SIDES {
            let payload = varints(&[frame_type]);
            refuses(side, &payload, ErrorCode::FRAME_ENCODING_ERROR, frame_type);
        }
    }
}

#[test]
fn frame_types_not_in_their_shortest_encoding_are_violations() {
    // PING and HANDSHAKE_DONE in two, four and eight bytes.
    for payload in [
        &[0x40, 0x01][..],
        &[0x80, 0, 0, 0x01],
        &[0xc0, 0, 0, 0, 0, 0, 0, 0x01],
        &[0x40, 0x1e],
    ] {
        let mut attack = on(Side::Client);
        attack.send(payload);
        attack.assert_closed_with(ErrorCode::PROTOCOL_VIOLATION);
    }
}

#[test]
fn fields_not_in_their_shortest_encoding_are_fine() {
    // MAX_DATA 5 in eight bytes.
    let mut attack = on(Side::Server);
    attack.send(&[0x10, 0xc0, 0, 0, 0, 0, 0, 0, 5]);
    attack.assert_open();
}

#[test]
fn values_out_of_range_are_encoding_errors() {
    let too_many = (1 << 60) + 1;
    let last = (1 << 62) - 1;
    for (payload, frame_type) in [
        (varints(&[types::MAX_STREAMS_BIDI, too_many]), 0x12),
        (varints(&[types::MAX_STREAMS_UNI, too_many]), 0x13),
        (varints(&[types::MAX_STREAMS_UNI, last]), 0x13),
        (varints(&[types::STREAMS_BLOCKED_BIDI, too_many]), 0x16),
        (varints(&[types::STREAMS_BLOCKED_UNI, too_many]), 0x17),
        // Data that ends beyond 2^62 - 1: STREAM with offset and length, CRYPTO.
        (
            [varints(&[0x0e, 0, last, 1]), vec![0]].concat(),
            types::STREAM | 6,
        ),
        (
            [varints(&[types::CRYPTO, last, 1]), vec![0]].concat(),
            types::CRYPTO,
        ),
        // An empty NEW_TOKEN.
        (varints(&[types::NEW_TOKEN, 0]), types::NEW_TOKEN),
        // ACK ranges that reach below 0: the first, and a later one.
        (varints(&[types::ACK, 1, 0, 0, 2]), types::ACK),
        (varints(&[types::ACK, 3, 0, 1, 1, 1, 0]), types::ACK),
    ] {
        for side in SIDES {
            refuses(side, &payload, ErrorCode::FRAME_ENCODING_ERROR, frame_type);
        }
    }
}

#[test]
fn largest_stream_counts_are_accepted() {
    let mut attack = on(Side::Server);
    let count = 1 << 60;
    let (dir, limit) = (Dir::Uni, count);
    attack.send_frames(&[
        Frame::MaxStreams {
            dir: Dir::Bi,
            count,
        },
        Frame::MaxStreams { dir, count },
        Frame::StreamsBlocked { dir, limit },
        Frame::MaxData {
            limit: (1 << 62) - 1,
        },
    ]);
    let id = attack.victim.connection().open(Dir::Bi).unwrap();
    let limit = (1 << 62) - 1;
    attack.send_frames(&[Frame::MaxStreamData { id, limit }]);
    attack.assert_open();
}

#[test]
fn packets_without_frames_are_violations() {
    for side in SIDES {
        refuses(side, &[], ErrorCode::PROTOCOL_VIOLATION, 0);
    }
    // During the handshake too.
    let mut attack = server_victim(Setup::default());
    begin(&mut attack);
    let datagram = attack
        .peer
        .seal(&Packet::new(EncryptionLevel::Handshake, &[]));
    attack.deliver(&datagram);
    attack.assert_closed(ErrorCode::PROTOCOL_VIOLATION, 0);
}

/// The client says hello and reads the server's flight, but doesn't answer it.
fn begin(attack: &mut Attack) {
    for datagram in attack.peer.answers() {
        attack.deliver(&datagram);
    }
    assert!(attack.peer.has_keys(EncryptionLevel::OneRtt));
    attack.peer.acknowledges = false;
}

/// Frames that only 1-RTT packets may carry.
fn late_frames() -> Vec<(Vec<u8>, u64)> {
    let id = StreamId::new(Side::Client, Dir::Bi, 0);
    let frames = [
        Frame::Stream(frame::Stream {
            id,
            offset: 0,
            fin: false,
            data: b"early",
        }),
        Frame::ResetStream(frame::ResetStream {
            id,
            error: 0,
            final_size: 0,
        }),
        Frame::StopSending(frame::StopSending { id, error: 0 }),
        Frame::NewToken { token: b"token" },
        Frame::MaxData { limit: 9 },
        Frame::MaxStreamData { id, limit: 9 },
        Frame::MaxStreams {
            dir: Dir::Bi,
            count: 9,
        },
        Frame::DataBlocked { limit: 9 },
        Frame::StreamDataBlocked { id, limit: 9 },
        Frame::StreamsBlocked {
            dir: Dir::Bi,
            limit: 9,
        },
        Frame::NewConnectionId(frame::NewConnectionId {
            path: None,
            sequence: 1,
            retire_prior_to: 0,
            cid: cid(b"12345678"),
            reset_token: swiftwater_quic::wire::ResetToken([7; 16]),
        }),
        Frame::RetireConnectionId {
            path: None,
            sequence: 0,
        },
        Frame::PathChallenge { data: [1; 8] },
        Frame::PathResponse { data: [1; 8] },
        Frame::ConnectionClose(ConnectionClose::Application {
            error: 1,
            reason: b"",
        }),
        Frame::HandshakeDone,
        Frame::Datagram { data: b"early" },
    ];
    frames
        .iter()
        .map(|frame| (encode(std::slice::from_ref(frame)), frame.frame_type()))
        .collect()
}

#[test]
fn frames_that_initial_packets_must_not_carry() {
    for (payload, frame_type) in late_frames() {
        let mut attack = server_victim(Setup::default());
        begin(&mut attack);
        let datagram = attack.peer.seal_initial(&payload, 1200);
        attack.deliver(&datagram);
        attack.assert_closed(ErrorCode::PROTOCOL_VIOLATION, frame_type);
    }
}

#[test]
fn frames_that_handshake_packets_must_not_carry() {
    for (payload, frame_type) in late_frames() {
        let mut attack = server_victim(Setup::default());
        begin(&mut attack);
        attack.send_packet(&Packet::new(EncryptionLevel::Handshake, &payload));
        attack.assert_closed(ErrorCode::PROTOCOL_VIOLATION, frame_type);
    }
}

#[test]
fn a_clients_first_packet_may_break_the_rules_too() {
    for (payload, frame_type) in late_frames() {
        let mut attack = server_victim(Setup::default());
        let datagram = attack.peer.seal_initial(&payload, 1200);
        attack.deliver(&datagram);
        attack.assert_closed(ErrorCode::PROTOCOL_VIOLATION, frame_type);
    }
}

#[test]
fn a_servers_first_packet_may_break_the_rules_too() {
    for (payload, frame_type) in late_frames() {
        let mut attack = client_victim(Setup::default()).meet_server();
        let datagram = attack.peer.seal_initial(&payload, 1200);
        attack.deliver(&datagram);
        attack.assert_closed(ErrorCode::PROTOCOL_VIOLATION, frame_type);
    }
}

#[test]
fn transport_close_in_early_packets_ends_the_handshake() {
    let close = encode(&[Frame::ConnectionClose(ConnectionClose::Transport {
        error: ErrorCode::CONNECTION_REFUSED,
        frame_type: 0,
        reason: b"no",
    })]);
    let mut attack = client_victim(Setup::default()).meet_server();
    let datagram = attack.peer.seal_initial(&close, 1200);
    attack.deliver(&datagram);
    let reasons = attack.victim.reasons();
    assert!(
        matches!(
            reasons[..],
            [swiftwater_quic::ConnectionError::PeerTransport(error)]
                if error.code == ErrorCode::CONNECTION_REFUSED
        ),
        "{reasons:?}"
    );
    // Draining: not a byte more (section 10.2.2).
    assert!(attack.peer.packets.iter().all(|packet| packet.number == 0));
    attack.wait(std::time::Duration::from_secs(60));
    assert!(attack.victim.connection().is_drained());
}

#[test]
fn frames_that_only_servers_send() {
    refuses(
        Side::Server,
        &encode(&[Frame::HandshakeDone]),
        ErrorCode::PROTOCOL_VIOLATION,
        types::HANDSHAKE_DONE,
    );
    refuses(
        Side::Server,
        &encode(&[Frame::NewToken { token: b"token" }]),
        ErrorCode::PROTOCOL_VIOLATION,
        types::NEW_TOKEN,
    );
    let mut attack = on(Side::Client);
    attack.send_frames(&[Frame::HandshakeDone, Frame::NewToken { token: b"token" }]);
    attack.assert_open();
}

#[test]
fn multipath_frames_without_negotiation_are_violations() {
    let path = PathId::new(1);
    let ack = varints(&[types::PATH_ACK, 0, 0, 0, 0, 0]);
    let new_cid = frame::NewConnectionId {
        path: Some(path),
        sequence: 0,
        retire_prior_to: 0,
        cid: cid(b"12345678"),
        reset_token: swiftwater_quic::wire::ResetToken([7; 16]),
    };
    let error = ErrorCode::NO_ERROR;
    let frames = [
        Frame::PathAbandon {
            path,
            error,
            reason: &[],
        },
        Frame::PathStatus {
            path,
            sequence: 0,
            backup: true,
        },
        Frame::PathStatus {
            path,
            sequence: 0,
            backup: false,
        },
        Frame::NewConnectionId(new_cid),
        Frame::RetireConnectionId {
            path: Some(path),
            sequence: 0,
        },
        Frame::MaxPathId { max: path },
        Frame::PathsBlocked { max: path },
        Frame::PathCidsBlocked {
            path,
            next_sequence: 0,
        },
    ];
    refuses(
        Side::Server,
        &ack,
        ErrorCode::PROTOCOL_VIOLATION,
        types::PATH_ACK,
    );
    for frame in frames {
        let payload = encode(std::slice::from_ref(&frame));
        refuses(
            Side::Client,
            &payload,
            ErrorCode::PROTOCOL_VIOLATION,
            frame.frame_type(),
        );
    }
}

#[test]
fn the_first_offence_counts_and_nothing_after_it() {
    let mut attack = on(Side::Server);
    let offences = [
        encode(&[Frame::Ping]),
        varints(&[types::MAX_STREAMS_BIDI, u64::MAX >> 2]),
        encode(&[Frame::HandshakeDone]),
    ];
    attack.send(&offences.concat());
    attack.assert_closed(ErrorCode::FRAME_ENCODING_ERROR, types::MAX_STREAMS_BIDI);
}

#[test]
fn a_closed_victim_repeats_its_close_ever_more_rarely() {
    let mut attack = on(Side::Server);
    attack.send_frames(&[Frame::HandshakeDone]);
    assert_eq!(attack.closes().len(), 1);
    for _ in 0..64 {
        attack.send_frames(&[Frame::Ping]);
    }
    // After the 1st, 2nd, 4th ... packet.
    assert_eq!(attack.closes().len(), 1 + 7);
    assert_eq!(attack.victim.reasons().len(), 1);
}
