//! Frames where they must not be, and frames that are not what they should be.

use swiftwater_http::h3::frame::{FrameType, put_header, put_int_frame};
use swiftwater_http::h3::{Code, Config, Settings};
use swiftwater_units::Side::{self, Client, Server};

use crate::support::get as get_head;
use crate::support::peer::{CONTROL, Duel, frame, get, headers};

fn int(frame_type: FrameType, n: u64) -> Vec<u8> {
    let mut out = Vec::new();
    put_int_frame(&mut out, frame_type, n);
    out
}

/// Frames that a control stream has after SETTINGS, and the error.
fn on_control() -> Vec<(Side, Vec<u8>, Code)> {
    let unexpected = Code::FRAME_UNEXPECTED;
    let mut table = Vec::new();
    for engine in [Client, Server] {
        for frame_type in [0x02, 0x06, 0x08, 0x09].map(FrameType::Http2) {
            table.push((engine, frame(frame_type, b""), unexpected));
        }
        for frame_type in [FrameType::Data, FrameType::Headers, FrameType::PushPromise] {
            table.push((engine, frame(frame_type, b"\0"), unexpected));
        }
        table.push((engine, frame(FrameType::Settings, b""), unexpected));
        table.push((engine, int(FrameType::CancelPush, 0), Code::ID_ERROR));
        for frame_type in [FrameType::GoAway, FrameType::CancelPush] {
            // No integer, half of one, more than one, and far too long.
            table.push((engine, frame(frame_type, b""), Code::FRAME_ERROR));
            table.push((engine, frame(frame_type, &[0x40]), Code::FRAME_ERROR));
            table.push((engine, frame(frame_type, &[0, 0]), Code::FRAME_ERROR));
            table.push((engine, frame(frame_type, &[0; 9]), Code::FRAME_ERROR));
        }
        let rising = [int(FrameType::GoAway, 4), int(FrameType::GoAway, 8)].concat();
        table.push((engine, rising, Code::ID_ERROR));
    }
    // A stream that is no request: the server's own, and unidirectional.
    table.push((Client, int(FrameType::GoAway, 1), Code::ID_ERROR));
    table.push((Client, int(FrameType::GoAway, 2), Code::ID_ERROR));
    table.push((Client, int(FrameType::MaxPushId, 1), unexpected));
    let update = frame(FrameType::PriorityUpdateRequest, b"\0u=1");
    table.push((Client, update, unexpected));
    let push = frame(FrameType::PriorityUpdatePush, b"\0u=1");
    table.push((Client, push.clone(), unexpected));
    table.push((Server, push, Code::ID_ERROR));
    let falling = [int(FrameType::MaxPushId, 4), int(FrameType::MaxPushId, 3)].concat();
    table.push((Server, falling, Code::ID_ERROR));
    for id in [b"\x01u=1", b"\x02u=1", b"\x03u=1"] {
        let update = frame(FrameType::PriorityUpdateRequest, id);
        table.push((Server, update, Code::ID_ERROR));
    }
    // Stream 400, the 101st request, where 100 are permitted.
    let beyond = frame(FrameType::PriorityUpdateRequest, b"\x41\x90u=1");
    table.push((Server, beyond, Code::ID_ERROR));
    let empty = frame(FrameType::PriorityUpdateRequest, b"");
    table.push((Server, empty, Code::FRAME_ERROR));
    let endless = frame(FrameType::PriorityUpdateRequest, &[b' '; 5000]);
    table.push((Server, endless, Code::EXCESSIVE_LOAD));
    table
}

#[test]
fn frames_that_control_streams_must_not_have_close_the_connection() {
    for (engine, bytes, code) in on_control() {
        let mut duel = Duel::new(engine, Config::default());
        duel.uni(&[CONTROL, &bytes].concat());
        assert_eq!(duel.closed_with(), code, "{engine:?} got {bytes:x?}");
    }
}

#[test]
fn frames_that_control_streams_may_have_are_taken() {
    let ours = [
        int(FrameType::GoAway, 8),
        int(FrameType::GoAway, 4),
        int(FrameType::GoAway, 4),
        frame(FrameType::Unknown(0x21), b"anything"),
        frame(FrameType::Unknown(0xabcd_ef01), &[7; 5000]),
    ];
    let clients = [
        int(FrameType::MaxPushId, 3),
        int(FrameType::MaxPushId, 3),
        int(FrameType::MaxPushId, 300),
        frame(FrameType::PriorityUpdateRequest, b"\0u=1, i"),
        frame(
            FrameType::PriorityUpdateRequest,
            b"\0\xff\x00 not a dictionary",
        ),
    ];
    for engine in [Client, Server] {
        let mut duel = Duel::new(engine, Config::default());
        let control = duel.uni(CONTROL);
        let clients = clients.iter().filter(|_| engine == Server);
        for bytes in ours.iter().chain(clients) {
            // In pieces, too.
            for byte in bytes {
                duel.write(control, &[*byte]);
            }
        }
        duel.survives();
    }
}

