//! WebTransport sessions as browsers open them (draft-ietf-webtrans-http3).

use bytes::Bytes;
use swiftwater_http::h3::capsule::CapsuleReader;
use swiftwater_http::h3::frame::FrameType;
use swiftwater_http::h3::webtransport::{
    application_code, close_session, closed_session, drain_session, stream_code,
};
use swiftwater_http::h3::{Code, Config, Event, Limits, SessionError};
use swiftwater_quic::ReadOutcome;
use swiftwater_units::{Dir, Side, StreamId};

use crate::support::peer::{Duel, frame, get, headers};
use crate::support::response;

fn config() -> Config {
    Config {
        webtransport_sessions: 2,
        ..Config::default()
    }
}

fn request() -> Vec<u8> {
    headers(&[
        (":method", "CONNECT"),
        (":protocol", "webtransport"),
        (":scheme", "https"),
        (":authority", "example.org"),
        (":path", "/chat"),
        ("origin", "https://example.org"),
    ])
}

/// A browser's control stream.
fn ready() -> Duel {
    let mut duel = Duel::new(Side::Server, config());
    let settings = [
        0x33, 0x01, // H3_DATAGRAM
        0xab, 0x60, 0x37, 0x42, 0x01, // SETTINGS_ENABLE_WEBTRANSPORT, draft 2
    ];
    let settings = frame(FrameType::Settings, &settings);
    duel.uni(&[&[0x00], &settings[..]].concat());
    duel.world
        .answer(|server, pair, id| server.head(pair, id, &response(200)));
    duel
}

fn session(duel: &mut Duel) -> StreamId {
    let id = duel.bidi(&request(), false);
    let mut answer = Vec::new();
    assert!(duel.run(|duel| {
        answer.extend(duel.read(id).0);
        !answer.is_empty()
    }));
    id
}

fn streams(duel: &Duel) -> Vec<(StreamId, StreamId, Dir)> {
    let events = duel.world.server.events.iter();
    let of = events.filter_map(|event| match event {
        Event::SessionStream { session, id, dir } => Some((*session, *id, *dir)),
        _ => None,
    });
    of.collect()
}

/// Reads what the server's application finds on a stream.
fn read(duel: &mut Duel, id: StreamId) -> Vec<u8> {
    let mut all = Vec::new();
    let mut buffer = [0; 100];
    let quic = duel.world.pair.server();
    while let Ok(ReadOutcome::Data(n)) = quic.recv_stream(id).read(&mut buffer) {
        all.extend_from_slice(&buffer[..n]);
    }
    all
}

#[test]
fn the_server_says_that_it_takes_sessions() {
    let mut duel = ready();
    let mut control = Vec::new();
    assert!(duel.run(|duel| {
        while let Some(id) = duel.quic().accept(Dir::Uni) {
            control.push(duel.read(id).0);
        }
        control.len() == 3
    }));
    // Each with the integers as they are on the wire.
    for setting in [
        &[0xab, 0x60, 0x37, 0x42, 0x01][..],
        &[0xc0, 0x00, 0x00, 0x00, 0xc6, 0x71, 0x70, 0x6a, 0x02],
        &[0x94, 0xe9, 0xcd, 0x29, 0x01],
        &[0x33, 0x01],
        &[0x80, 0xff, 0xd2, 0x77, 0x01],
        &[0x08, 0x01],
    ] {
        let found = control[0]
            .windows(setting.len())
            .any(|part| part == setting);
        assert!(found, "{setting:x?} in {:x?}", control[0]);
    }
}

