//! Requests and responses from end to end (RFC 9114, section 4).

use crate::support;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use swiftwater_http::h3::{Config, Event, HeadError, RequestError, SendError};
use swiftwater_sim::Pair;
use swiftwater_units::{ByteCount, Side};

use support::{World, content, link, millis, response};

#[test]
fn a_request_is_answered() {
    let mut world = World::new(Pair::builder().link(link(10, 20)));
    world.serve(|path| path.as_bytes().to_vec());
    world.connect();
    let id = world.get("/index.html?x=1");
    assert!(world.settle(&[id]));
    let request = world.server.messages[&id].request.as_ref().unwrap();
    assert_eq!(request.uri, "https://example.org/index.html?x=1");
    assert_eq!(request.method, "GET");
    assert_eq!(request.version, http::Version::HTTP_3);
    let answer = &world.client.messages[&id];
    assert_eq!(answer.status(), Some(200));
    assert_eq!(answer.body, b"/index.html");
}

#[test]
fn content_goes_both_ways_over_lossy_links() {
    for seed in 1..4 {
        let lossy = link(20, 15).loss(swiftwater_link::LossModel::Bernoulli(0.03));
        let mut world = World::new(Pair::builder().seed(seed).link(lossy));
        world.serve(|_| content(2, 700_000));
        world.connect();
        let id = world.request(
            &support::head("POST", "/up", &[]),
            Some(content(1, 300_000)),
        );
        assert!(world.settle(&[id]));
        assert!(world.run(|world| world.server.messages[&id].complete));
        assert_eq!(world.server.messages[&id].body, content(1, 300_000));
        assert_eq!(world.client.messages[&id].body, content(2, 700_000));
    }
}

#[test]
fn a_thousand_requests_at_once() {
    let builder = Pair::builder()
        .link(link(50, 10))
        .server_config(|config| config.max_concurrent_bidi_streams = 1000);
    let mut world = World::new(builder);
    world.serve(|path| content(path.len(), path[1..].parse().unwrap()));
    world.connect();
    let ids: Vec<_> = (0..1000)
        .map(|nth| world.get(&format!("/{}", nth * 7)))
        .collect();
    assert!(world.settle(&ids));
    for (nth, id) in ids.iter().enumerate() {
        let path = format!("/{}", nth * 7);
        assert_eq!(world.client.messages[id].body, content(path.len(), nth * 7));
    }
    assert!(world.run(|world| world.server.engine.open_requests() == 0));
    assert_eq!(world.client.engine.open_requests(), 0);
    assert_eq!(world.client.engine.stats().responses, 1000);
}

#[test]
fn requests_wait_for_the_servers_permission() {
    let builder = Pair::builder().server_config(|config| config.max_concurrent_bidi_streams = 3);
    let mut world = World::new(builder);
    world.serve(|_| vec![7; 10]);
    world.connect();
    let ids: Vec<_> = (0..3).map(|_| world.get("/")).collect();
    let now = world.pair.now();
    let quic = world.pair.client();
    let refused = world
        .client
        .engine
        .send_request(now, quic, &support::get("/"), true);
    assert_eq!(refused, Err(RequestError::Blocked));
    assert!(world.settle(&ids));
    let available = |event: &Event| matches!(event, Event::RequestsAvailable);
    assert!(world.run(|world| world.client.events.iter().any(available)));
    let id = world.get("/");
    assert!(world.settle(&[id]));
}

fn trailers() -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("x-checksum", "12 34".parse().unwrap());
    trailers.append("x-checksum", "56".parse().unwrap());
    trailers
}

#[test]
fn trailers_follow_content() {
    for len in [0, 1, 100_000] {
        let mut world = World::new(Pair::builder().link(link(10, 20)));
        world.answer(move |server, pair, id| {
            server.head(pair, id, &response(200));
            server.send(pair, id, content(1, len), Some(trailers()));
        });
        world.connect();
        let id = world.request(&support::head("GET", "/", &[("te", "trailers")]), None);
        assert!(world.settle(&[id]));
        let message = &world.client.messages[&id];
        assert_eq!(message.body, content(1, len));
        assert_eq!(message.trailers, Some(trailers()));
        let request = world.server.messages[&id].request.as_ref().unwrap();
        assert_eq!(request.headers["te"], "trailers");
    }
}

#[test]
fn requests_have_trailers_too() {
    let mut world = World::new(Pair::builder());
    world.serve(|_| Vec::new());
    world.connect();
    let id = world.request(&support::head("POST", "/", &[]), Some(Vec::new()));
    assert!(world.settle(&[id]));
    let now = world.pair.now();
    let quic = world.pair.client();
    let head = support::head("POST", "/", &[]);
    let id = world
        .client
        .engine
        .send_request(now, quic, &head, false)
        .unwrap();
    world
        .client
        .send(&mut world.pair, id, content(1, 5000), Some(trailers()));
    assert!(world.settle(&[id]));
    assert!(world.run(|world| world.server.messages[&id].complete));
    assert_eq!(world.server.messages[&id].trailers, Some(trailers()));
    assert_eq!(world.server.messages[&id].body, content(1, 5000));
}

