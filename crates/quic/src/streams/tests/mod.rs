//! Tests of streams by topic, and what they share.

mod assembler;
mod credit_schedule;
mod flow;
mod frame_input;
mod frame_output;
mod partial;
mod range_hints;
mod retransmission_history;
mod send_buffer;
mod send_queues;
mod stream_ids;
mod stream_scheduler;
mod transfer;

use swiftwater_units::{ByteCount, Dir, Instant, PacketNumber, PathId, Side, StreamId};
use swiftwater_wire::{ErrorCode, TransportParameters, Writer, frame};

use super::StreamEvent;
use super::{Carrier, CarrierFate, Expiry, Priority, ReadOutcome, Streams};
use crate::config::TransportConfig;
use crate::control::{ControlKey, ControlValue};
use crate::error::TransportError;
use crate::frame_writer::{Carried, Fate, FrameWriter};
use crate::observe::Purpose;

/// Small windows, so that tests reach them; they don't grow.
fn config() -> TransportConfig {
    TransportConfig {
        max_concurrent_bidi_streams: 4,
        max_concurrent_uni_streams: 2,
        stream_receive_window: ByteCount::new(1000),
        max_stream_receive_window: ByteCount::new(1000),
        receive_window: ByteCount::new(2500),
        max_receive_window: ByteCount::new(2500),
        send_window: ByteCount::new(4000),
        ..TransportConfig::default()
    }
}

/// What an end with `config` declares to its peer.
fn parameters(config: &TransportConfig) -> TransportParameters {
    TransportParameters {
        initial_max_data: config.receive_window.get(),
        initial_max_stream_data_bidi_local: config.stream_receive_window.get(),
        initial_max_stream_data_bidi_remote: config.stream_receive_window.get(),
        initial_max_stream_data_uni: config.stream_receive_window.get(),
        initial_max_streams_bidi: config.max_concurrent_bidi_streams,
        initial_max_streams_uni: config.max_concurrent_uni_streams,
        reset_stream_at: config.reset_stream_at,
        ..TransportParameters::default()
    }
}

/// A client with the parameters of its peer, which has the same configuration.
fn client_with(config: &TransportConfig) -> Streams {
    let mut streams = Streams::new(Side::Client, config);
    streams.set_peer_parameters(&parameters(config));
    streams
}

fn client() -> Streams {
    client_with(&config())
}

fn server_bidi(index: u64) -> StreamId {
    StreamId::new(Side::Server, Dir::Bi, index)
}

fn server_uni(index: u64) -> StreamId {
    StreamId::new(Side::Server, Dir::Uni, index)
}

fn client_bidi(index: u64) -> StreamId {
    StreamId::new(Side::Client, Dir::Bi, index)
}

fn client_uni(index: u64) -> StreamId {
    StreamId::new(Side::Client, Dir::Uni, index)
}

/// The byte that every test puts at `offset` of a stream.
fn byte_at(offset: u64) -> u8 {
    (offset.wrapping_mul(31) ^ (offset >> 8)) as u8
}

fn bytes_at(offset: u64, len: usize) -> Vec<u8> {
    (offset..offset + len as u64).map(byte_at).collect()
}

/// Delivers a STREAM frame with the right bytes.
fn deliver(
    streams: &mut Streams,
    id: StreamId,
    offset: u64,
    len: usize,
    fin: bool,
) -> Result<(), TransportError> {
    let data = bytes_at(offset, len);
    streams.on_stream(&frame::Stream {
        id,
        offset,
        fin,
        data: &data,
    })
}

fn reset(
    streams: &mut Streams,
    id: StreamId,
    error: u64,
    final_size: u64,
) -> Result<(), TransportError> {
    streams.on_reset_stream(&frame::ResetStream {
        id,
        error,
        final_size,
    })
}

fn reset_at(
    streams: &mut Streams,
    id: StreamId,
    error: u64,
    final_size: u64,
    reliable_size: u64,
) -> Result<(), TransportError> {
    streams.on_reset_stream_at(&frame::ResetStreamAt {
        id,
        error,
        final_size,
        reliable_size,
    })
}

fn stop_sending(streams: &mut Streams, id: StreamId, error: u64) -> Result<(), TransportError> {
    streams.on_stop_sending(&frame::StopSending { id, error })
}

