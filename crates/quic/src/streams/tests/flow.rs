//! Flow control at both levels, as receiver and as sender.

use std::time::Duration;

use swiftwater_units::Instant;

use super::*;

const ID: StreamId = StreamId::new(Side::Server, Dir::Bi, 0);
const MS: Duration = Duration::from_millis(1);

fn limit_of(streams: &mut Streams, key: ControlKey) -> Option<u64> {
    controls(streams)
        .into_iter()
        .find_map(|(other, value)| match value {
            ControlValue::Limit(limit) if other == key => Some(limit),
            _ => None,
        })
}

#[test]
fn data_beyond_the_streams_limit_is_an_error() {
    let mut streams = client();
    let flow = ErrorCode::FLOW_CONTROL_ERROR;
    assert_code(deliver(&mut streams, ID, 1000, 1, false), flow);
    assert_code(reset(&mut streams, ID, 0, 1001), flow);
    deliver(&mut streams, ID, 999, 1, false).unwrap();
}

#[test]
fn data_beyond_the_connections_limit_is_an_error() {
    let mut streams = client();
    let flow = ErrorCode::FLOW_CONTROL_ERROR;
    // A single byte at the end of each stream counts for all before it.
    deliver(&mut streams, server_bidi(0), 999, 1, false).unwrap();
    deliver(&mut streams, server_bidi(1), 999, 1, false).unwrap();
    assert_code(deliver(&mut streams, server_bidi(2), 500, 1, false), flow);
    assert_code(reset(&mut streams, server_bidi(2), 0, 501), flow);
    deliver(&mut streams, server_bidi(2), 499, 1, false).unwrap();
    assert_eq!(streams.stats().receive_buffered, 2500);
    // What was counted once isn't again.
    deliver(&mut streams, server_bidi(0), 0, 1000, true).unwrap();
}

#[test]
fn limits_rise_when_half_the_window_was_read() {
    let mut streams = client();
    deliver(&mut streams, ID, 0, 1000, false).unwrap();
    streams.read(ID, &mut [0; 499]).unwrap();
    assert_eq!(controls(&mut streams), []);
    streams.read(ID, &mut [0; 1]).unwrap();
    let raised = (ControlKey::MaxStreamData(ID), ControlValue::Limit(1500));
    assert_eq!(controls(&mut streams), [raised]);
    assert_code(
        deliver(&mut streams, ID, 1500, 1, false),
        ErrorCode::FLOW_CONTROL_ERROR,
    );
    deliver(&mut streams, ID, 1000, 500, false).unwrap();
    // The connection's window of 2500 has 1000 left: it follows when that can be doubled.
    streams.read(ID, &mut [0; 499]).unwrap();
    assert_eq!(limit_of(&mut streams, ControlKey::MaxData), None);
    streams.read(ID, &mut [0; 1]).unwrap();
    assert_eq!(limit_of(&mut streams, ControlKey::MaxData), Some(3500));
}

#[test]
fn limits_rise_in_smaller_steps_once_one_was_lost() {
    let mut streams = client();
    streams.on_control_lost(ControlKey::StopSending(ID));
    deliver(&mut streams, ID, 0, 1000, false).unwrap();
    streams.read(ID, &mut [0; 499]).unwrap();
    assert_eq!(controls(&mut streams), []);
    streams.on_control_lost(ControlKey::MaxStreamData(ID));
    streams.read(ID, &mut [0; 1]).unwrap();
    let raised = (ControlKey::MaxStreamData(ID), ControlValue::Limit(1500));
    assert!(controls(&mut streams).contains(&raised));
    // An eighth of the stream's window.
    streams.read(ID, &mut [0; 124]).unwrap();
    assert_eq!(controls(&mut streams), []);
    streams.read(ID, &mut [0; 1]).unwrap();
    let raised = (ControlKey::MaxStreamData(ID), ControlValue::Limit(1625));
    assert_eq!(controls(&mut streams), [raised]);
    // And of the connection's, of 2500 bytes: from 3000, to which the first step has raised it.
    streams.read(ID, &mut [0; 186]).unwrap();
    assert_eq!(limit_of(&mut streams, ControlKey::MaxData), None);
    streams.read(ID, &mut [0; 1]).unwrap();
    assert_eq!(limit_of(&mut streams, ControlKey::MaxData), Some(3312));
}

