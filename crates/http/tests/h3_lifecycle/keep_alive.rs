//! Connections last as long as their requests, and no longer.

use std::time::Duration;

use swiftwater_quic::{Connection, ConnectionError};
use swiftwater_sim::{Direction, Pair, Verdict};
use swiftwater_units::Side;

use crate::support::{SIDES, World, content, link, millis, response};

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Connected, with the default idle timeout of 30 s.
fn world() -> World {
    let mut world = World::new(Pair::builder().link(link(10, 20)));
    world.connect();
    world
}

fn is_open(world: &World, side: Side) -> bool {
    let connection = world.pair.view(side);
    connection.is_some_and(|connection| !connection.is_closed())
}

fn reason(world: &World, side: Side) -> Option<ConnectionError> {
    world.pair.view(side)?.close_reason().cloned()
}

#[test]
fn an_answer_may_take_longer_than_the_idle_timeout() {
    let mut world = world();
    let id = world.get("/");
    world.run_for(secs(200));
    assert!(SIDES.iter().all(|&side| is_open(&world, side)));
    world.server.head(&mut world.pair, id, &response(200));
    let body = content(1, 1000);
    world.server.send(&mut world.pair, id, body.clone(), None);
    assert!(world.settle(&[id]));
    assert_eq!(world.client.messages[&id].body, body);

    // Nothing keeps it any more.
    let begun = world.pair.now();
    for side in SIDES {
        assert_eq!(world.run_to_close(side), None);
        assert_eq!(reason(&world, side), Some(ConnectionError::TimedOut));
    }
    let took = world.pair.now() - begun;
    assert!(took <= secs(31), "{took:?}");
}

#[test]
fn pings_are_few() {
    let mut world = world();
    world.get("/");
    world.run_for(secs(1));
    let before = SIDES.map(|side| world.pair.stats(side).datagrams_sent);
    world.run_for(secs(150));
    let after = SIDES.map(|side| world.pair.stats(side).datagrams_sent);
    // One exchange each 15 s.
    for (after, before) in after.into_iter().zip(before) {
        assert!((5..=30).contains(&(after - before)), "{}", after - before);
    }
}

#[test]
fn a_peer_that_is_gone_is_detected() {
    let mut world = world();
    world.get("/");
    world.run_for(secs(60));
    let died = world.pair.now();
    for direction in [Direction::ToServer, Direction::ToClient] {
        world.pair.tap(direction, |_| Verdict::Drop);
    }
    for side in SIDES {
        world.run_to_close(side);
        assert_eq!(reason(&world, side), Some(ConnectionError::TimedOut));
    }
    // The last PING that was answered, 15 s to the next, and the idle timeout.
    let took = world.pair.now() - died;
    assert!(took <= secs(46), "{took:?}");
}

#[test]
fn a_cancelled_request_keeps_no_connection_open() {
    let mut world = world();
    let id = world.get("/");
    world.run_for(millis(500));
    let now = world.pair.now();
    let quic: &mut Connection = world.pair.client();
    let code = swiftwater_http::h3::Code::REQUEST_CANCELLED;
    world.client.engine.cancel(now, quic, id, code);
    for side in SIDES {
        world.run_to_close(side);
        assert_eq!(reason(&world, side), Some(ConnectionError::TimedOut));
    }
    let took = world.pair.now() - now;
    assert!(took <= secs(32), "{took:?}");
}
