//! The receiving half: order, ends, resets, stops.

use swiftwater_wire::VarInt;

use super::*;
use crate::error::ReadError;
use crate::streams::application::ReadChunk;

const ID: StreamId = StreamId::new(Side::Server, Dir::Uni, 0);

/// A client that has accepted [`ID`], on which the first byte has come.
fn accepted() -> Streams {
    let mut streams = client();
    deliver(&mut streams, ID, 0, 1, false).unwrap();
    assert_eq!(streams.accept(Dir::Uni), Some(ID));
    streams
}

#[test]
fn data_is_delivered_in_order() {
    let mut streams = accepted();
    deliver(&mut streams, ID, 500, 300, true).unwrap();
    assert_eq!(read_all(&mut streams, ID, 0), (1, ReadOutcome::Blocked));
    deliver(&mut streams, ID, 0, 600, false).unwrap();
    assert_eq!(read_all(&mut streams, ID, 1), (799, ReadOutcome::Finished));
    assert_eq!(streams.read(ID, &mut [0; 9]), Err(ReadError::Closed));
}

#[test]
fn readable_is_reported_once_for_each_wait() {
    let mut streams = accepted();
    let readable = StreamEvent::Readable { id: ID };
    assert_eq!(
        events(&mut streams),
        [StreamEvent::Opened { dir: Dir::Uni }, readable]
    );
    deliver(&mut streams, ID, 1, 1, false).unwrap();
    assert_eq!(
        events(&mut streams),
        [],
        "the reader hasn't had to wait since"
    );
    assert_eq!(read_all(&mut streams, ID, 0), (2, ReadOutcome::Blocked));
    deliver(&mut streams, ID, 5, 5, false).unwrap();
    assert_eq!(events(&mut streams), [], "a gap comes first");
    deliver(&mut streams, ID, 2, 3, false).unwrap();
    deliver(&mut streams, ID, 10, 3, false).unwrap();
    assert_eq!(events(&mut streams), [readable]);
    read_all(&mut streams, ID, 2);
    deliver(&mut streams, ID, 13, 0, true).unwrap();
    assert_eq!(events(&mut streams), [readable], "the end is news, too");
}

#[test]
fn a_stream_without_data_just_ends() {
    let mut streams = client();
    deliver(&mut streams, ID, 0, 0, true).unwrap();
    streams.accept(Dir::Uni).unwrap();
    assert_eq!(streams.read(ID, &mut [0; 9]), Ok(ReadOutcome::Finished));
    assert_eq!(streams.stats().open, 0);
}

#[test]
fn a_chunk_is_the_last_if_the_end_is_known_and_all_before_it_is_there() {
    let is_last = |streams: &mut Streams| match streams.read_chunk(ID).unwrap() {
        ReadChunk::Data(chunk) => chunk.is_last(),
        ReadChunk::Blocked | ReadChunk::Finished => panic!("there are data"),
    };
    let mut streams = accepted();
    deliver(&mut streams, ID, 0, 100, false).unwrap();
    assert!(!is_last(&mut streams));
    // The end is known, but not all that comes before.
    deliver(&mut streams, ID, 150, 50, true).unwrap();
    assert!(!is_last(&mut streams));
    deliver(&mut streams, ID, 100, 50, false).unwrap();
    assert!(is_last(&mut streams));
}

#[test]
fn chunks_are_read_in_place() {
    let mut streams = accepted();
    deliver(&mut streams, ID, 0, 100, true).unwrap();
    let mut offset = 0;
    loop {
        match streams.read_chunk(ID).unwrap() {
            ReadChunk::Data(chunk) => {
                assert_eq!(chunk.data(), bytes_at(offset, 100 - offset as usize));
                assert!(chunk.is_last());
                chunk.consume(30);
                offset = (offset + 30).min(100);
            }
            ReadChunk::Blocked => panic!("the end is there"),
            ReadChunk::Finished => break,
        }
    }
    assert_eq!(offset, 100);
    assert_eq!(streams.stats().receive_buffered, 0);
    assert!(matches!(streams.read_chunk(ID), Err(ReadError::Closed)));
}

#[test]
fn a_final_size_cannot_change() {
    let wrong = ErrorCode::FINAL_SIZE_ERROR;
    // Size known.
    let mut streams = accepted();
    deliver(&mut streams, ID, 90, 10, true).unwrap();
    deliver(&mut streams, ID, 50, 50, false).unwrap();
    deliver(&mut streams, ID, 100, 0, true).unwrap();
    assert_code(deliver(&mut streams, ID, 100, 1, false), wrong);
    assert_code(deliver(&mut streams, ID, 0, 99, true), wrong);
    assert_code(deliver(&mut streams, ID, 0, 101, true), wrong);
    assert_code(reset(&mut streams, ID, 0, 99), wrong);
    assert_code(reset(&mut streams, ID, 0, 101), wrong);
    // Less than what has come.
    let mut streams = accepted();
    deliver(&mut streams, ID, 50, 50, false).unwrap();
    assert_code(deliver(&mut streams, ID, 0, 99, true), wrong);
    assert_code(reset(&mut streams, ID, 0, 99), wrong);
    // After a reset.
    reset(&mut streams, ID, 0, 100).unwrap();
    deliver(&mut streams, ID, 0, 100, true).unwrap();
    assert_code(deliver(&mut streams, ID, 0, 101, false), wrong);
    assert_code(reset(&mut streams, ID, 0, 200), wrong);
}