/// The first limit of a stream counts as raised in a small step, too: it is taken back with the end.
#[test]
fn a_limit_raised_in_a_small_step_is_taken_back_once_the_end_is_known() {
    let mut streams = client();
    streams.on_control_lost(ControlKey::MaxData);
    deliver(&mut streams, ID, 0, 1000, false).unwrap();
    streams.read(ID, &mut [0; 125]).unwrap();
    deliver(&mut streams, ID, 1000, 0, true).unwrap();
    assert_eq!(limit_of(&mut streams, ControlKey::MaxStreamData(ID)), None);
}

#[test]
fn bytes_that_are_not_read_do_not_hold_up_other_streams() {
    let mut streams = client();
    // Two streams that are not read take 2000 of the connection's 2500 bytes.
    deliver(&mut streams, server_bidi(1), 0, 1000, false).unwrap();
    deliver(&mut streams, server_bidi(2), 0, 1000, false).unwrap();
    // A third whose reader takes everything at once goes on for ever.
    let (mut sent, mut limit) = (0, 2500);
    for _ in 0..100 {
        let piece = (limit - 2000 - sent).min(100);
        assert!(piece > 0, "stalled after {sent} bytes");
        deliver(&mut streams, ID, sent, piece as usize, false).unwrap();
        sent += piece;
        while let Ok(ReadOutcome::Data(_)) = streams.read(ID, &mut [0; 100]) {}
        limit = limit_of(&mut streams, ControlKey::MaxData).unwrap_or(limit);
        assert!(limit <= 2500 + sent, "the window is never exceeded");
    }
    assert!(sent > 5000, "{sent} bytes got through");
}

#[test]
fn no_stream_limit_is_raised_once_the_end_is_known() {
    let mut streams = client();
    deliver(&mut streams, ID, 0, 1000, true).unwrap();
    streams.read(ID, &mut [0; 900]).unwrap();
    assert_eq!(controls(&mut streams), []);
    // A raise that is still waiting is taken back.
    let mut streams = client();
    deliver(&mut streams, ID, 0, 1000, false).unwrap();
    streams.read(ID, &mut [0; 900]).unwrap();
    deliver(&mut streams, ID, 1000, 0, true).unwrap();
    assert_eq!(controls(&mut streams), []);
}

#[test]
fn dropped_data_is_credited_to_the_connection() {
    let mut streams = client();
    deliver(&mut streams, server_bidi(0), 0, 900, false).unwrap();
    streams.stop(server_bidi(0), 0).unwrap();
    deliver(&mut streams, server_bidi(1), 0, 300, false).unwrap();
    reset(&mut streams, server_bidi(1), 0, 350).unwrap();
    assert_eq!(
        limit_of(&mut streams, ControlKey::MaxData),
        Some(900 + 350 + 2500)
    );
    // Also what comes after the stop.
    deliver(&mut streams, server_bidi(0), 900, 100, false).unwrap();
    assert_eq!(streams.stats().receive_buffered, 0);
}

fn tuned_config() -> TransportConfig {
    TransportConfig {
        stream_receive_window: ByteCount::new(1000),
        max_stream_receive_window: ByteCount::new(4000),
        receive_window: ByteCount::new(100_000),
        max_receive_window: ByteCount::new(100_000),
        ..config()
    }
}

/// Reads 500 bytes each `step` with an RTT of 100 ms; returns how far each limit was ahead of the
/// reader.
fn windows(step: Duration, rounds: u64) -> Vec<u64> {
    let mut streams = client_with(&tuned_config());
    let mut now = Instant::ZERO;
    let mut windows = Vec::new();
    deliver(&mut streams, ID, 0, 0, false).unwrap();
    for n in 0..rounds {
        now += step;
        streams.on_rtt(now, 100 * MS);
        deliver(&mut streams, ID, n * 500, 500, false).unwrap();
        streams.read(ID, &mut [0; 500]).unwrap();
        if let Some(limit) = limit_of(&mut streams, ControlKey::MaxStreamData(ID)) {
            windows.push(limit - (n + 1) * 500);
        }
    }
    windows
}