#[test]
fn a_session_echoes_streams_and_datagrams() {
    let mut duel = ready();
    let session = session(&mut duel);
    assert_eq!(session.get(), 0);
    let bidi = duel.bidi(&[&[0x40, 0x41, 0x00], &b"both ways"[..]].concat(), false);
    let uni = duel.uni(&[&[0x40, 0x54, 0x00], &b"one way"[..]].concat());
    assert!(duel.run(|duel| streams(duel).len() == 2));
    assert!(streams(&duel).contains(&(session, uni, Dir::Uni)));
    assert!(streams(&duel).contains(&(session, bidi, Dir::Bi)));
    // From here on the streams are the application's: it finds what follows the signal.
    assert_eq!(read(&mut duel, uni), b"one way");
    assert_eq!(read(&mut duel, bidi), b"both ways");
    let quic = duel.world.pair.server();
    assert_eq!(quic.send_stream(bidi).write(b"back"), Ok(4));
    duel.survives();
    assert_eq!(duel.read(bidi).0, b"back");

    // Streams of the server's own.
    let quic = duel.world.pair.server();
    let engine = &mut duel.world.server.engine;
    let ours = engine.open_session_stream(quic, session, Dir::Uni).unwrap();
    assert_eq!(quic.send_stream(ours).write(b"news"), Ok(4));
    let ours_bidi = engine.open_session_stream(quic, session, Dir::Bi).unwrap();
    duel.survives();
    while duel.quic().accept(Dir::Uni).is_some() {}
    while duel.quic().accept(Dir::Bi).is_some() {}
    assert_eq!(
        duel.read(ours).0,
        [&[0x40, 0x54, 0x00], &b"news"[..]].concat()
    );
    assert_eq!(duel.read(ours_bidi).0, [0x40, 0x41, 0x00]);

    duel.quic()
        .send_datagram(Bytes::from_static(b"\0ping"))
        .unwrap();
    duel.survives();
    let ping = duel.world.server.events.iter().any(
        |event| matches!(event, Event::Datagram { id, payload } if *id == session && payload == "ping"),
    );
    assert!(ping);
    let quic = duel.world.pair.server();
    duel.world
        .server
        .engine
        .send_datagram(quic, session, b"pong")
        .unwrap();
    duel.survives();
    assert_eq!(duel.quic().recv_datagram().unwrap(), &b"\0pong"[..]);
}

#[test]
fn streams_may_come_before_their_session() {
    let mut duel = ready();
    let uni = duel.uni(&[0x40, 0x54, 0x04]);
    let bidi_first = duel.bidi(&[0x40, 0x41, 0x04], false);
    duel.survives();
    assert_eq!(streams(&duel), []);
    assert_eq!(bidi_first.get(), 0);
    let session = session(&mut duel);
    assert_eq!(session.get(), 4);
    assert!(duel.run(|duel| streams(duel).len() == 2));
    assert!(streams(&duel).contains(&(session, uni, Dir::Uni)));
    assert!(streams(&duel).contains(&(session, bidi_first, Dir::Bi)));
}

#[test]
fn streams_without_a_session_are_refused() {
    let mut duel = ready();
    // Of a request that is no session.
    let plain = duel.bidi(&get(), false);
    assert!(duel.run(|duel| duel.world.server.messages.contains_key(&plain)));
    let uni = duel.uni(&[0x40, 0x54, 0x00]);
    assert_eq!(duel.stopped_with(uni), Code::WEBTRANSPORT_SESSION_GONE);
    // Of a session that is over.
    let session = session(&mut duel);
    duel.quic().send_stream(session).reset(0x10c).unwrap();
    assert!(duel.run(|duel| duel.world.server.messages[&session].reset.is_some()));
    let late = duel.bidi(&[0x40, 0x41, 0x04], false);
    assert_eq!(duel.stopped_with(late), Code::WEBTRANSPORT_SESSION_GONE);
    let quic = duel.world.pair.server();
    let engine = &mut duel.world.server.engine;
    for id in [plain, session] {
        let refused = engine.open_session_stream(quic, id, Dir::Uni);
        assert_eq!(refused, Err(SessionError::NoSession));
    }
}

