//! Content that arrives with its head, up to the end, and is reported with it.

use swiftwater_http::h3::frame::FrameType;
use swiftwater_http::h3::{BodyError, Code, Config, Event};
use swiftwater_sim::Pair;
use swiftwater_units::Side;

use crate::support::peer::{Duel, frame, headers};
use crate::support::{World, content, head, millis};

/// A server's engine that reads nothing by itself.
fn duel() -> Duel {
    let mut duel = Duel::ready(Side::Server, Config::default());
    duel.world.server.lazy = true;
    duel
}

/// The head of a POST request with these fields beside the pseudo-headers.
fn post(fields: &[(&str, &str)]) -> Vec<u8> {
    let pseudo = [
        (":method", "POST"),
        (":scheme", "https"),
        (":authority", "example.org"),
        (":path", "/"),
    ];
    headers(&[&pseudo[..], fields].concat())
}

/// What the engine reports of the only request: content, and whether that is all.
fn reported(duel: &mut Duel) -> Option<(Vec<u8>, bool)> {
    let mut found = None;
    duel.run(|duel| {
        let events = &duel.world.server.events;
        found = events.iter().find_map(|event| match event {
            Event::Request { content, end, .. } => Some((content.to_vec(), *end)),
            _ => None,
        });
        found.is_some() || duel.world.pair.now().as_nanos() > 1_000_000_000
    });
    found
}

fn data(len: usize) -> Vec<u8> {
    frame(FrameType::Data, &content(1, len))
}

#[test]
fn short_content_comes_with_its_head() {
    // As much as fits into one packet with the head.
    for len in [1, 100, 1000] {
        let mut duel = duel();
        let id = duel.bidi(&[post(&[]), data(len)].concat(), true);
        assert_eq!(reported(&mut duel), Some((content(1, len), true)));
        assert!(duel.world.server.messages[&id].complete);
        let stats = duel.world.server.engine.stats();
        assert_eq!(stats.content_received, len as u64);
    }
}

#[test]
fn what_is_not_short_and_whole_is_read_by_the_application() {
    let trailers = headers(&[("x-checksum", "1")]);
    let unknown = frame(FrameType::Unknown(0x21), b"grease");
    for (rest, fin) in [
        // Not ended, in two frames, with trailers, behind a frame of a reserved type.
        (data(100), false),
        ([data(50), data(50)].concat(), true),
        ([data(100), trailers].concat(), true),
        ([unknown, data(100)].concat(), true),
    ] {
        let mut duel = duel();
        duel.bidi(&[post(&[]), rest].concat(), fin);
        assert_eq!(reported(&mut duel), Some((Vec::new(), false)));
        let received = duel.world.server.engine.stats().content_received;
        assert_eq!(received, 0);
    }
}

#[test]
fn content_of_another_length_than_declared_is_malformed_all_the_same() {
    for declared in ["99", "101"] {
        let mut duel = duel();
        let head = post(&[("content-length", declared)]);
        let id = duel.bidi(&[head, data(100)].concat(), true);
        assert_eq!(reported(&mut duel), Some((Vec::new(), false)));
        duel.world.server.pull(&mut duel.world.pair, id);
        let error = duel.world.server.messages[&id].error.clone();
        let Some(BodyError::Fault(fault)) = error else {
            panic!("{error:?}");
        };
        assert_eq!(fault.code, Code::MESSAGE_ERROR);
    }
}

#[test]
fn a_frame_that_ends_beyond_the_stream_is_an_error() {
    let mut duel = duel();
    let mut cut = data(100);
    cut.pop();
    let id = duel.bidi(&[post(&[]), cut].concat(), true);
    assert_eq!(reported(&mut duel), Some((Vec::new(), false)));
    duel.world.server.pull(&mut duel.world.pair, id);
    assert_eq!(duel.closed_with(), Code::FRAME_ERROR);
}

#[test]
fn what_a_connect_carries_stays_unread() {
    let mut duel = duel();
    let head = headers(&[(":method", "CONNECT"), (":authority", "example.org:443")]);
    duel.bidi(&[head, data(100)].concat(), true);
    assert_eq!(reported(&mut duel), Some((Vec::new(), false)));
}

#[test]
fn both_directions_end_without_a_read() {
    let mut world = World::new(Pair::builder());
    world.serve(|_| content(2, 1000));
    world.client.lazy = true;
    world.server.lazy = true;
    world.connect();
    // One after the other: each is in a packet of its own.
    for _ in 0..5 {
        let id = world.request(&head("POST", "/", &[]), Some(content(1, 100)));
        world.run_for(millis(500));
        let (sent, received) = (&world.server.messages[&id], &world.client.messages[&id]);
        assert!(sent.complete && received.complete);
        assert_eq!(sent.body, content(1, 100));
        assert_eq!(received.body, content(2, 1000));
    }
    // Nothing is kept of them.
    assert_eq!(world.client.engine.open_requests(), 0);
    assert_eq!(world.server.engine.open_requests(), 0);
    for side in [Side::Client, Side::Server] {
        assert_eq!(world.pair.stats(side).receive_buffered.get(), 0);
    }
}