#[test]
fn a_fast_reader_gets_a_larger_window_up_to_the_ceiling() {
    let windows = windows(10 * MS, 60);
    assert!(windows.is_sorted(), "{windows:?}");
    assert!(windows.contains(&2000), "{windows:?}");
    assert_eq!(windows.last(), Some(&4000));
}

#[test]
fn a_window_grows_no_further_than_the_reader_needs() {
    // A window of 1000 takes 180 ms, one of 2000 takes 360 ms.
    assert_eq!(windows(90 * MS, 60).last(), Some(&2000));
}

#[test]
fn a_slow_reader_keeps_its_window() {
    // A whole window takes 2 * 110 ms, more than two round trips.
    let windows = windows(110 * MS, 30);
    assert!(windows.iter().all(|&window| window == 1000), "{windows:?}");
}

/// Memory for data of the first `count` streams.
fn ring_bytes(streams: &Streams, count: u64) -> u64 {
    let capacity = |index| {
        let (_, stream) = streams.stream(server_bidi(index)).unwrap();
        stream.recv.as_ref().unwrap().capacity()
    };
    (0..count).map(capacity).sum()
}

#[test]
fn memory_stays_within_the_windows() {
    // Every stream has one byte at the far end of its window.
    let mut streams = client();
    for index in 0..2 {
        deliver(&mut streams, server_bidi(index), 999, 1, false).unwrap();
    }
    let rings = ring_bytes(&streams, 2);
    assert_eq!(rings, 2000);
}

#[test]
fn idle_streams_give_memory_back_when_it_adds_up() {
    let config = TransportConfig {
        max_concurrent_bidi_streams: 1000,
        ..config()
    };
    let mut streams = client_with(&config);
    for index in 0..1000 {
        let id = server_bidi(index);
        deliver(&mut streams, id, 0, 1000, false).unwrap();
        assert_eq!(read_all(&mut streams, id, 0), (1000, ReadOutcome::Blocked));
    }
    let rings = ring_bytes(&streams, 1000);
    assert!(
        rings <= 2500 + 1000,
        "{rings} bytes for streams without data"
    );
}

#[test]
fn a_byte_behind_a_gap_does_not_hold_a_window_of_memory() {
    let large = ByteCount::new(100_000);
    let config = TransportConfig {
        max_concurrent_bidi_streams: 100,
        stream_receive_window: large,
        max_stream_receive_window: large,
        receive_window: large,
        max_receive_window: large,
        ..config()
    };
    let mut streams = client_with(&config);
    for index in 0..100 {
        let id = server_bidi(index);
        deliver(&mut streams, id, 0, 49_000, false).unwrap();
        deliver(&mut streams, id, 49_001, 1, false).unwrap();
        assert_eq!(
            read_all(&mut streams, id, 0),
            (49_000, ReadOutcome::Blocked)
        );
    }
    let rings = ring_bytes(&streams, 100);
    assert!(
        rings <= 5 * 100_000 + 100 * 2048,
        "{rings} bytes for a byte each"
    );
    // The byte is still there.
    deliver(&mut streams, server_bidi(99), 49_000, 1, false).unwrap();
    assert_eq!(
        read_all(&mut streams, server_bidi(99), 49_000),
        (2, ReadOutcome::Blocked)
    );
}