#[test]
fn a_final_size_cannot_change_after_a_stop_either() {
    let mut streams = accepted();
    deliver(&mut streams, ID, 50, 50, false).unwrap();
    streams.stop(ID, 1).unwrap();
    assert_code(reset(&mut streams, ID, 0, 99), ErrorCode::FINAL_SIZE_ERROR);
}

#[test]
fn offsets_beyond_62_bits_are_an_error() {
    let mut streams = accepted();
    let end = VarInt::MAX.get();
    assert_code(
        deliver(&mut streams, ID, end, 1, false),
        ErrorCode::FRAME_ENCODING_ERROR,
    );
    let frame = frame::Stream {
        id: ID,
        offset: u64::MAX,
        fin: false,
        data: &[1],
    };
    assert_code(streams.on_stream(&frame), ErrorCode::FRAME_ENCODING_ERROR);
}

#[test]
fn a_reset_discards_what_was_not_read() {
    let mut streams = accepted();
    read_all(&mut streams, ID, 0);
    deliver(&mut streams, ID, 1, 400, false).unwrap();
    events(&mut streams);
    reset(&mut streams, ID, 77, 500).unwrap();
    reset(&mut streams, ID, 78, 500).unwrap();
    assert_eq!(
        streams.stats().receive_buffered,
        0,
        "all of the final size is credited"
    );
    assert_eq!(streams.read(ID, &mut [0; 9]), Err(ReadError::Reset(77)));
    assert_eq!(streams.read(ID, &mut [0; 9]), Err(ReadError::Closed));
    assert_eq!(streams.stats().open, 0);
}

#[test]
fn a_reset_wakes_the_reader() {
    let mut streams = accepted();
    read_all(&mut streams, ID, 0);
    events(&mut streams);
    reset(&mut streams, ID, 77, 1).unwrap();
    assert_eq!(events(&mut streams), [StreamEvent::Readable { id: ID }]);
}

#[test]
fn a_reset_after_everything_came_is_ignored() {
    let mut streams = accepted();
    deliver(&mut streams, ID, 0, 100, true).unwrap();
    reset(&mut streams, ID, 77, 100).unwrap();
    assert_eq!(read_all(&mut streams, ID, 0), (100, ReadOutcome::Finished));
}

#[test]
fn a_stream_reset_before_it_was_accepted_is_still_offered() {
    let mut streams = client();
    reset(&mut streams, ID, 77, 0).unwrap();
    assert_eq!(streams.accept(Dir::Uni), Some(ID));
    assert_eq!(streams.read(ID, &mut [0; 9]), Err(ReadError::Reset(77)));
}

#[test]
fn a_stop_drops_data_and_sends_stop_sending() {
    let mut streams = accepted();
    deliver(&mut streams, ID, 0, 400, false).unwrap();
    streams.stop(ID, 5).unwrap();
    assert_eq!(
        controls(&mut streams),
        [(ControlKey::StopSending(ID), ControlValue::Code(5))]
    );
    assert_eq!(streams.stats().receive_buffered, 0);
    assert_eq!(streams.read(ID, &mut [0; 9]), Err(ReadError::Closed));
    assert_eq!(streams.stop(ID, 5), Err(ReadError::Closed));
    events(&mut streams);
    // What still comes is counted and dropped.
    deliver(&mut streams, ID, 400, 400, false).unwrap();
    assert_eq!(streams.stats().receive_buffered, 0);
    assert_eq!(events(&mut streams), []);
    assert_eq!(streams.stats().open, 1, "the final size isn't known");
    reset(&mut streams, ID, 5, 900).unwrap();
    assert_eq!(streams.stats().open, 0);
    assert_eq!(streams.stats().receive_buffered, 0);
}

#[test]
fn a_stopped_stream_may_also_end_with_a_fin() {
    let mut streams = accepted();
    streams.stop(ID, 5).unwrap();
    deliver(&mut streams, ID, 1, 400, true).unwrap();
    assert_eq!(streams.stats().open, 0);
    assert_eq!(streams.stats().receive_buffered, 0);
}

#[test]
fn a_stop_that_comes_too_late_sends_nothing() {
    let mut streams = accepted();
    deliver(&mut streams, ID, 0, 400, true).unwrap();
    controls(&mut streams);
    streams.stop(ID, 5).unwrap();
    let granted = (ControlKey::MaxStreams(Dir::Uni), ControlValue::Limit(3));
    assert_eq!(controls(&mut streams), [granted]);
    assert_eq!(streams.stats().open, 0);
}

#[test]
fn too_many_gaps_end_the_connection() {
    let config = TransportConfig {
        stream_receive_window: ByteCount::new(1 << 16),
        receive_window: ByteCount::new(1 << 16),
        ..config()
    };
    let mut streams = client_with(&config);
    let error = (0..1 << 15).find_map(|n| deliver(&mut streams, ID, 2 * n + 1, 1, false).err());
    assert_eq!(
        error.map(|error| error.code),
        Some(ErrorCode::INTERNAL_ERROR)
    );
}
