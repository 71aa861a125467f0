//! Priorities (RFC 9218).

use swiftwater_http::h3::{Config, Event, Priority};
use swiftwater_sim::Pair;
use swiftwater_units::StreamId;

use crate::support::{World, content, head, link};

/// Requests of 200 kB each with these Priority fields; the order in which they are complete.
fn order(fields: &[&str]) -> Vec<usize> {
    let mut world = World::new(Pair::builder().link(link(5, 20)));
    // No answer before all requests were received.
    let mut missing = fields.len();
    world.answer(move |server, pair, _| {
        missing -= 1;
        if missing == 0 {
            for id in server.heads.clone() {
                server.respond(
                    pair,
                    id,
                    &crate::support::response(200),
                    content(1, 200_000),
                );
            }
        }
    });
    world.connect();
    let ids: Vec<StreamId> = fields
        .iter()
        .map(|field| world.request(&head("GET", "/", &[("priority", field)]), None))
        .collect();
    assert!(world.settle(&ids));
    let place = |id: &StreamId| ids.iter().position(|each| each == id).unwrap();
    world.client.completed.iter().map(place).collect()
}

#[test]
fn urgent_responses_go_first() {
    assert_eq!(order(&["u=5", "u=1", "u=3", "u=0"]), [3, 1, 2, 0]);
    assert_eq!(order(&["", "", ""]), [0, 1, 2]);
    assert_eq!(order(&["u=7", "", "u=2"]), [2, 1, 0]);
}

#[test]
fn incremental_responses_share() {
    let mut world = World::new(Pair::builder().link(link(5, 20)));
    world.serve(|_| content(1, 400_000));
    world.connect();
    let ids = [0; 2].map(|_| world.request(&head("GET", "/", &[("priority", "i")]), None));
    assert!(world.run(|world| {
        ids.iter().any(|id| {
            world
                .client
                .messages
                .get(id)
                .is_some_and(|each| each.complete)
        })
    }));
    for id in ids {
        assert!(world.client.messages[&id].body.len() > 300_000);
    }
}

#[test]
fn a_client_changes_a_priority() {
    let mut world = World::new(Pair::builder().link(link(5, 20)));
    world.serve(|_| content(1, 500_000));
    world.connect();
    let ids = [0; 3].map(|_| world.get("/"));
    assert!(world.run(|world| {
        let first = world.client.messages.get(&ids[0]);
        first.is_some_and(|message| message.body.len() > 50_000)
    }));
    let now = world.pair.now();
    let quic = world.pair.client();
    let urgent = Priority {
        urgency: 0,
        incremental: false,
    };
    world
        .client
        .engine
        .set_priority(now, quic, ids[2], urgent)
        .unwrap();
    assert!(world.settle(&ids));
    assert_eq!(world.client.completed, [ids[2], ids[0], ids[1]]);
    let told = world.server.events.iter().any(
        |event| matches!(event, Event::Priority { id, priority } if *id == ids[2] && *priority == urgent),
    );
    assert!(told);
}

#[test]
fn the_server_has_the_last_word() {
    let mut world = World::with(Pair::builder(), Config::default(), Config::default());
    world.connect();
    let id = world.request(&head("GET", "/", &[("priority", "u=2, i")]), None);
    assert!(world.run(|world| world.server.messages.contains_key(&id)));
    let wished = Priority {
        urgency: 2,
        incremental: true,
    };
    assert_eq!(world.server.engine.priority(id), Some(wished));
    let now = world.pair.now();
    let ours = Priority {
        urgency: 6,
        incremental: false,
    };
    let quic = world.pair.server();
    world
        .server
        .engine
        .set_priority(now, quic, id, ours)
        .unwrap();
    let quic = world.pair.client();
    world
        .client
        .engine
        .set_priority(now, quic, id, wished)
        .unwrap();
    assert!(world.run(|world| world.server.engine.stats().priority_updates == 1));
    assert_eq!(world.server.engine.priority(id), Some(ours));
}

#[test]
fn priority_fields_are_read_as_structured_fields() {
    let of = |urgency, incremental| Priority {
        urgency,
        incremental,
    };
    let table = [
        ("", of(3, false)),
        ("u=0", of(0, false)),
        ("u=7, i", of(7, true)),
        ("i,u=1", of(1, true)),
        ("i=?1", of(3, true)),
        ("i=?0, u=4", of(4, false)),
        ("u=1;x=2, i;y", of(1, true)),
        ("u=1, u=5", of(5, false)),
        ("i, i=?0", of(3, false)),
        // Out of range, of another type, or nothing known.
        ("u=8", of(3, false)),
        ("u=-1", of(3, false)),
        ("u=1.5, i=1", of(3, false)),
        ("u=\"1\"", of(3, false)),
        ("x=\"a,u=1,i\"", of(3, false)),
        ("x=(1 2);u=1, u=2", of(2, false)),
        ("x=\"\\\",u=1\", u=2", of(2, false)),
        ("=,;,u", of(3, false)),
    ];
    for (field, expected) in table {
        assert_eq!(Priority::parse(field.as_bytes()), expected, "{field}");
    }
    for urgency in 0..8 {
        for incremental in [false, true] {
            let priority = of(urgency, incremental);
            assert_eq!(
                Priority::parse(priority.to_field_value().as_bytes()),
                priority
            );
        }
    }
}
