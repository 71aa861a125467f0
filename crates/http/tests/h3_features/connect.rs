//! Tunnels and extended CONNECT (RFC 9114, section 4.4; RFC 9220), datagrams and capsules (RFC 9297).

use bytes::Bytes;
use http::request;
use swiftwater_http::h3::capsule::{Capsule, CapsuleReader};
use swiftwater_http::h3::{
    Code, Config, ConnectProtocol, DatagramError, Event, HeadError, RequestError,
};
use swiftwater_quic::{DatagramFate, DatagramOptions};
use swiftwater_sim::Pair;
use swiftwater_units::{Side, StreamId};

use crate::support::peer::{CONTROL, Duel, get};
use crate::support::{World, content, head, millis, response};

fn connect(protocol: &str) -> request::Parts {
    let mut head = head("CONNECT", "/chat?room=1", &[("sec-version", "13")]);
    head.extensions
        .insert(ConnectProtocol::new(protocol).unwrap());
    head
}

/// A tunnel that both ends hold open.
fn tunnel(world: &mut World, head: &request::Parts) -> StreamId {
    world.answer(|server, pair, id| server.head(pair, id, &response(200)));
    let now = world.pair.now();
    let quic = world.pair.client();
    let id = world
        .client
        .engine
        .send_request(now, quic, head, false)
        .unwrap();
    assert!(world.run(|world| {
        let message = world.client.messages.get(&id);
        message.is_some_and(|message| message.status() == Some(200))
    }));
    id
}

fn world() -> World {
    let mut world = World::new(Pair::builder());
    world.connect();
    world
}

fn datagrams(events: &[Event], wanted: StreamId) -> Vec<Bytes> {
    let of = events.iter().filter_map(|event| match event {
        Event::Datagram { id, payload } if *id == wanted => Some(payload.clone()),
        _ => None,
    });
    of.collect()
}

#[test]
fn an_extended_connect_names_its_protocol() {
    for protocol in ["websocket", "connect-udp", "x-anything"] {
        let mut world = world();
        let id = tunnel(&mut world, &connect(protocol));
        let request = world.server.messages[&id].request.as_ref().unwrap();
        assert_eq!(request.method, "CONNECT");
        assert_eq!(request.uri, "https://example.org/chat?room=1");
        assert_eq!(request.headers["sec-version"], "13");
        let named = request.extensions.get::<ConnectProtocol>().unwrap();
        assert_eq!(named.as_str(), protocol);
        // Both ways at once, then one after the other ends.
        world
            .client
            .send(&mut world.pair, id, content(1, 100_000), None);
        world
            .server
            .send(&mut world.pair, id, content(2, 100_000), None);
        assert!(world.settle(&[id]));
        assert!(world.run(|world| world.server.messages[&id].complete));
        assert_eq!(world.server.messages[&id].body, content(1, 100_000));
        assert_eq!(world.client.messages[&id].body, content(2, 100_000));
    }
}

#[test]
fn a_tunnel_has_an_authority_only() {
    let mut world = world();
    let mut head = head("CONNECT", "", &[]);
    head.uri = "example.org:443".parse().unwrap();
    let id = tunnel(&mut world, &head);
    let request = world.server.messages[&id].request.as_ref().unwrap();
    assert_eq!(request.uri, "example.org:443");
    assert!(request.extensions.get::<ConnectProtocol>().is_none());
}

#[test]
fn extended_connect_needs_the_servers_setting() {
    let without = Config {
        enable_connect_protocol: false,
        ..Config::default()
    };
    let mut world = World::with(Pair::builder(), Config::default(), without);
    world.connect();
    let now = world.pair.now();
    let quic = world.pair.client();
    let engine = &mut world.client.engine;
    let refused = engine.send_request(now, quic, &connect("websocket"), false);
    assert_eq!(refused, Err(RequestError::ConnectProtocolUnsupported));
    let mut get = head("GET", "/", &[]);
    get.extensions
        .insert(ConnectProtocol::new("websocket").unwrap());
    let mut world = self::world();
    let quic = world.pair.client();
    let refused = world.client.engine.send_request(now, quic, &get, false);
    let expected = HeadError::ProtocolWithoutConnect;
    assert_eq!(refused, Err(RequestError::Head(expected)));
    assert_eq!(ConnectProtocol::new("web socket"), None);
}

#[test]
fn datagrams_belong_to_their_request() {
    let mut world = world();
    let ids = [0; 2].map(|_| tunnel(&mut world, &connect("connect-udp")));
    for round in 0..10_u8 {
        for (nth, id) in ids.iter().enumerate() {
            let payload = [nth as u8, round];
            let quic = world.pair.client();
            world
                .client
                .engine
                .send_datagram(quic, *id, &payload)
                .unwrap();
            let quic = world.pair.server();
            world
                .server
                .engine
                .send_datagram(quic, *id, &payload)
                .unwrap();
        }
    }
    world.run_for(millis(100));
    for side in [Side::Client, Side::Server] {
        let side = world.side(side);
        for (nth, id) in ids.iter().enumerate() {
            let expected: Vec<_> = (0..10).map(|round| vec![nth as u8, round]).collect();
            assert_eq!(datagrams(&side.events, *id), expected);
        }
        assert_eq!(side.engine.stats().datagrams_received, 20);
    }
}