#[test]
fn a_control_stream_begins_with_settings() {
    for engine in [Client, Server] {
        for bytes in [
            int(FrameType::GoAway, 0),
            frame(FrameType::Unknown(0x21), b""),
            frame(FrameType::Data, b"x"),
            frame(FrameType::Http2(0x02), b""),
        ] {
            let mut duel = Duel::new(engine, Config::default());
            duel.uni(&[&[0x00], &bytes[..]].concat());
            assert_eq!(duel.closed_with(), Code::MISSING_SETTINGS, "{bytes:x?}");
        }
    }
}

#[test]
fn settings_that_contradict_the_rfc_close_the_connection() {
    let long = [&[0x21, 0x00][..]].repeat(3000).concat();
    let table: [(&[u8], Code); 12] = [
        (&[0x00, 0x01], Code::SETTINGS_ERROR),
        (&[0x02, 0x01], Code::SETTINGS_ERROR),
        (&[0x03, 0x01], Code::SETTINGS_ERROR),
        (&[0x04, 0x01], Code::SETTINGS_ERROR),
        (&[0x05, 0x01], Code::SETTINGS_ERROR),
        // Twice, known or not.
        (&[0x06, 0x10, 0x06, 0x10], Code::SETTINGS_ERROR),
        (&[0x21, 0x00, 0x01, 0x00, 0x21, 0x00], Code::SETTINGS_ERROR),
        // Switches.
        (&[0x08, 0x02], Code::SETTINGS_ERROR),
        (&[0x33, 0x02], Code::SETTINGS_ERROR),
        // Cut off in an identifier and in a value.
        (&[0x40], Code::FRAME_ERROR),
        (&[0x06, 0x40], Code::FRAME_ERROR),
        (&long, Code::EXCESSIVE_LOAD),
    ];
    for (payload, code) in table {
        let mut duel = Duel::new(Server, Config::default());
        let settings = frame(FrameType::Settings, payload);
        duel.uni(&[&[0x00], &settings[..]].concat());
        let start = &payload[..payload.len().min(8)];
        assert_eq!(duel.closed_with(), code, "{start:x?}");
    }
}

#[test]
fn unknown_settings_are_ignored_and_known_ones_kept() {
    let mut duel = Duel::new(Client, Config::default());
    let payload = [
        0x21, 0x05, 0x06, 0x50, 0x00, 0x33, 0x01, 0x08, 0x01, 0x01, 0x00,
    ];
    let settings = frame(FrameType::Settings, &payload);
    duel.uni(&[&[0x00], &settings[..]].concat());
    assert!(duel.run(|duel| duel.world.client.engine.peer_settings().is_some()));
    let expected = Settings {
        max_field_section_size: Some(0x1000),
        h3_datagram: true,
        enable_connect_protocol: true,
        ..Settings::default()
    };
    assert_eq!(duel.world.client.engine.peer_settings(), Some(&expected));
    assert_eq!(Settings::from_bytes(&expected.to_bytes()), Some(expected));
}

#[test]
fn datagrams_need_the_transports() {
    for engine in [Client, Server] {
        let builder = swiftwater_sim::Pair::builder()
            .both_configs(|config| config.max_datagram_frame_size = None);
        let mut duel = Duel::with(builder, engine, Config::default());
        let settings = frame(FrameType::Settings, &[0x33, 0x01]);
        duel.uni(&[&[0x00], &settings[..]].concat());
        assert_eq!(duel.closed_with(), Code::SETTINGS_ERROR);
    }
}

/// What comes on a request stream, and the connection error.
fn on_request_streams() -> Vec<(Vec<u8>, Code)> {
    let unexpected = Code::FRAME_UNEXPECTED;
    let trailers = headers(&[("x", "y")]);
    let data = frame(FrameType::Data, b"abc");
    let mut table = vec![
        (data.clone(), unexpected),
        ([get(), trailers.clone(), data.clone()].concat(), unexpected),
        (
            [get(), trailers.clone(), trailers.clone()].concat(),
            unexpected,
        ),
    ];
    for frame_type in [
        FrameType::Settings,
        FrameType::GoAway,
        FrameType::MaxPushId,
        FrameType::CancelPush,
        FrameType::PriorityUpdateRequest,
        FrameType::PriorityUpdatePush,
        FrameType::PushPromise,
        FrameType::Http2(0x02),
        FrameType::Http2(0x06),
        FrameType::Http2(0x08),
        FrameType::Http2(0x09),
    ] {
        let bytes = frame(frame_type, &[0]);
        table.push((bytes.clone(), unexpected));
        table.push(([get(), bytes].concat(), unexpected));
    }
    table
}

