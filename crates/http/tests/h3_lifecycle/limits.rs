//! What a peer can make grow, and what happens at each limit.

use swiftwater_http::h3::frame::{FrameType, put_header};
use swiftwater_http::h3::{Code, Config, HeadError, Limits, RequestError};
use swiftwater_sim::Pair;
use swiftwater_units::ByteCount;
use swiftwater_units::Side::{Client, Server};

use crate::support::peer::{Duel, frame, get, headers};
use crate::support::{World, head, millis};

fn config(change: impl FnOnce(&mut Limits)) -> Config {
    let mut config = Config::default();
    change(&mut config.limits);
    config
}

/// The status of the response that a raw client got.
fn status(duel: &mut Duel, id: swiftwater_units::StreamId) -> Vec<u8> {
    let mut data = Vec::new();
    assert!(duel.run(|duel| {
        let (more, end) = duel.read(id);
        data.extend(more);
        end == Some(Ok(()))
    }));
    data
}

#[test]
fn heads_beyond_the_limits_are_answered_with_431() {
    let long = "v".repeat(2000);
    let many: Vec<_> = (0..40)
        .map(|nth| (format!("x{nth}"), String::new()))
        .collect();
    let base = [
        (":method", "GET"),
        (":scheme", "https"),
        (":authority", "a"),
        (":path", "/"),
    ];
    let with_long = [&base[..], &[("x", long.as_str())]].concat();
    let mut with_many = base.to_vec();
    with_many.extend(
        many.iter()
            .map(|(name, value)| (name.as_str(), value.as_str())),
    );
    let size = config(|limits| limits.max_field_section_size = 1000);
    let encoded = config(|limits| limits.max_encoded_section = 1000);
    let count = config(|limits| limits.max_fields = 30);
    for (config, fields) in [
        (size, &with_long),
        (encoded, &with_long),
        (count, &with_many),
    ] {
        let mut duel = Duel::ready(Server, config);
        let id = duel.bidi(&headers(fields), true);
        // 431 is not in the static table.
        let answer = status(&mut duel, id);
        assert!(answer.windows(3).any(|part| part == b"431") || answer.len() < 20);
        assert!(duel.world.server.messages.is_empty());
        assert_eq!(duel.world.server.engine.stats().sections_too_large, 1);
        // The connection stays open.
        let id = duel.bidi(&get(), true);
        assert!(duel.run(|duel| duel.world.server.messages.contains_key(&id)));
    }
}

#[test]
fn an_endless_head_is_not_buffered() {
    let mut duel = Duel::ready(Server, config(|limits| limits.max_encoded_section = 1000));
    let mut bytes = Vec::new();
    put_header(&mut bytes, FrameType::Headers, 1 << 40);
    let id = duel.bidi(&bytes, false);
    assert_eq!(duel.stopped_with(id), Code::NO_ERROR);
    assert!(!status(&mut duel, id).is_empty());
}

#[test]
fn trailers_and_responses_beyond_the_limits_end_their_stream() {
    let long = "v".repeat(2000);
    let limits = config(|limits| limits.max_field_section_size = 1000);
    let mut duel = Duel::ready(Server, limits);
    let trailers = headers(&[("x", &long)]);
    let id = duel.bidi(&[get(), trailers].concat(), true);
    assert_eq!(duel.reset_with(id), Code::EXCESSIVE_LOAD);

    let mut duel = Duel::ready(Client, limits);
    let id = duel.world.get("/");
    assert!(duel.run(|duel| duel.quic().accept(swiftwater_units::Dir::Bi).is_some()));
    duel.write(id, &headers(&[(":status", "200"), ("x", &long)]));
    assert!(duel.run(|duel| {
        let message = duel.world.client.messages.get(&id);
        message.is_some_and(|message| message.reset == Some((Code::EXCESSIVE_LOAD, false)))
    }));
}

#[test]
fn we_keep_to_the_peers_limit() {
    let small = config(|limits| limits.max_field_section_size = 500);
    let mut world = World::with(Pair::builder(), Config::default(), small);
    world.serve(|_| Vec::new());
    world.connect();
    let long = "v".repeat(500);
    let now = world.pair.now();
    let quic = world.pair.client();
    let head = head("GET", "/", &[("x", &long)]);
    let refused = world.client.engine.send_request(now, quic, &head, true);
    assert!(matches!(
        refused,
        Err(RequestError::Head(HeadError::TooLarge { max: 500, .. }))
    ));
    // No stream was used up for it.
    let id = world.get("/");
    assert_eq!(id.index(), 0);
    assert!(world.settle(&[id]));
}

#[test]
fn a_flood_of_cancelled_requests_closes_the_connection() {
    let limits = config(|limits| {
        limits.max_cancelled_requests = 50;
        limits.cancelled_requests_per_second = 10;
    });
    // At a pace that the budget permits.
    let mut duel = Duel::ready(Server, limits);
    for _ in 0..60 {
        let id = duel.bidi(&get(), false);
        duel.quic()
            .send_stream(id)
            .reset(Code::REQUEST_CANCELLED.0)
            .unwrap();
        for _ in 0..100 {
            duel.run(|_| true);
            duel.world.pair.advance(millis(1));
        }
    }
    duel.survives();
    // All at once, whether the heads arrive or not.
    for whole in [true, false] {
        let mut duel = Duel::ready(Server, limits);
        for _ in 0..60 {
            let bytes = if whole { get() } else { vec![0x01, 0x20] };
            let id = duel.bidi(&bytes, false);
            duel.run(|_| true);
            duel.world.pair.advance(millis(1));
            duel.quic()
                .send_stream(id)
                .reset(Code::REQUEST_CANCELLED.0)
                .unwrap();
            duel.run(|_| true);
            if duel.quic().is_closed() {
                break;
            }
        }
        assert_eq!(duel.closed_with(), Code::EXCESSIVE_LOAD);
    }
}