#[test]
fn the_fates_of_datagrams_are_reported_by_request_and_key() {
    let mut world = world();
    let ids = [0; 2].map(|_| tunnel(&mut world, &connect("connect-udp")));
    let now = world.pair.now();
    let quic = world.pair.client();
    let engine = &mut world.client.engine;
    let of = |key| DatagramOptions::default().with_key(key);
    // Requests may use the same keys; datagrams without one have no fate.
    for id in ids {
        engine.send_datagram_with(quic, id, b"x", of(7)).unwrap();
        engine.send_datagram(quic, id, b"x").unwrap();
    }
    let late = of(8).with_deadline(now);
    engine.send_datagram_with(quic, ids[1], b"x", late).unwrap();
    let too_large = vec![0; 100_000];
    let refused = engine.send_datagram_with(quic, ids[0], &too_large, of(9));
    assert!(matches!(refused, Err(DatagramError::Transport(_))));
    world.run_for(millis(200));
    let mut fates: Vec<_> = (world.client.events.iter())
        .filter_map(|event| match *event {
            Event::DatagramFate { id, key, fate } => Some((id, key, fate)),
            _ => None,
        })
        .collect();
    fates.sort_by_key(|(id, key, _)| (*id, *key));
    let acknowledged = DatagramFate::Acknowledged;
    let expected = [
        (ids[0], 7, acknowledged),
        (ids[1], 7, acknowledged),
        (ids[1], 8, DatagramFate::Expired),
    ];
    assert_eq!(fates, expected);
    assert_eq!(datagrams(&world.server.events, ids[0]).len(), 2);
    assert_eq!(datagrams(&world.server.events, ids[1]).len(), 2);
}

#[test]
fn the_largest_datagram_fits_and_one_more_byte_does_not() {
    let mut world = world();
    let id = tunnel(&mut world, &connect("connect-udp"));
    let quic = world.pair.client();
    let max = world.client.engine.max_datagram_size(quic, id).unwrap();
    let engine = &mut world.client.engine;
    engine.send_datagram(quic, id, &vec![7; max]).unwrap();
    let refused = engine.send_datagram(quic, id, &vec![7; max + 1]);
    assert!(matches!(refused, Err(DatagramError::Transport(_))));
    world.run_for(millis(100));
    assert_eq!(datagrams(&world.server.events, id), [vec![7; max]]);
}

#[test]
fn datagrams_need_both_ends_and_an_open_request() {
    let without = Config {
        datagrams: false,
        ..Config::default()
    };
    for (client, server) in [(without, Config::default()), (Config::default(), without)] {
        let mut world = World::with(Pair::builder(), client, server);
        world.connect();
        let id = tunnel(&mut world, &connect("connect-udp"));
        for side in [Side::Client, Side::Server] {
            let quic = world.pair.connection(side).unwrap();
            let engine = match side {
                Side::Client => &mut world.client.engine,
                Side::Server => &mut world.server.engine,
            };
            let refused = engine.send_datagram(quic, id, b"x");
            assert_eq!(refused, Err(DatagramError::NotNegotiated));
        }
    }
    let mut world = world();
    let id = tunnel(&mut world, &connect("connect-udp"));
    let quic = world.pair.client();
    world.client.engine.finish(quic, id).unwrap();
    let refused = world.client.engine.send_datagram(quic, id, b"x");
    assert_eq!(refused, Err(DatagramError::Closed));
}

#[test]
fn datagrams_that_can_belong_to_nothing_close_the_connection() {
    let beyond = (0xd000_0000_0000_0000_u64).to_be_bytes();
    for payload in [&b""[..], &[0x40], &beyond] {
        let mut duel = Duel::ready(Side::Server, Config::default());
        duel.quic()
            .send_datagram(Bytes::copy_from_slice(payload))
            .unwrap();
        assert_eq!(duel.closed_with(), Code::DATAGRAM_ERROR, "{payload:x?}");
    }
}

#[test]
fn datagrams_may_come_before_their_request() {
    let mut duel = Duel::new(Side::Server, Config::default());
    duel.uni(CONTROL);
    for nth in 0..3 {
        duel.quic().send_datagram(vec![0, nth].into()).unwrap();
    }
    duel.survives();
    let id = duel.bidi(&get(), false);
    assert!(duel.run(|duel| duel.world.server.messages.contains_key(&id)));
    let came = datagrams(&duel.world.server.events, id);
    assert_eq!(came, [vec![0], vec![1], vec![2]]);
    // Of a request that is over they are dropped.
    duel.quic().send_stream(id).reset(0x10c).unwrap();
    duel.survives();
    duel.quic().send_datagram(vec![0, 9].into()).unwrap();
    duel.survives();
    assert_eq!(duel.world.server.engine.stats().datagrams_dropped, 1);
}

#[test]
fn capsules_pass_through_a_tunnel() {
    let mut world = world();
    let id = tunnel(&mut world, &connect("connect-udp"));
    let mut stream = Vec::new();
    let capsules = [
        Capsule::datagram(content(1, 1000).into()),
        Capsule {
            capsule_type: 0x1234_5678,
            value: Bytes::new(),
        },
        Capsule::datagram(Bytes::new()),
    ];
    for capsule in &capsules {
        capsule.encode(&mut stream);
    }
    world.client.send(&mut world.pair, id, stream, None);
    assert!(world.run(|world| world.server.messages[&id].complete));
    let mut data = Bytes::from(world.server.messages[&id].body.clone());
    let mut reader = CapsuleReader::new(2000);
    for capsule in capsules {
        assert_eq!(reader.next(&mut data), Some(capsule));
    }
    assert_eq!(reader.next(&mut data), None);
    assert_eq!(reader.finish(), Ok(()));
}