#[test]
fn a_writer_is_stopped_by_the_streams_limit() {
    let mut streams = client();
    let id = streams.open(Dir::Bi).unwrap();
    assert_eq!(streams.write(id, &[0; 1500]), Ok(1000));
    assert_eq!(streams.write(id, &[0; 500]), Ok(0));
    assert_eq!(
        controls(&mut streams),
        [],
        "there are bytes to send before anything is blocked"
    );
    send_all(&mut streams);
    let blocked = (ControlKey::StreamDataBlocked(id), ControlValue::Limit(1000));
    assert_eq!(controls(&mut streams), [blocked]);
    assert_eq!(streams.write(id, &[0; 500]), Ok(0));
    assert_eq!(controls(&mut streams), [], "once for each limit");
    assert!(!streams.can_send());

    streams.on_max_stream_data(id, 900).unwrap();
    assert_eq!(events(&mut streams), []);
    streams.on_max_stream_data(id, 1200).unwrap();
    assert_eq!(events(&mut streams), [StreamEvent::Writable { id }]);
    assert_eq!(streams.write(id, &[0; 500]), Ok(200));
    send_all(&mut streams);
    let blocked = (ControlKey::StreamDataBlocked(id), ControlValue::Limit(1200));
    assert_eq!(controls(&mut streams), [blocked]);
}

#[test]
fn blocked_frames_are_withdrawn_when_the_limit_has_risen() {
    let mut streams = client();
    let ids: Vec<_> = (0..3).map(|_| streams.open(Dir::Bi).unwrap()).collect();
    for &id in &ids {
        assert_eq!(streams.write(id, &[0; 2000]), Ok(1000));
    }
    for index in 0..2 {
        assert_eq!(streams.open(Dir::Uni), Some(client_uni(index)));
    }
    assert_eq!(streams.open(Dir::Uni), None);
    send_all(&mut streams);
    streams.on_max_data(10_000);
    for &id in &ids {
        streams.on_max_stream_data(id, 5000).unwrap();
    }
    streams.on_max_streams(Dir::Uni, 3);
    assert_eq!(controls(&mut streams), []);
}

#[test]
fn a_writer_that_fits_is_not_blocked() {
    let mut streams = client();
    let id = streams.open(Dir::Bi).unwrap();
    assert_eq!(streams.write(id, &[0; 1000]), Ok(1000));
    streams.finish(id).unwrap();
    send_all(&mut streams);
    streams.on_max_stream_data(id, 5000).unwrap();
    assert_eq!(controls(&mut streams), []);
    assert_eq!(events(&mut streams), []);
}

#[test]
fn sending_stops_at_the_connections_limit() {
    let mut streams = client();
    let ids: Vec<_> = (0..3).map(|_| streams.open(Dir::Bi).unwrap()).collect();
    for &id in &ids {
        assert_eq!(streams.write(id, &[0; 1000]), Ok(1000));
    }
    assert_eq!(streams.pending_bytes(), 2500);
    let carried = send_all(&mut streams);
    let sent: u64 = carried
        .iter()
        .map(|carried| match carried {
            Carried::Stream { len, .. } => u64::from(*len),
            _ => 0,
        })
        .sum();
    assert_eq!(sent, 2500);
    assert_eq!(
        controls(&mut streams),
        [(ControlKey::DataBlocked, ControlValue::Limit(2500))]
    );
    assert!(!streams.can_send());
    assert_eq!(streams.pending_bytes(), 0);

    // Retransmissions cost no credit.
    fate(&mut streams, &carried, Fate::Lost);
    assert_eq!(streams.pending_bytes(), 2500);
    let again = send_all(&mut streams);
    assert_eq!(controls(&mut streams), [], "once for each limit");

    streams.on_max_data(2400);
    assert!(!streams.can_send());
    streams.on_max_data(2700);
    assert_eq!(streams.pending_bytes(), 200);
    send_all(&mut streams);
    assert_eq!(
        controls(&mut streams),
        [(ControlKey::DataBlocked, ControlValue::Limit(2700))]
    );
    fate(&mut streams, &again, Fate::Acked);
}

#[test]
fn a_bare_fin_needs_no_credit() {
    let mut streams = client();
    let ids: Vec<_> = (0..3).map(|_| streams.open(Dir::Bi).unwrap()).collect();
    for &id in &ids {
        streams.write(id, &[0; 1000]).unwrap();
    }
    send_all(&mut streams);
    let fourth = streams.open(Dir::Bi).unwrap();
    streams.finish(fourth).unwrap();
    assert_eq!(send_all(&mut streams), [stream_frame(fourth, 0, 0, true)]);
}

