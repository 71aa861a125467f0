//! Requests that either end cancels (RFC 9114, section 4.1.1).

use swiftwater_http::h3::{BodyError, Code, Config, Event, SendError};
use swiftwater_sim::Pair;
use swiftwater_units::Side;

use crate::support::peer::{CONTROL, Duel, get};
use crate::support::{World, content, head, link, millis, response};

fn world() -> World {
    let mut world = World::new(Pair::builder().link(link(10, 20)));
    world.connect();
    world
}

#[test]
fn a_client_cancels_while_the_answer_comes() {
    let mut world = world();
    world.serve(|_| content(1, 5_000_000));
    let id = world.get("/");
    assert!(world.run(|world| {
        let message = world.client.messages.get(&id);
        message.is_some_and(|message| message.body.len() > 100_000)
    }));
    let now = world.pair.now();
    let quic = world.pair.client();
    let engine = &mut world.client.engine;
    engine.cancel(now, quic, id, Code::REQUEST_CANCELLED);
    assert_eq!(engine.open_requests(), 0);
    let quic = world.pair.client();
    let read = world.client.engine.read_body(now, quic, id);
    assert_eq!(read, Err(BodyError::Closed));
    assert!(world.run(|world| world.server.engine.open_requests() == 0));
    // The request had been read to its end, so only the answer could be stopped.
    let message = &world.server.messages[&id];
    assert_eq!(message.stopped, Some(Code::REQUEST_CANCELLED));
    assert!(matches!(
        world.server.send_error(id),
        None | Some(SendError::Closed | SendError::Stopped(_))
    ));
    // The connection stays open.
    let next = world.get("/");
    assert!(world.settle(&[next]));
    assert_eq!(world.client.messages[&next].body, content(1, 5_000_000));
}

#[test]
fn a_client_cancels_an_upload() {
    let mut world = world();
    let id = world.request(&head("POST", "/", &[]), Some(content(1, 5_000_000)));
    assert!(world.run(|world| {
        let message = world.server.messages.get(&id);
        message.is_some_and(|message| message.body.len() > 100_000)
    }));
    let now = world.pair.now();
    let quic = world.pair.client();
    let engine = &mut world.client.engine;
    engine.cancel(now, quic, id, Code::REQUEST_CANCELLED);
    assert!(world.run(|world| world.server.engine.open_requests() == 0));
    let message = &world.server.messages[&id];
    assert!(!message.complete);
    assert_eq!(message.reset, Some((Code::REQUEST_CANCELLED, false)));
    assert!(content(1, 5_000_000).starts_with(&message.body));
}

#[test]
fn a_server_refuses_before_and_breaks_off_after_processing() {
    for (code, unprocessed) in [
        (Code::REQUEST_REJECTED, true),
        (Code::REQUEST_CANCELLED, false),
    ] {
        let mut world = world();
        world.answer(move |server, pair, id| {
            let now = pair.now();
            let quic = pair.server();
            server.engine.cancel(now, quic, id, code);
        });
        let id = world.request(&head("POST", "/", &[]), Some(content(1, 1_000_000)));
        assert!(world.settle(&[id]));
        let message = &world.client.messages[&id];
        assert!(message.response.is_none());
        // Whichever came first, the stop of the upload or the reset of the answer.
        assert_eq!(message.reset, Some((code, unprocessed)));
        assert_eq!(world.client.engine.open_requests(), 0);
    }
}

#[test]
fn a_server_that_needs_no_more_of_the_request_answers_all_the_same() {
    let mut world = world();
    world.server.lazy = true;
    world.answer(|server, pair, id| {
        server.respond(pair, id, &response(413), content(3, 50_000));
        let now = pair.now();
        let quic = pair.server();
        server.engine.stop(now, quic, id, Code::NO_ERROR);
    });
    let id = world.request(&head("PUT", "/", &[]), Some(content(1, 20_000_000)));
    assert!(world.settle(&[id]));
    let message = &world.client.messages[&id];
    assert_eq!(message.status(), Some(413));
    assert_eq!(message.body, content(3, 50_000));
    assert_eq!(message.stopped, Some(Code::NO_ERROR));
    assert_eq!(message.reset, None);
}

#[test]
fn each_half_can_be_cancelled_alone() {
    // The server resets its response, the upload continues to its end.
    let mut world = world();
    world.answer(|server, pair, id| {
        server.head(pair, id, &response(200));
        let now = pair.now();
        let quic = pair.server();
        server.engine.reset(now, quic, id, Code::INTERNAL_ERROR);
    });
    let id = world.request(&head("POST", "/", &[]), Some(content(1, 300)));
    assert!(world.settle(&[id]));
    let message = &world.client.messages[&id];
    assert_eq!(message.reset, Some((Code::INTERNAL_ERROR, false)));
    assert!(world.run(|world| world.server.engine.open_requests() == 0));
}

#[test]
fn an_answer_on_its_way_outlives_the_rest_of_the_request() {
    let builder = Pair::builder().link(link(2, 20));
    let mut duel = Duel::with(builder, Side::Server, Config::default());
    duel.uni(CONTROL);
    duel.world.serve(|_| content(1, 200_000));
    let id = duel.bidi(&get(), false);
    assert!(duel.run(|duel| !duel.world.server.heads.is_empty()));
    duel.quic()
        .send_stream(id)
        .reset(Code::REQUEST_CANCELLED.0)
        .unwrap();
    let mut answer = Vec::new();
    let mut end = None;
    assert!(duel.run(|duel| {
        let (data, ended) = duel.read(id);
        answer.extend(data);
        end = ended;
        end.is_some()
    }));
    assert_eq!(end, Some(Ok(())));
    // Without the headers of the DATA frames before.
    assert!(answer.ends_with(&content(1, 200_000)[199_000..]));
    assert!(answer.len() > 200_000);
    let reset = duel.world.server.messages[&id].reset;
    assert_eq!(reset, Some((Code::REQUEST_CANCELLED, false)));
    assert!(duel.run(|duel| duel.world.server.engine.open_requests() == 0));
}

#[test]
fn the_end_of_the_connection_ends_all() {
    let mut world = world();
    let id = world.request(&head("POST", "/", &[]), Some(content(1, 1_000_000)));
    world.run_for(millis(100));
    let now = world.pair.now();
    let quic = world.pair.server();
    let engine = &mut world.server.engine;
    engine.close(now, quic, Code::INTERNAL_ERROR, "gone");
    for side in [Side::Client, Side::Server] {
        assert_eq!(world.run_to_close(side), None);
        let side = world.side(side);
        assert!(matches!(side.events.last(), Some(Event::Closed { .. })));
        assert_eq!(side.engine.open_requests(), 0);
    }
    let now = world.pair.now();
    let quic = world.pair.client();
    let refused = world
        .client
        .engine
        .send_request(now, quic, &head("GET", "/", &[]), true);
    assert!(refused.is_err());
    let quic = world.pair.client();
    assert_eq!(world.client.engine.finish(quic, id), Err(SendError::Closed));
}