#[test]
fn cancelling_answered_requests_is_no_flood() {
    let limits = config(|limits| limits.max_cancelled_requests = 5);
    let mut world = World::with(Pair::builder(), Config::default(), limits);
    world.serve(|_| vec![1; 100]);
    world.connect();
    for _ in 0..50 {
        let id = world.get("/");
        assert!(world.settle(&[id]));
        let now = world.pair.now();
        let quic = world.pair.client();
        let engine = &mut world.client.engine;
        engine.cancel(now, quic, id, Code::REQUEST_CANCELLED);
    }
    world.run_for(millis(500));
    assert!(!world.pair.client().is_closed());
}

#[test]
fn a_head_must_come_before_the_timeout() {
    let limits = config(|limits| limits.head_timeout = Some(millis(2000)));
    let mut duel = Duel::ready(Server, limits);
    let begun = duel.world.pair.now();
    let slow = duel.bidi(&[0x01], false);
    let other = duel.bidi(&get(), false);
    assert_eq!(duel.reset_with(slow), Code::REQUEST_REJECTED);
    let took = duel.world.pair.now().checked_since(begun).unwrap();
    assert!(took >= millis(2000), "{took:?}");
    assert!(took < millis(2500), "{took:?}");
    // Content has no time limit.
    assert!(duel.world.server.messages.contains_key(&other));
    assert_eq!(duel.world.server.engine.open_requests(), 1);
}

#[test]
fn sections_that_wait_for_the_table_are_limited() {
    let config = Config {
        qpack_blocked_streams: 2,
        ..Config::default()
    };
    let mut duel = Duel::ready(Server, config);
    // Each needs one insertion that is never received.
    let waiting = frame(FrameType::Headers, &[0x02, 0x00, 0x80]);
    duel.bidi(&waiting, false);
    duel.bidi(&waiting, false);
    duel.survives();
    assert_eq!(duel.world.server.engine.stats().sections_blocked, 2);
    duel.bidi(&waiting, false);
    assert_eq!(duel.closed_with(), Code::QPACK_DECOMPRESSION_FAILED);
}

#[test]
fn early_priorities_and_datagrams_are_limited() {
    let limits = config(|limits| {
        limits.max_early_priorities = 4;
        limits.max_early_datagrams = 4;
    });
    let mut duel = Duel::new(Server, limits);
    let mut control = vec![0x00];
    control.extend(frame(FrameType::Settings, &[0x33, 0x01]));
    for nth in 0..20_u8 {
        control.extend(frame(
            FrameType::PriorityUpdateRequest,
            &[4 * (nth % 16), b'u', b'=', b'1'],
        ));
    }
    duel.uni(&control);
    for nth in 0..20_u8 {
        let payload = vec![nth % 16, nth];
        duel.quic().send_datagram(payload.into()).unwrap();
    }
    duel.survives();
    let stats = duel.world.server.engine.stats();
    assert_eq!(stats.priority_updates, 20);
    assert_eq!(stats.datagrams_dropped, 16);
    for nth in 0..8 {
        let id = duel.bidi(&get(), false);
        assert!(duel.run(|duel| duel.world.server.messages.contains_key(&id)));
        let priority = duel.world.server.engine.priority(id).unwrap();
        assert_eq!(priority.urgency, if nth < 4 { 1 } else { 3 });
    }
}

#[test]
fn what_comes_for_streams_beyond_the_limit_is_an_error() {
    // The 100th request may still arrive, the 101st may not.
    for (quarter, is_permitted) in [(99_u16, true), (100, false)] {
        let builder =
            Pair::builder().server_config(|config| config.max_concurrent_bidi_streams = 100);
        let mut duel = Duel::with(builder, Server, Config::default());
        let mut control = vec![0x00];
        control.extend(frame(FrameType::Settings, &[0x33, 0x01]));
        duel.uni(&control);
        let datagram = [&(0x4000 | quarter).to_be_bytes()[..], b"early"].concat();
        duel.quic().send_datagram(datagram.into()).unwrap();
        if is_permitted {
            duel.survives();
        } else {
            assert_eq!(duel.closed_with(), Code::ID_ERROR);
        }
    }
}

#[test]
fn a_peer_without_credit_for_local_streams_is_cut_off() {
    // The client accepts only the first bytes of any stream.
    let builder = Pair::builder().client_config(|config| {
        config.stream_receive_window = ByteCount::new(60);
        config.max_stream_receive_window = ByteCount::new(60);
    });
    let builder = builder.server_config(|config| config.max_concurrent_bidi_streams = 1000);
    let limits = config(|limits| limits.max_control_backlog = 500);
    let mut duel = Duel::with(builder, Server, limits);
    let mut control = vec![0x00];
    control.extend(frame(FrameType::Settings, &[]));
    duel.uni(&control);
    // A table, an entry of it (x: y), and sections that refer to it: each is acknowledged.
    duel.uni(&[0x02, 0x3f, 0xe1, 0x1f, 0x41, b'x', 0x01, b'y']);
    duel.survives();
    let fields = [0x02, 0x00, 0xd1, 0xd7, 0x50, 0x01, b'a', 0xc1, 0x80];
    let bytes = frame(FrameType::Headers, &fields);
    for _ in 0..700 {
        duel.bidi(&bytes, false);
        duel.run(|_| true);
        duel.world.pair.advance(millis(5));
        if duel.quic().is_closed() {
            break;
        }
    }
    assert_eq!(duel.closed_with(), Code::EXCESSIVE_LOAD);
    let fault = duel.world.server.engine.fault().unwrap();
    assert!(fault.reason.contains("no credit"), "{fault}");
}