#[test]
fn bytes_that_a_reset_dropped_are_not_charged() {
    let mut streams = client();
    let first = streams.open(Dir::Bi).unwrap();
    streams.write(first, &[0; 1000]).unwrap();
    packet(&mut streams, 600);
    streams.reset(first, 0).unwrap();
    let Some((_, ControlValue::Reset { final_size, .. })) = controls(&mut streams).pop() else {
        panic!("no reset");
    };
    for _ in 0..3 {
        let id = streams.open(Dir::Bi).unwrap();
        streams.write(id, &[0; 1000]).unwrap();
    }
    assert_eq!(streams.pending_bytes(), 2500 - final_size);
}

#[test]
fn the_send_window_bounds_what_is_kept() {
    let config = TransportConfig {
        send_window: ByteCount::new(1500),
        ..config()
    };
    let mut streams = client_with(&config);
    let (a, b) = (
        streams.open(Dir::Bi).unwrap(),
        streams.open(Dir::Bi).unwrap(),
    );
    assert_eq!(streams.write(a, &[0; 1000]), Ok(1000));
    assert_eq!(streams.write(b, &[0; 1000]), Ok(500));
    assert_eq!(streams.write(b, &[0; 1000]), Ok(0));
    assert_eq!(streams.stats().send_buffered, 1500);
    let mut carried = send_all(&mut streams);
    assert_eq!(events(&mut streams), []);
    // The first acknowledgements free too little for an event.
    streams.on_frame_fate(&fate_of_carrier(Fate::Acked), a, 0..100, false);
    assert_eq!(events(&mut streams), []);
    carried.retain(|carried| matches!(carried, Carried::Stream { id, .. } if *id == a));
    fate(&mut streams, &carried, Fate::Acked);
    assert_eq!(events(&mut streams), [StreamEvent::Writable { id: b }]);
    assert_eq!(streams.write(b, &[0; 1000]), Ok(500));
    assert_eq!(streams.stats().send_buffered, 1000);
}

#[test]
fn a_reset_makes_room_for_other_writers() {
    let config = TransportConfig {
        send_window: ByteCount::new(1000),
        ..config()
    };
    let mut streams = client_with(&config);
    let (a, b) = (
        streams.open(Dir::Bi).unwrap(),
        streams.open(Dir::Bi).unwrap(),
    );
    streams.write(a, &[0; 1000]).unwrap();
    assert_eq!(streams.write(b, &[0; 10]), Ok(0));
    streams.reset(a, 0).unwrap();
    assert_eq!(events(&mut streams), [StreamEvent::Writable { id: b }]);
    assert_eq!(streams.stats().send_buffered, 0);
}

#[test]
fn every_stream_that_its_limit_holds_back_counts() {
    let mut streams = client();
    let ids: Vec<_> = (0..2).map(|_| streams.open(Dir::Bi).unwrap()).collect();
    for &id in &ids {
        assert_eq!(streams.write(id, &[0; 2000]), Ok(1000));
    }
    send_all(&mut streams);
    assert!(streams.is_flow_limited());
    // The one that met its limit last goes on.
    streams.on_max_stream_data(ids[1], 1200).unwrap();
    assert_eq!(events(&mut streams), [StreamEvent::Writable { id: ids[1] }]);
    assert_eq!(streams.write(ids[1], &[0; 100]), Ok(100));
    assert!(streams.is_flow_limited(), "the first one still waits");
    streams.on_max_stream_data(ids[0], 1200).unwrap();
    assert!(streams.is_flow_limited(), "until the event was polled");
    assert_eq!(events(&mut streams), [StreamEvent::Writable { id: ids[0] }]);
    assert!(!streams.is_flow_limited());
}

#[test]
fn a_limited_stream_that_is_reset_counts_no_more() {
    let mut streams = client();
    let ids: Vec<_> = (0..2).map(|_| streams.open(Dir::Bi).unwrap()).collect();
    for &id in &ids {
        assert_eq!(streams.write(id, &[0; 2000]), Ok(1000));
    }
    send_all(&mut streams);
    streams.reset(ids[0], 1).unwrap();
    assert!(streams.is_flow_limited());
    streams.finish(ids[1]).unwrap();
    assert!(!streams.is_flow_limited());
}
