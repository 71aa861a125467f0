//! The end of the connection arrives together with earlier data: the engine gets events of streams whose
//! connection is already closed. It reads the available data and returns.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use swiftwater_http::h3::frame::FrameType;
use swiftwater_http::h3::{BodyError, Config, Event};
use swiftwater_sim::{Direction, Verdict};
use swiftwater_units::{Dir, Side};

use crate::support::millis;
use crate::support::peer::{CONTROL, Duel, frame, get, headers};

/// Fails if `work` takes longer than any input may keep an engine busy. A loop without an end can't be
/// stopped, so the thread is left behind.
fn returns(what: &str, work: impl FnOnce() + Send + 'static) {
    let (done, waiting) = mpsc::channel();
    let thread = thread::spawn(move || {
        work();
        let _ = done.send(());
    });
    match waiting.recv_timeout(Duration::from_secs(20)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{what}: the engine never returns"),
        _ => thread.join().expect("it only asserts"),
    }
}

/// Who ends the connection, and how.
#[derive(Clone, Copy, Debug)]
enum End {
    PeerCloses,
    EngineCloses,
    IdleTimeout,
}

const ENDS: [End; 3] = [End::PeerCloses, End::EngineCloses, End::IdleTimeout];

fn sessions() -> Config {
    Config {
        webtransport_sessions: 1,
        ..Config::default()
    }
}

/// Carries out `end` while the engine sees nothing, then shows it all that happened at once. No request is left.
fn end_unseen(duel: &mut Duel, end: End) {
    end_unseen_but_kept(duel, end);
    let engine = !duel.raw;
    assert_eq!(duel.world.side(engine).engine.open_requests(), 0);
}

/// The same; what came of responses may not have been read yet.
fn end_unseen_but_kept(duel: &mut Duel, end: End) {
    let engine = !duel.raw;
    for _ in 0..100 {
        duel.world.pair.advance(millis(1));
    }
    let now = duel.world.pair.now();
    match end {
        End::PeerCloses => duel.quic().close(now, 0x100, b""),
        End::EngineCloses => {
            let quic = duel.world.pair.connection(engine).expect("a connection");
            quic.close(now, 0x100, b"");
        }
        End::IdleTimeout => {
            // While there are requests PINGs would keep the connection.
            for direction in [Direction::ToServer, Direction::ToClient] {
                duel.world.pair.tap(direction, |_| Verdict::Drop);
            }
            duel.world.pair.advance(Duration::from_secs(120));
        }
    }
    for _ in 0..200 {
        duel.world.pair.advance(millis(1));
    }
    duel.world.turn();
    let events = &duel.world.side(engine).events;
    assert!(
        matches!(events.last(), Some(Event::Closed { .. })),
        "{end:?}: {events:?}"
    );
}

/// Data received on a stream before the connection ends.
fn beginnings() -> Vec<Vec<u8>> {
    let head = get();
    vec![
        vec![0x01],
        head[..head.len() - 1].to_vec(),
        frame(FrameType::Unknown(0x21), b"what is not known is skipped"),
        // The signal of a WebTransport stream, without and with part of its session's number.
        vec![0x40],
        vec![0x40, 0x41],
        vec![0x40, 0x41, 0x40],
    ]
}

#[test]
fn a_server_survives_incomplete_requests_at_the_end_of_a_connection() {
    for end in ENDS {
        for (nth, bytes) in beginnings().into_iter().enumerate() {
            returns(&format!("{end:?}, beginning {nth}"), move || {
                let mut duel = Duel::ready(Side::Server, sessions());
                duel.bidi(&bytes, false);
                duel.bidi(&bytes, false);
                end_unseen(&mut duel, end);
            });
        }
    }
}

#[test]
fn a_server_survives_incomplete_streams_at_the_end_of_a_connection() {
    for end in ENDS {
        for bytes in [
            CONTROL,
            &[0x40],
            &[0x02],
            &[0x40, 0x54],
            &[0x40, 0x54, 0x40],
        ] {
            returns(&format!("{end:?}, {bytes:?}"), move || {
                let mut duel = Duel::new(Side::Server, sessions());
                duel.uni(bytes);
                end_unseen(&mut duel, end);
            });
        }
    }
}

#[test]
fn a_client_survives_incomplete_responses_at_the_end_of_a_connection() {
    let informational = headers(&[(":status", "103")]);
    let mut beginnings = beginnings();
    beginnings.push(informational.clone());
    beginnings.push([&informational[..], &informational[..1]].concat());
    for end in ENDS {
        for (nth, bytes) in beginnings.iter().cloned().enumerate() {
            returns(&format!("{end:?}, beginning {nth}"), move || {
                let mut duel = Duel::ready(Side::Client, sessions());
                duel.world.get("/");
                let mut id = None;
                assert!(duel.run(|duel| {
                    id = duel.quic().accept(Dir::Bi);
                    id.is_some()
                }));
                duel.write(id.expect("just seen"), &bytes);
                // A stream of the server's own, as of a WebTransport session.
                if let Some(id) = duel.quic().open(Dir::Bi) {
                    duel.write(id, &bytes);
                }
                end_unseen(&mut duel, end);
            });
        }
    }
}

