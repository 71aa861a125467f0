//! WebTransport sessions from the client's end (draft-ietf-webtrans-http3).

use http::request;
use swiftwater_http::h3::frame::FrameType;
use swiftwater_http::h3::{Code, Config, ConnectProtocol, Event, RequestError, SessionError};
use swiftwater_quic::ReadOutcome;
use swiftwater_sim::Pair;
use swiftwater_units::{Dir, Side, StreamId};

use crate::support::peer::{CONTROL, Duel, frame};
use crate::support::{World, head, response};

fn config(sessions: u64) -> Config {
    Config {
        webtransport_sessions: sessions,
        ..Config::default()
    }
}

fn connect() -> request::Parts {
    let mut head = head("CONNECT", "/chat", &[]);
    let protocol = ConnectProtocol::new("webtransport").unwrap();
    head.extensions.insert(protocol);
    head
}

fn ask(world: &mut World) -> Result<StreamId, RequestError> {
    let now = world.pair.now();
    let quic = world.pair.client();
    let engine = &mut world.client.engine;
    engine.send_request(now, quic, &connect(), false)
}

fn is_told(events: &[Event], wanted: (StreamId, StreamId)) -> bool {
    events.iter().any(|event| {
        matches!(event, Event::SessionStream { session, id, .. } if (*session, *id) == wanted)
    })
}

#[test]
fn streams_of_both_ends_belong_to_the_session() {
    let mut world = World::with(Pair::builder(), config(1), config(1));
    world.answer(|server, pair, id| server.head(pair, id, &response(200)));
    world.connect();
    let session = ask(&mut world).unwrap();
    assert!(world.run(|world| {
        let message = world.client.messages.get(&session);
        message.is_some_and(|message| message.status() == Some(200))
    }));
    for side in [Side::Client, Side::Server] {
        for dir in [Dir::Bi, Dir::Uni] {
            let (quic, host) = match side {
                Side::Client => (world.pair.client(), &mut world.client),
                Side::Server => (world.pair.server(), &mut world.server),
            };
            let id = host.engine.open_session_stream(quic, session, dir).unwrap();
            assert_eq!(quic.send_stream(id).write(b"hello"), Ok(5));
            assert!(world.run(|world| is_told(&world.side(!side).events, (session, id))));
            let quic = world.pair.connection(!side).unwrap();
            let mut buffer = [0; 10];
            let read = quic.recv_stream(id).read(&mut buffer);
            assert_eq!(read, Ok(ReadOutcome::Data(5)));
            assert_eq!(&buffer[..5], b"hello");
        }
    }
}

#[test]
fn a_client_keeps_to_the_servers_number_of_sessions() {
    let mut world = World::with(Pair::builder(), config(1), config(2));
    world.answer(|server, pair, id| server.head(pair, id, &response(200)));
    assert_eq!(
        ask(&mut world),
        Err(RequestError::NotReady),
        "before the handshake"
    );
    world.connect();
    let first = ask(&mut world).unwrap();
    ask(&mut world).unwrap();
    assert_eq!(ask(&mut world), Err(RequestError::TooManySessions));
    // One ends, and there is room again.
    let (now, quic) = (world.pair.now(), world.pair.client());
    let engine = &mut world.client.engine;
    engine.cancel(now, quic, first, Code::REQUEST_CANCELLED);
    let dead = engine.open_session_stream(quic, first, Dir::Uni);
    assert_eq!(dead, Err(SessionError::NoSession));
    ask(&mut world).unwrap();
}

#[test]
fn without_an_offer_there_are_no_sessions() {
    for (client, server) in [(0, 1), (1, 0)] {
        let mut world = World::with(Pair::builder(), config(client), config(server));
        world.connect();
        assert_eq!(ask(&mut world), Err(RequestError::WebTransportUnsupported));
    }
}

#[test]
fn a_server_opens_streams_of_sessions_only() {
    // A stream that starts like a request.
    let mut duel = Duel::new(Side::Client, config(1));
    duel.uni(CONTROL);
    duel.bidi(&frame(FrameType::Data, b"x"), false);
    assert_eq!(duel.closed_with(), Code::STREAM_CREATION_ERROR);
    // One without data is harmless; one of a session that the client has not requested is rejected.
    let mut duel = Duel::new(Side::Client, config(1));
    duel.uni(CONTROL);
    duel.bidi(&[], true);
    let stray = duel.bidi(&[0x40, 0x41, 0x00], false);
    assert_eq!(duel.stopped_with(stray), Code::WEBTRANSPORT_SESSION_GONE);
    let stray = duel.uni(&[0x40, 0x54, 0x00]);
    assert_eq!(duel.stopped_with(stray), Code::WEBTRANSPORT_SESSION_GONE);
    // A client without WebTransport does not accept such streams.
    let mut duel = Duel::new(Side::Client, Config::default());
    duel.uni(CONTROL);
    duel.bidi(&[0x40, 0x41, 0x00], false);
    assert_eq!(duel.closed_with(), Code::STREAM_CREATION_ERROR);
}
