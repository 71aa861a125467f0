//! Identifiers, counts, limits of streams.

use super::*;

#[test]
fn opens_up_to_the_peers_limit_and_is_notified_when_it_grows() {
    let mut streams = client();
    assert_eq!(streams.open(Dir::Uni), Some(client_uni(0)));
    assert_eq!(streams.open(Dir::Uni), Some(client_uni(1)));
    assert_eq!(streams.open(Dir::Uni), None);
    assert_eq!(streams.open(Dir::Uni), None);
    let blocked = (ControlKey::StreamsBlocked(Dir::Uni), ControlValue::Limit(2));
    assert_eq!(controls(&mut streams), [blocked], "once for each limit");

    streams.on_max_streams(Dir::Uni, 1);
    assert_eq!(events(&mut streams), [], "a lower limit is ignored");
    streams.on_max_streams(Dir::Uni, 3);
    assert_eq!(
        events(&mut streams),
        [StreamEvent::Available { dir: Dir::Uni }]
    );
    assert_eq!(streams.open(Dir::Uni), Some(client_uni(2)));
    streams.on_max_streams(Dir::Uni, 4);
    assert_eq!(events(&mut streams), [], "no task waited");
}

#[test]
fn nothing_can_be_opened_before_the_peer_is_known() {
    let config = config();
    let mut streams = Streams::new(Side::Client, &config);
    assert_eq!(streams.open(Dir::Bi), None);
    assert_eq!(
        controls(&mut streams),
        [],
        "no limit is known that could be reported"
    );
    streams.set_peer_parameters(&parameters(&config));
    assert_eq!(
        events(&mut streams),
        [StreamEvent::Available { dir: Dir::Bi }]
    );
    assert_eq!(streams.open(Dir::Bi), Some(client_bidi(0)));
}

#[test]
fn limits_of_new_streams_follow_the_parameter_for_their_kind() {
    let config = config();
    let mut streams = Streams::new(Side::Client, &config);
    streams.set_peer_parameters(&TransportParameters {
        initial_max_data: 10_000,
        initial_max_stream_data_bidi_local: 10,
        initial_max_stream_data_bidi_remote: 20,
        initial_max_stream_data_uni: 30,
        initial_max_streams_bidi: 1,
        initial_max_streams_uni: 1,
        ..TransportParameters::default()
    });
    deliver(&mut streams, server_bidi(0), 0, 1, false).unwrap();
    let bidi = streams.open(Dir::Bi).unwrap();
    let uni = streams.open(Dir::Uni).unwrap();
    // "LocalStreams" and "remote" are seen from the sender of the parameter, the server.
    assert_eq!(streams.write(server_bidi(0), &[0; 100]), Ok(10));
    assert_eq!(streams.write(bidi, &[0; 100]), Ok(20));
    assert_eq!(streams.write(uni, &[0; 100]), Ok(30));
}

#[test]
fn a_stream_opens_all_lower_ones_of_its_kind() {
    let mut streams = client();
    deliver(&mut streams, server_bidi(2), 0, 5, false).unwrap();
    assert_eq!(events(&mut streams), [StreamEvent::Opened { dir: Dir::Bi }]);
    assert_eq!(streams.stats().open, 1, "untouched streams have no state");
    assert_eq!(streams.accept(Dir::Uni), None);
    let accepted: Vec<_> = std::iter::from_fn(|| streams.accept(Dir::Bi)).collect();
    assert_eq!(accepted, [server_bidi(0), server_bidi(1), server_bidi(2)]);
    assert_eq!(
        events(&mut streams),
        [StreamEvent::Readable { id: server_bidi(2) }]
    );
    // They really are open.
    assert_eq!(streams.write(server_bidi(0), b"x"), Ok(1));
    deliver(&mut streams, server_bidi(1), 0, 5, false).unwrap();
    assert_eq!(
        read_all(&mut streams, server_bidi(1), 0),
        (5, ReadOutcome::Blocked)
    );
}

#[test]
fn streams_beyond_the_limit_are_an_error() {
    let mut streams = client();
    let limit = ErrorCode::STREAM_LIMIT_ERROR;
    assert_code(deliver(&mut streams, server_uni(2), 0, 1, false), limit);
    assert_code(reset(&mut streams, server_bidi(4), 0, 0), limit);
    assert_code(stop_sending(&mut streams, server_bidi(4), 0), limit);
    assert_code(streams.on_max_stream_data(server_bidi(4), 1), limit);
    assert_code(streams.on_stream_data_blocked(server_bidi(4)), limit);
    assert_code(
        deliver(&mut streams, server_bidi((1 << 60) - 1), 0, 1, false),
        limit,
    );
    deliver(&mut streams, server_bidi(3), 0, 1, false).unwrap();
}

#[test]
fn a_huge_limit_costs_nothing_until_it_is_used() {
    let config = TransportConfig {
        max_concurrent_uni_streams: u64::MAX,
        ..config()
    };
    let mut streams = client_with(&config);
    deliver(&mut streams, server_uni((1 << 60) - 1), 0, 1, false).unwrap();
    deliver(&mut streams, server_uni(1 << 59), 0, 1, false).unwrap();
    assert_eq!(streams.stats().open, 2);
    assert_eq!(streams.accept(Dir::Uni), Some(server_uni(0)));
}