#[test]
fn frames_that_request_streams_must_not_have_close_the_connection() {
    for (bytes, code) in on_request_streams() {
        let mut duel = Duel::ready(Server, Config::default());
        duel.bidi(&bytes, false);
        assert_eq!(duel.closed_with(), code, "{bytes:x?}");
    }
}

#[test]
fn a_stream_that_ends_within_a_frame_closes_the_connection() {
    let mut cut = Vec::new();
    put_header(&mut cut, FrameType::Data, 10);
    let mut unknown = Vec::new();
    put_header(&mut unknown, FrameType::Unknown(0x21), 10);
    for tail in [
        &cut[..],
        &[&cut[..], b"123456789"].concat(),
        &[0x00],
        &[0x40],
        &unknown,
    ] {
        let mut duel = Duel::ready(Server, Config::default());
        duel.bidi(&[&get(), tail].concat(), true);
        assert_eq!(duel.closed_with(), Code::FRAME_ERROR, "{tail:x?}");
    }
}

#[test]
fn a_section_that_cannot_be_decompressed_closes_the_connection() {
    for section in [&b""[..], &[0x00], &[0x00, 0x00, 0xff], &[0x00, 0x00, 0x80]] {
        let mut duel = Duel::ready(Server, Config::default());
        duel.bidi(&frame(FrameType::Headers, section), false);
        let code = duel.closed_with();
        assert_eq!(code, Code::QPACK_DECOMPRESSION_FAILED, "{section:x?}");
    }
}

#[test]
fn unknown_frames_are_stepped_over_wherever_they_are() {
    let unknown = frame(FrameType::Unknown(0x40 * 0x1f + 0x21), &[9; 3000]);
    let trailers = headers(&[("x", "y")]);
    let data = frame(FrameType::Data, b"abc");
    let empty = frame(FrameType::Data, b"");
    let all = [
        &unknown,
        &get(),
        &unknown,
        &data,
        &empty,
        &unknown,
        &data,
        &trailers,
        &unknown,
    ];
    let bytes = all.map(|each| &each[..]).concat();
    let mut duel = Duel::ready(Server, Config::default());
    let id = duel.bidi(&[], false);
    // In small pieces.
    for piece in bytes.chunks(7) {
        duel.write(id, piece);
    }
    duel.quic().send_stream(id).finish().unwrap();
    assert!(duel.run(|duel| {
        let message = duel.world.server.messages.get(&id);
        message.is_some_and(|message| message.complete)
    }));
    let message = &duel.world.server.messages[&id];
    assert_eq!(message.body, b"abcabc");
    assert_eq!(message.trailers.as_ref().unwrap()["x"], "y");
}

#[test]
fn what_a_server_sends_on_a_request_stream_is_checked_too() {
    let ok = headers(&[(":status", "200")]);
    let table = [
        (frame(FrameType::Data, b"abc"), Code::FRAME_UNEXPECTED),
        (frame(FrameType::Settings, b""), Code::FRAME_UNEXPECTED),
        // No push is permitted.
        (frame(FrameType::PushPromise, &[0, 0, 0]), Code::ID_ERROR),
        (
            [&ok[..], &frame(FrameType::PushPromise, &[0])].concat(),
            Code::ID_ERROR,
        ),
        (
            [&ok[..], &frame(FrameType::GoAway, &[0])].concat(),
            Code::FRAME_UNEXPECTED,
        ),
    ];
    for (bytes, code) in table {
        let mut duel = Duel::ready(Client, Config::default());
        let id = duel.world.request(&get_head("/"), None);
        assert!(duel.run(|duel| duel.quic().accept(swiftwater_units::Dir::Bi).is_some()));
        duel.write(id, &bytes);
        assert_eq!(duel.closed_with(), code, "{bytes:x?}");
    }
}

#[test]
fn a_tunnel_has_data_only() {
    let connect = headers(&[(":method", "CONNECT"), (":authority", "example.org:443")]);
    let mut duel = Duel::ready(Server, Config::default());
    duel.bidi(&[connect, headers(&[("x", "y")])].concat(), false);
    assert_eq!(duel.closed_with(), Code::FRAME_UNEXPECTED);
}