#[track_caller]
fn assert_code(result: Result<(), TransportError>, code: ErrorCode) {
    assert_eq!(result.map_err(|error| error.code), Err(code));
}

/// Reads until nothing is left, checking the bytes from `offset` on; returns how many there were
/// and how it ended.
fn read_all(streams: &mut Streams, id: StreamId, mut offset: u64) -> (u64, ReadOutcome) {
    let mut total = 0;
    let mut buf = [0; 300];
    loop {
        match streams.read(id, &mut buf).unwrap() {
            ReadOutcome::Data(n) => {
                assert_eq!(buf[..n], bytes_at(offset, n));
                offset += n as u64;
                total += n as u64;
            }
            outcome => return (total, outcome),
        }
    }
}

fn events(streams: &mut Streams) -> Vec<StreamEvent> {
    std::iter::from_fn(|| streams.poll_event()).collect()
}

/// What is to be delivered now; cancellations of what was never sent are left out.
fn controls(streams: &mut Streams) -> Vec<(ControlKey, ControlValue)> {
    let all = std::iter::from_fn(|| streams.poll_control());
    let mut left: Vec<(ControlKey, ControlValue)> = Vec::new();
    for (key, value) in all {
        left.retain(|(other, _)| *other != key);
        left.extend(value.map(|value| (key, value)));
    }
    left
}

/// One packet of at most `room` bytes of STREAM frames: what it carried, and its bytes.
fn packet(streams: &mut Streams, room: usize) -> (Vec<Carried>, Vec<u8>) {
    let (carried, bytes) = write_packet(room, |writer| streams.fill(writer, PathId::ZERO));
    left(streams, &carried);
    (carried, bytes)
}

/// The packet that carried this has left.
fn left(streams: &mut Streams, carried: &[Carried]) {
    for carried in carried {
        if let &Carried::Stream {
            id,
            offset,
            len,
            purpose,
            ..
        } = carried
        {
            let carrier = fate_of_carrier(Fate::Acked).carrier;
            streams.on_frame_sent(&carrier, id, offset, len, purpose);
        }
    }
}

fn write_packet(
    room: usize,
    fill: impl FnOnce(&mut FrameWriter<'_, '_>),
) -> (Vec<Carried>, Vec<u8>) {
    let mut bytes = vec![0; room];
    let mut carried = Vec::new();
    let mut writer = Writer::new(&mut bytes);
    fill(&mut FrameWriter::new(&mut writer, room, &mut carried));
    let written = writer.written();
    bytes.truncate(written);
    (carried, bytes)
}

/// Everything that can be sent, in packets of 1200 bytes.
fn send_all(streams: &mut Streams) -> Vec<Carried> {
    let mut all = Vec::new();
    while streams.can_send() {
        let (carried, _) = packet(streams, 1200);
        assert!(
            !carried.is_empty(),
            "can_send, but an empty packet stays empty"
        );
        all.extend(carried);
    }
    all
}

fn fate(streams: &mut Streams, carried: &[Carried], fate: Fate) {
    for carried in carried {
        if let &Carried::Stream {
            id,
            offset,
            len,
            fin,
            ..
        } = carried
        {
            streams.on_frame_fate(
                &fate_of_carrier(fate),
                id,
                offset..offset + u64::from(len),
                fin,
            );
        }
    }
}

/// The fate of a packet whose number doesn't matter.
fn fate_of_carrier(fate: Fate) -> CarrierFate {
    CarrierFate {
        now: Instant::from_nanos(0),
        carrier: Carrier {
            path: PathId::ZERO,
            number: PacketNumber::new(0),
            sent_at: Instant::from_nanos(0),
        },
        fate,
        live_copies_defer_retransmission: false,
    }
}

/// The same frame, sent again.
fn again(frame: Carried, purpose: Purpose) -> Carried {
    match frame {
        Carried::Stream {
            id,
            offset,
            len,
            fin,
            ..
        } => Carried::Stream {
            id,
            offset,
            len,
            fin,
            purpose,
        },
        other => other,
    }
}

fn stream_frame(id: StreamId, offset: u64, len: u32, fin: bool) -> Carried {
    Carried::Stream {
        id,
        offset,
        len,
        fin,
        purpose: Purpose::New,
    }
}