#[test]
fn early_streams_and_sessions_are_limited() {
    let mut config = config();
    config.limits = Limits {
        max_early_session_streams: 3,
        ..Limits::default()
    };
    let mut duel = Duel::ready(Side::Server, config);
    let ids = [0; 5].map(|_| duel.uni(&[0x40, 0x54, 0x00]));
    let rejected = Code::WEBTRANSPORT_BUFFERED_STREAM_REJECTED;
    for id in &ids[3..] {
        assert_eq!(duel.stopped_with(*id), rejected);
    }
    let sessions = [0; 3].map(|_| duel.bidi(&request(), false));
    assert_eq!(duel.reset_with(sessions[2]), Code::REQUEST_REJECTED);
    assert_eq!(duel.world.server.heads, sessions[..2]);
    // One ends, and there is room again.
    duel.quic().send_stream(sessions[0]).reset(0x10c).unwrap();
    duel.survives();
    let next = duel.bidi(&request(), false);
    assert!(duel.run(|duel| duel.world.server.messages.contains_key(&next)));
}

#[test]
fn signals_in_wrong_places_close_the_connection() {
    // Within a request.
    let mut duel = Duel::ready(Side::Server, config());
    duel.bidi(&[&get(), &[0x40, 0x41, 0x00][..]].concat(), false);
    assert_eq!(duel.closed_with(), Code::FRAME_ERROR);
    // Of an invalid session.
    for number in 1..4 {
        let mut duel = ready();
        duel.uni(&[0x40, 0x54, number]);
        assert_eq!(duel.closed_with(), Code::ID_ERROR);
    }
}

#[test]
fn without_sessions_their_streams_mean_nothing() {
    let mut duel = Duel::ready(Side::Server, Config::default());
    let uni = duel.uni(&[0x40, 0x54, 0x00]);
    assert_eq!(duel.stopped_with(uni), Code::STREAM_CREATION_ERROR);
    // A frame of an unknown type, of length 2, then a request.
    let id = duel.bidi(&[&[0x40, 0x41, 0x02, 7, 7][..], &get()].concat(), true);
    assert!(duel.run(|duel| duel.world.server.messages.contains_key(&id)));
}

#[test]
fn codes_of_applications_are_mapped_around_reserved_ones() {
    for n in [0, 1, 0x1d, 0x1e, 0x1f, 1000, u32::MAX - 1, u32::MAX] {
        let code = stream_code(n);
        assert_ne!(code.0 % 0x1f, 0x21 % 0x1f, "{n}");
        assert_eq!(application_code(code), Some(n));
    }
    assert_eq!(stream_code(0).0, 0x52e4_a40f_a8db);
    assert_eq!(stream_code(u32::MAX).0, 0x52e5_ac98_3162);
    assert_eq!(application_code(Code(0x52e4_a40f_a8da)), None);
    assert_eq!(application_code(Code(0x52e5_ac98_3163)), None);
    assert_eq!(application_code(Code::NO_ERROR), None);
}

#[test]
fn sessions_end_with_a_code_and_a_reason() {
    let mut bytes = Vec::new();
    drain_session().encode(&mut bytes);
    close_session(77, "done").encode(&mut bytes);
    let mut data = Bytes::from(bytes);
    let mut reader = CapsuleReader::new(1028);
    assert_eq!(reader.next(&mut data), Some(drain_session()));
    let capsule = reader.next(&mut data).unwrap();
    assert_eq!(closed_session(&capsule), Some((77, "done".to_owned())));
    assert_eq!(closed_session(&drain_session()), None);
    // A reason that is too long is cut between characters.
    let long = close_session(1, &"\u{e9}".repeat(600));
    assert_eq!(closed_session(&long).unwrap().1, "\u{e9}".repeat(512));
    let mut wrong = close_session(1, "x");
    wrong.value = Bytes::from_static(&[0, 0, 0]);
    assert_eq!(closed_session(&wrong), None);
    wrong.value = Bytes::from_static(&[0, 0, 0, 1, 0xff]);
    assert_eq!(closed_session(&wrong), None);
}