#[test]
fn informational_responses_go_first() {
    let mut world = World::new(Pair::builder());
    world.answer(|server, pair, id| {
        for status in [100, 103, 103] {
            server.head(pair, id, &response(status));
        }
        server.respond(pair, id, &response(200), "done");
    });
    world.connect();
    let id = world.get("/");
    assert!(world.settle(&[id]));
    let message = &world.client.messages[&id];
    let expected = [100, 103, 103].map(|code| StatusCode::from_u16(code).unwrap());
    assert_eq!(message.informational, expected);
    assert_eq!(message.status(), Some(200));
    assert_eq!(message.body, b"done");
}

#[test]
fn an_answer_to_head_has_a_length_and_no_content() {
    let mut world = World::new(Pair::builder());
    world.answer(|server, pair, id| {
        let mut head = response(200);
        head.headers.insert("content-length", 1234.into());
        server.respond(pair, id, &head, Bytes::new());
    });
    world.connect();
    let id = world.request(&support::head("HEAD", "/", &[]), None);
    assert!(world.settle(&[id]));
    let message = &world.client.messages[&id];
    assert_eq!(
        message.response.as_ref().unwrap().headers["content-length"],
        "1234"
    );
    assert!(message.complete);
    assert!(message.body.is_empty());
}

#[test]
fn fields_arrive_as_they_were_but_for_those_of_http1() {
    let mut world = World::new(Pair::builder());
    world.serve(|_| Vec::new());
    world.connect();
    let kept = [
        ("accept", "*/*"),
        ("authorization", "Basic c2VjcmV0"),
        ("cookie", "a=1; session=0123456789abcdef0123; b=2"),
        ("x-list", "1"),
        ("x-list", "2"),
        ("x-empty", ""),
        ("te", "trailers"),
    ];
    let dropped = [
        ("connection", "close, x-hop"),
        ("keep-alive", "timeout=5"),
        ("proxy-connection", "close"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "h2c"),
        ("x-hop", "1"),
        ("te", "gzip"),
    ];
    let all = [&kept[..], &dropped[..]].concat();
    // Twice, so that the second uses what the first put into the table.
    for _ in 0..2 {
        let id = world.request(&support::head("GET", "/a?b", &all), None);
        assert!(world.settle(&[id]));
        let headers = &world.server.messages[&id].request.as_ref().unwrap().headers;
        let mut expected = HeaderMap::new();
        for (name, value) in kept {
            expected.append(name, value.parse().unwrap());
        }
        assert_eq!(headers, &expected);
    }
}

#[test]
fn the_authority_is_the_host_fields_if_there_is_one() {
    let mut world = World::new(Pair::builder());
    world.serve(|_| Vec::new());
    world.connect();
    let with_host = support::head("GET", "/x", &[("host", "other.example:8443")]);
    let mut relative = with_host.clone();
    relative.uri = "/x".parse().unwrap();
    let mut with_user = support::get("/x");
    with_user.uri = "https://user:pass@other.example:8443/x".parse().unwrap();
    for head in [with_host, relative, with_user] {
        let id = world.request(&head, None);
        assert!(world.settle(&[id]));
        let request = world.server.messages[&id].request.as_ref().unwrap();
        assert_eq!(request.uri, "https://other.example:8443/x");
        assert!(!request.headers.contains_key("host"));
    }
    let mut lost = support::get("/x");
    lost.uri = "/x".parse().unwrap();
    let now = world.pair.now();
    let quic = world.pair.client();
    let refused = world.client.engine.send_request(now, quic, &lost, true);
    assert_eq!(refused, Err(RequestError::Head(HeadError::NoAuthority)));
}

#[test]
fn a_reader_that_does_not_read_holds_the_writer_back() {
    let mut world = World::new(Pair::builder().link(link(100, 5)));
    let len = 30_000_000;
    world.serve(move |_| content(1, len));
    world.client.lazy = true;
    world.connect();
    let id = world.get("/");
    world.run_for(millis(3000));
    let buffered = world.pair.stats(Side::Client).receive_buffered;
    // The window for one stream, 1 MiB, as nothing was read.
    assert!(buffered.get() <= 1 << 20, "{buffered:?}");
    assert!(world.server.engine.stats().content_sent < len as u64);
    assert_eq!(world.client.engine.stats().content_received, 0);
    world.client.lazy = false;
    world.client.pull(&mut world.pair, id);
    assert!(world.settle(&[id]));
    assert!(world.client.messages[&id].body == content(1, len));
}

