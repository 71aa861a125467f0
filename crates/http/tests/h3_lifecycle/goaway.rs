//! Graceful shutdown (RFC 9114, section 5.2).

use swiftwater_http::h3::frame::{FrameType, put_int_frame};
use swiftwater_http::h3::{Code, Config, Event, RequestError};
use swiftwater_quic::ConnectionError;
use swiftwater_sim::{Direction, Pair, Verdict};
use swiftwater_units::Side;

use crate::support::peer::{CONTROL, Duel, get};
use crate::support::{World, content, head, link, millis, response};

fn world() -> World {
    let mut world = World::new(Pair::builder().link(link(10, 20)));
    world.connect();
    world
}

fn goaways(events: &[Event]) -> Vec<u64> {
    let ids = events.iter().filter_map(|event| match event {
        Event::GoAway { id } => Some(*id),
        _ => None,
    });
    ids.collect()
}

#[test]
fn a_server_completes_what_it_took_and_closes() {
    let mut world = world();
    world.serve(|_| content(1, 500_000));
    let first = world.get("/1");
    assert!(world.run(|world| !world.server.heads.is_empty()));
    // Another is in transit when the server starts to shut down.
    let second = world.get("/2");
    let now = world.pair.now();
    let quic = world.pair.server();
    world.server.engine.shutdown(now, quic);
    world.server.engine.shutdown(now, quic);
    assert!(world.settle(&[first, second]));
    for id in [first, second] {
        assert_eq!(world.client.messages[&id].body, content(1, 500_000));
    }
    for side in [Side::Client, Side::Server] {
        assert_eq!(world.run_to_close(side), None);
    }
    let ids = goaways(&world.client.events);
    assert_eq!(ids, [(1 << 62) - 4, second.get() + 4]);
    let complete = |event: &Event| matches!(event, Event::ShutdownComplete);
    assert!(world.server.events.iter().any(complete));
    let Some(Event::Closed { reason }) = world.client.events.last() else {
        panic!("not closed");
    };
    let ConnectionError::PeerApplication { code, .. } = reason else {
        panic!("{reason}");
    };
    assert_eq!(Code(*code), Code::NO_ERROR);
}

#[test]
fn a_client_sends_no_request_after_goaway() {
    let mut world = world();
    world.answer(|server, pair, id| server.head(pair, id, &response(200)));
    let open = world.get("/");
    assert!(world.run(|world| world.client.messages.contains_key(&open)));
    let now = world.pair.now();
    let quic = world.pair.server();
    world.server.engine.shutdown(now, quic);
    assert!(world.run(|world| goaways(&world.client.events).len() == 2));
    let now = world.pair.now();
    let quic = world.pair.client();
    let refused = world
        .client
        .engine
        .send_request(now, quic, &head("GET", "/", &[]), true);
    assert_eq!(refused, Err(RequestError::GoingAway));
    // The one in progress lasts as long as it needs.
    world.run_for(millis(500));
    assert!(!world.pair.server().is_closed());
    world
        .server
        .send(&mut world.pair, open, content(1, 1000), None);
    assert!(world.settle(&[open]));
    assert_eq!(world.client.messages[&open].body, content(1, 1000));
    assert_eq!(world.run_to_close(Side::Client), None);
}

#[test]
fn requests_that_goaway_leaves_out_were_not_processed() {
    let mut duel = Duel::new(Side::Client, Config::default());
    let control = duel.uni(CONTROL);
    let ids = [0, 1, 2].map(|_| duel.world.get("/"));
    let mut goaway = Vec::new();
    put_int_frame(&mut goaway, FrameType::GoAway, ids[1].get());
    duel.write(control, &goaway);
    assert!(duel.run(|duel| {
        let messages = &duel.world.client.messages;
        ids[1..]
            .iter()
            .all(|id| messages.get(id).is_some_and(|each| each.reset.is_some()))
    }));
    for id in &ids[1..] {
        let reset = duel.world.client.messages[id].reset;
        assert_eq!(reset, Some((Code::REQUEST_REJECTED, true)));
    }
    assert!(!duel.world.client.messages.contains_key(&ids[0]));
    assert_eq!(duel.world.client.engine.open_requests(), 1);
}

#[test]
fn requests_after_the_last_are_rejected() {
    let mut duel = Duel::ready(Side::Server, Config::default());
    let first = duel.bidi(&get(), true);
    assert!(duel.run(|duel| !duel.world.server.heads.is_empty()));
    let now = duel.world.pair.now();
    let quic = duel.world.pair.server();
    duel.world.server.engine.shutdown(now, quic);
    for _ in 0..200 {
        duel.run(|_| true);
        duel.world.pair.advance(millis(1));
    }
    let late = duel.bidi(&get(), true);
    assert_eq!(duel.reset_with(late), Code::REQUEST_REJECTED);
    assert_eq!(duel.world.server.heads, [first]);
    assert_eq!(duel.world.server.engine.stats().requests_rejected, 1);
}

#[test]
fn a_client_goes_when_its_requests_are_done() {
    let mut world = world();
    world.serve(|_| content(1, 100_000));
    let id = world.get("/");
    let now = world.pair.now();
    let quic = world.pair.client();
    world.client.engine.shutdown(now, quic);
    let quic = world.pair.client();
    let refused = world
        .client
        .engine
        .send_request(now, quic, &head("GET", "/", &[]), true);
    assert_eq!(refused, Err(RequestError::GoingAway));
    assert!(world.settle(&[id]));
    assert_eq!(world.client.messages[&id].body, content(1, 100_000));
    for side in [Side::Client, Side::Server] {
        assert_eq!(world.run_to_close(side), None);
    }
    assert_eq!(goaways(&world.server.events), [0]);
}

#[test]
fn an_idle_server_goes_after_a_round_trip() {
    let mut world = world();
    let begun = world.pair.now();
    let quic = world.pair.server();
    world.server.engine.shutdown(begun, quic);
    assert_eq!(world.run_to_close(Side::Server), None);
    let took = world.pair.now().checked_since(begun).unwrap();
    // Links of 20 ms each way.
    assert!(took >= millis(40), "{took:?}");
    assert!(took < millis(400), "{took:?}");
}

#[test]
fn a_request_that_was_lost_meanwhile_is_known_to_be_unprocessed() {
    let mut world = world();
    let begun = world.pair.now();
    world.pair.tap(Direction::ToServer, move |datagram| {
        if datagram.now < begun + millis(60) {
            return Verdict::Drop;
        }
        Verdict::Pass
    });
    let quic = world.pair.server();
    world.server.engine.shutdown(begun, quic);
    let id = world.get("/");
    assert!(world.settle(&[id]));
    let reset = world.client.messages[&id].reset;
    assert_eq!(reset, Some((Code::REQUEST_REJECTED, true)));
    assert!(world.server.heads.is_empty());
    for side in [Side::Client, Side::Server] {
        assert_eq!(world.run_to_close(side), None);
    }
}