#[test]
fn frames_against_the_direction_are_errors() {
    let mut streams = client();
    let uni = streams.open(Dir::Uni).unwrap();
    let state = ErrorCode::STREAM_STATE_ERROR;
    assert_code(deliver(&mut streams, uni, 0, 1, false), state);
    assert_code(reset(&mut streams, uni, 0, 0), state);
    assert_code(streams.on_stream_data_blocked(uni), state);
    assert_code(stop_sending(&mut streams, server_uni(0), 0), state);
    assert_code(streams.on_max_stream_data(server_uni(0), 9), state);
}

#[test]
fn frames_for_local_streams_that_were_never_opened_are_errors() {
    let mut streams = client();
    let state = ErrorCode::STREAM_STATE_ERROR;
    assert_code(deliver(&mut streams, client_bidi(0), 0, 1, false), state);
    assert_code(reset(&mut streams, client_bidi(0), 0, 0), state);
    assert_code(stop_sending(&mut streams, client_bidi(0), 0), state);
    assert_code(streams.on_max_stream_data(client_bidi(0), 9), state);
    assert_code(streams.on_stream_data_blocked(client_bidi(0)), state);
    streams.open(Dir::Bi).unwrap();
    deliver(&mut streams, client_bidi(0), 0, 1, false).unwrap();
    assert_code(deliver(&mut streams, client_bidi(1), 0, 1, false), state);
}

#[test]
fn frames_for_streams_that_are_over_are_ignored() {
    let mut streams = client();
    deliver(&mut streams, server_uni(0), 0, 10, true).unwrap();
    streams.accept(Dir::Uni).unwrap();
    assert_eq!(
        read_all(&mut streams, server_uni(0), 0),
        (10, ReadOutcome::Finished)
    );
    assert_eq!(streams.stats().open, 0);
    deliver(&mut streams, server_uni(0), 0, 10, true).unwrap();
    reset(&mut streams, server_uni(0), 0, 10).unwrap();
    streams.on_stream_data_blocked(server_uni(0)).unwrap();
    assert_eq!(streams.stats().open, 0);
    assert_eq!(
        streams.read(server_uni(0), &mut [0; 1]),
        Err(crate::ReadError::Closed)
    );
}

#[test]
fn streams_that_end_are_replaced() {
    let mut streams = client();
    // Two may be open; each that ends makes room for another.
    for index in 0..20 {
        let id = server_uni(index);
        deliver(&mut streams, id, 0, 10, true).unwrap();
        assert_eq!(streams.accept(Dir::Uni), Some(id));
        assert_code(
            deliver(&mut streams, server_uni(index + 2), 0, 1, false),
            ErrorCode::STREAM_LIMIT_ERROR,
        );
        assert_eq!(read_all(&mut streams, id, 0), (10, ReadOutcome::Finished));
        let granted = (
            ControlKey::MaxStreams(Dir::Uni),
            ControlValue::Limit(index + 3),
        );
        assert!(controls(&mut streams).contains(&granted));
    }
    assert_eq!(streams.stats().open, 0);
}

#[test]
fn one_open_stream_does_not_keep_short_ones_from_being_replaced() {
    let config = TransportConfig {
        max_concurrent_uni_streams: 100,
        ..config()
    };
    let mut streams = client_with(&config);
    // 95 streams stay open, so only five at a time come and go.
    deliver(&mut streams, server_uni(94), 0, 1, false).unwrap();
    let mut limit = 100;
    for index in 95..1000 {
        assert!(index < limit, "stuck at stream {index}");
        deliver(&mut streams, server_uni(index), 0, 0, true).unwrap();
        while let Some(id) = streams.accept(Dir::Uni) {
            let _ = streams.read(id, &mut [0; 10]).unwrap();
        }
        for (key, value) in controls(&mut streams) {
            if let (ControlKey::MaxStreams(Dir::Uni), ControlValue::Limit(new)) = (key, value) {
                assert!(new <= index + 1 - 95 + 100, "more than 100 could be open");
                limit = new;
            }
        }
    }
}

#[test]
fn both_halves_must_end() {
    let mut streams = client();
    deliver(&mut streams, server_bidi(0), 0, 10, true).unwrap();
    let id = streams.accept(Dir::Bi).unwrap();
    assert_eq!(read_all(&mut streams, id, 0), (10, ReadOutcome::Finished));
    assert_eq!(streams.stats().open, 1);
    streams.finish(id).unwrap();
    let carried = send_all(&mut streams);
    assert_eq!(carried, [stream_frame(id, 0, 0, true)]);
    events(&mut streams);
    fate(&mut streams, &carried, Fate::Acked);
    assert_eq!(events(&mut streams), [StreamEvent::Finished { id }]);
    assert_eq!(streams.stats().open, 0);
}