#[test]
fn messages_are_sent_in_their_order() {
    let mut world = World::new(Pair::builder());
    world.connect();
    let id = world.request(&support::head("POST", "/", &[]), Some(vec![1]));
    assert!(world.run(|world| world.server.messages.contains_key(&id)));
    let now = world.pair.now();
    let quic = world.pair.server();
    let engine = &mut world.server.engine;
    let mut data = Bytes::from_static(b"early");
    let order = Err(SendError::OutOfOrder);
    assert_eq!(engine.write_data(quic, id, &mut data), order);
    assert_eq!(
        engine.write_trailers(now, quic, id, &trailers()),
        Err(SendError::OutOfOrder)
    );
    assert_eq!(engine.finish(quic, id), Err(SendError::OutOfOrder));
    let switching = Err(HeadError::SwitchingProtocols.into());
    assert_eq!(
        engine.respond(now, quic, id, &response(101), false),
        switching
    );
    let end = Err(HeadError::InformationalEnd.into());
    assert_eq!(engine.respond(now, quic, id, &response(103), true), end);
    assert_eq!(
        engine.respond_with(now, quic, id, &response(103), &mut data, false),
        Err(HeadError::InformationalContent.into())
    );
    assert_eq!(data, "early");
    assert_eq!(engine.respond(now, quic, id, &response(200), false), Ok(()));
    assert_eq!(
        engine.respond(now, quic, id, &response(200), false),
        Err(SendError::OutOfOrder)
    );
    assert_eq!(engine.write_data(quic, id, &mut data), Ok(5));
    assert_eq!(engine.write_trailers(now, quic, id, &trailers()), Ok(()));
    assert_eq!(
        engine.write_trailers(now, quic, id, &trailers()),
        Err(SendError::OutOfOrder)
    );
    let mut data = Bytes::from_static(b"late");
    assert_eq!(
        engine.write_data(quic, id, &mut data),
        Err(SendError::OutOfOrder)
    );
    assert_eq!(engine.finish(quic, id), Ok(()));
    assert_eq!(engine.finish(quic, id), Err(SendError::Closed));
    assert!(world.settle(&[id]));
    assert_eq!(world.client.messages[&id].body, b"early");
}

#[test]
fn reserved_values_are_sent_and_ignored() {
    for seed in 0..20 {
        let config = Config {
            grease: Some(seed),
            ..Config::default()
        };
        let mut world = World::with(Pair::builder(), config, config);
        world.serve(|_| vec![3; 100]);
        world.connect();
        let id = world.get("/");
        assert!(world.settle(&[id]));
        assert!(world.run(|world| world.server.engine.stats().unknown_streams == 1));
        assert!(world.run(|world| world.client.engine.stats().unknown_streams == 1));
    }
}

/// Of any length, and with credit that ends anywhere, so that the transport takes all, some or nothing of it at once.
#[test]
fn content_that_is_given_with_the_head_arrives() {
    for (window, len) in (8..60)
        .flat_map(|window| [(window, 300), (window, 20), (window, 1)])
        .chain([0, 1, 1_023, 1_024, 1_025, 70_000].map(|len| (100_000, len)))
    {
        let builder = Pair::builder().both_configs(move |config| {
            config.stream_receive_window = ByteCount::new(window);
            config.max_stream_receive_window = ByteCount::new(window);
        });
        let mut world = World::new(builder);
        world.answer(move |server, pair, id| {
            server.respond_with(pair, id, &response(200), content(1, len));
        });
        world.connect();
        let head = support::head("POST", "/", &[]);
        let id = world.request_with(&head, content(2, len));
        assert!(world.settle(&[id]), "window of {window}, {len} bytes");
        assert!(world.run(|world| world.server.messages[&id].complete));
        assert_eq!(world.client.messages[&id].body, content(1, len));
        assert_eq!(world.server.messages[&id].body, content(2, len));
        for side in [&world.client, &world.server] {
            assert_eq!(side.engine.stats().content_sent, len as u64);
            assert_eq!(side.engine.stats().content_received, len as u64);
        }
    }
}

#[test]
fn frames_survive_credit_that_ends_anywhere() {
    // The window ends within each byte of the frames in turn.
    for window in 8..60 {
        let builder = Pair::builder().both_configs(move |config| {
            config.stream_receive_window = ByteCount::new(window);
            config.max_stream_receive_window = ByteCount::new(window);
        });
        let mut world = World::new(builder);
        world.answer(|server, pair, id| {
            server.head(pair, id, &response(200));
            server.send(pair, id, content(1, 300), Some(trailers()));
        });
        world.connect();
        let id = world.request(&support::head("POST", "/", &[]), Some(content(2, 300)));
        assert!(world.settle(&[id]), "window of {window}");
        assert!(world.run(|world| world.server.messages[&id].complete));
        assert_eq!(world.client.messages[&id].body, content(1, 300));
        assert_eq!(world.client.messages[&id].trailers, Some(trailers()));
        assert_eq!(world.server.messages[&id].body, content(2, 300));
    }
}