#[test]
fn trailers_that_wait_for_the_table_are_not_waited_for_after_the_end_of_a_connection() {
    // The trailers are read before the end, or after it.
    for (end, lazy) in ENDS.into_iter().flat_map(|end| [(end, false), (end, true)]) {
        let mut duel = Duel::ready(Side::Client, Config::default());
        duel.world.client.lazy = lazy;
        let request = duel.world.get("/");
        let mut id = None;
        assert!(duel.run(|duel| {
            id = duel.quic().accept(Dir::Bi);
            id.is_some()
        }));
        let id = id.expect("just seen");
        // A section that needs the table's first entry, which is never received.
        let trailers = frame(FrameType::Headers, &[0x02, 0x00, 0x80]);
        let response = [headers(&[(":status", "200")]), trailers].concat();
        duel.write(id, &response);
        for _ in 0..50 {
            duel.world.turn();
            duel.world.pair.advance(millis(1));
        }
        let status = duel.world.client.messages[&request].status();
        assert_eq!(status, Some(200), "{end:?}");
        end_unseen_but_kept(&mut duel, end);
        duel.world.client.pull(&mut duel.world.pair, request);
        let error = &duel.world.client.messages[&request].error;
        assert!(error.is_some(), "{end:?}: a read waits forever");
        assert_eq!(duel.world.client.engine.open_requests(), 0);
    }
}

#[test]
fn the_end_of_a_connection_is_the_last_event_whatever_is_read_afterwards() {
    for end in ENDS {
        let mut duel = Duel::ready(Side::Client, Config::default());
        duel.world.client.lazy = true;
        let request = duel.world.get("/");
        let mut id = None;
        assert!(duel.run(|duel| {
            id = duel.quic().accept(Dir::Bi);
            id.is_some()
        }));
        // Trailers with a pseudo-header field: the message is malformed.
        let head = headers(&[(":status", "200")]);
        let response = [&head[..], &frame(FrameType::Data, b"x"), &head[..]].concat();
        duel.write(id.expect("just seen"), &response);
        end_unseen_but_kept(&mut duel, end);
        duel.world.client.pull(&mut duel.world.pair, request);
        let error = duel.world.client.messages[&request].error.clone();
        assert!(
            matches!(error, Some(BodyError::Fault(_))),
            "{end:?}: {error:?}"
        );
        duel.world.turn();
        let events = &duel.world.client.events;
        assert!(
            matches!(events.last(), Some(Event::Closed { .. })),
            "{end:?}: {events:?}"
        );
    }
}

#[test]
fn a_response_is_discarded_once_its_reader_has_the_peers_error() {
    let mut duel = Duel::ready(Side::Client, Config::default());
    let request = duel.world.get("/");
    let mut id = None;
    assert!(duel.run(|duel| {
        id = duel.quic().accept(Dir::Bi);
        id.is_some()
    }));
    duel.write(id.expect("just seen"), &headers(&[(":status", "200")]));
    assert!(duel.run(|duel| {
        let message = duel.world.client.messages.get(&request);
        message.is_some_and(|message| message.status().is_some())
    }));
    // Servers open no bidirectional streams.
    duel.bidi(&get(), false);
    duel.world.run_to_close(Side::Client);
    duel.world.client.pull(&mut duel.world.pair, request);
    let error = duel.world.client.messages[&request].error.clone();
    assert!(matches!(error, Some(BodyError::Fault(_))), "{error:?}");
    assert_eq!(duel.world.client.engine.open_requests(), 0);
}

#[test]
fn a_response_that_came_whole_with_the_end_of_the_connection_is_read() {
    let mut duel = Duel::ready(Side::Client, Config::default());
    let request = duel.world.get("/");
    let mut id = None;
    assert!(duel.run(|duel| {
        id = duel.quic().accept(Dir::Bi);
        id.is_some()
    }));
    let id = id.expect("just seen");
    let response = [
        headers(&[(":status", "200")]),
        frame(FrameType::Data, b"all of it"),
    ]
    .concat();
    duel.write(id, &response);
    duel.quic()
        .send_stream(id)
        .finish()
        .expect("an open stream");
    end_unseen(&mut duel, End::PeerCloses);
    let message = &duel.world.client.messages[&request];
    assert_eq!(message.status(), Some(200));
    assert_eq!(message.body, b"all of it");
}
