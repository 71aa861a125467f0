//! Two ends wired together by a network that loses, repeats and reorders packets.

use proptest::prelude::*;
use swiftwater_wire::Frame;
use swiftwater_wire::frame::FrameIter;

use super::*;
use crate::control::{Control, ControlPacket};

/// Limits are not repeated here but after losses, so that time and number don't matter.
const CONTROL_PACKET: ControlPacket = ControlPacket {
    sent_at: Instant::ZERO,
    path: PathId::ZERO,
    number: PacketNumber::new(0),
};

/// A small generator, so that a failing case replays from its seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % sides
    }
}

struct Packet {
    carried: Vec<Carried>,
    bytes: Vec<u8>,
}

/// One end with what a connection adds to `Streams`.
struct End {
    streams: Streams,
    control: Control,
    /// Bytes written and still to write, per stream that this end sends on.
    writing: Vec<(StreamId, u64, u64)>,
    /// Bytes read, per stream.
    reading: Vec<(StreamId, u64, bool)>,
}

impl End {
    fn new(side: Side, config: &TransportConfig) -> Self {
        let mut streams = Streams::new(side, config);
        streams.set_peer_parameters(&parameters(config));
        Self {
            streams,
            control: Control::default(),
            writing: vec![],
            reading: vec![],
        }
    }

    fn drain_control(&mut self) {
        while let Some((key, value)) = self.streams.poll_control() {
            match value {
                Some(value) => self.control.set(key, value),
                None => self.control.cancel(key),
            }
        }
    }

    fn send(&mut self, room: usize) -> Option<Packet> {
        self.drain_control();
        let (carried, bytes) = write_packet(room, |writer| {
            self.control.fill(writer, CONTROL_PACKET);
            self.streams.fill(writer, PathId::ZERO);
        });
        left(&mut self.streams, &carried);
        self.drain_control();
        (!bytes.is_empty()).then_some(Packet { carried, bytes })
    }

    fn receive(&mut self, packet: &[u8]) {
        for frame in FrameIter::new(packet) {
            let streams = &mut self.streams;
            match frame.unwrap().1 {
                Frame::Stream(frame) => streams.on_stream(&frame),
                Frame::ResetStream(frame) => streams.on_reset_stream(&frame),
                Frame::StopSending(frame) => streams.on_stop_sending(&frame),
                Frame::MaxData { limit } => {
                    streams.on_max_data(limit);
                    Ok(())
                }
                Frame::MaxStreamData { id, limit } => streams.on_max_stream_data(id, limit),
                Frame::MaxStreams { dir, count } => {
                    streams.on_max_streams(dir, count);
                    Ok(())
                }
                Frame::StreamDataBlocked { id, .. } => streams.on_stream_data_blocked(id),
                Frame::DataBlocked { .. } | Frame::StreamsBlocked { .. } => Ok(()),
                frame => panic!("{frame:?}"),
            }
            .unwrap();
        }
        self.drain_control();
    }

    fn on_fate(&mut self, carried: &[Carried], fate: Fate) {
        for &carried in carried {
            match carried {
                Carried::Stream {
                    id,
                    offset,
                    len,
                    fin,
                    ..
                } => {
                    self.streams.on_frame_fate(
                        &fate_of_carrier(fate),
                        id,
                        offset..offset + u64::from(len),
                        fin,
                    );
                }
                Carried::Control { key, version } => {
                    self.control.on_frame_fate(key, version, fate);
                    if fate == Fate::Acked {
                        self.streams.on_control_acked(key);
                    }
                }
                _ => unreachable!(),
            }
        }
        self.drain_control();
    }

    /// Writes what can be written, and ends what is written.
    fn write(&mut self, dice: &mut Dice) {
        for (id, at, end) in &mut self.writing {
            while at < end {
                let len = (*end - *at).min(1 + dice.roll(3000)) as usize;
                let n = self.streams.write(*id, &bytes_at(*at, len)).unwrap();
                *at += n as u64;
                if n == 0 {
                    break;
                }
                if at == end {
                    self.streams.finish(*id).unwrap();
                }
            }
        }
    }

    fn read(&mut self) {
        for dir in Dir::ALL {
            while let Some(id) = self.streams.accept(dir) {
                self.reading.push((id, 0, false));
            }
        }
        for (id, at, ended) in self.reading.iter_mut().filter(|(_, _, ended)| !ended) {
            let (n, outcome) = read_all(&mut self.streams, *id, *at);
            *at += n;
            *ended = outcome == ReadOutcome::Finished;
        }
    }
}

/// Each end sends a packet, and one of its packets in flight arrives or is lost.
fn exchange(ends: &mut [End; 2], flying: &mut [Vec<Packet>; 2], loss: u64, dice: &mut Dice) {
    for from in [0, 1] {
        flying[from].extend(ends[from].send(200 + dice.roll(1200) as usize));
        if flying[from].is_empty() {
            continue;
        }
        // Any of the packets in flight is the next to arrive.
        let packet = flying[from].swap_remove(dice.roll(flying[from].len() as u64) as usize);
        if dice.roll(100) < loss {
            ends[from].on_fate(&packet.carried, Fate::Lost);
            continue;
        }
        ends[1 - from].receive(&packet.bytes);
        if dice.roll(10) == 0 {
            ends[1 - from].receive(&packet.bytes);
        }
        // Some are declared lost before the acknowledgement comes.
        if dice.roll(10) == 0 {
            ends[from].on_fate(&packet.carried, Fate::Lost);
        }
        ends[from].on_fate(&packet.carried, Fate::Acked);
    }
}

/// Moves `sizes` from the client to the server, a stream each, through a network where `loss` of
/// 100 packets vanish; one in ten is repeated, and packets overtake each other.
fn transfer(sizes: &[u64], config: &TransportConfig, loss: u64, seed: u64) {
    let dice = &mut Dice(seed);
    let mut ends = [
        End::new(Side::Client, config),
        End::new(Side::Server, config),
    ];
    let mut flying: [Vec<Packet>; 2] = [vec![], vec![]];
    let mut unopened = sizes.to_vec();
    for _ in 0..200_000 {
        while let Some(&size) = unopened.last() {
            let dir = Dir::ALL[unopened.len() % 2];
            let Some(id) = ends[0].streams.open(dir) else {
                break;
            };
            unopened.pop();
            ends[0].writing.push((id, 0, size));
            if size == 0 {
                ends[0].streams.finish(id).unwrap();
            }
        }
        ends[0].write(dice);
        ends[1].read();
        exchange(&mut ends, &mut flying, loss, dice);
        let [client, server] = &mut ends;
        for (id, read, ended) in &server.reading {
            // The answers on bidirectional streams are empty.
            if *ended && id.dir() == Dir::Bi {
                let _ = server.streams.finish(*id);
            }
            assert!(
                !ended
                    || client
                        .writing
                        .iter()
                        .any(|(other, _, end)| other == id && end == read)
            );
        }
        for (id, ..) in &client.writing {
            let _ = client.streams.read(*id, &mut [0; 1]);
        }
        if client.streams.stats().open == 0
            && server.streams.stats().open == 0
            && unopened.is_empty()
        {
            assert!(server.reading.iter().all(|(_, _, ended)| *ended));
            assert_eq!(server.reading.len(), sizes.len());
            assert_eq!(client.streams.stats().send_buffered, 0);
            assert_eq!(server.streams.stats().receive_buffered, 0);
            return;
        }
    }
    panic!(
        "stuck: {:?} {:?}",
        ends[0].streams.stats(),
        ends[1].streams.stats()
    );
}

#[test]
fn large_streams_pass_small_windows() {
    transfer(&[100_000, 50_000, 0, 1, 70_000], &config(), 0, 1);
}

#[test]
fn many_streams_pass_a_lossy_network() {
    let sizes: Vec<u64> = (0..200).map(|n| n * n % 3000).collect();
    transfer(&sizes, &config(), 30, 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn everything_arrives(
        sizes in proptest::collection::vec(prop_oneof![Just(0), 1..100u64, 1..20_000u64], 1..12),
        loss in 0..60u64,
        windows in (200..5000u64, 200..5000u64, 200..5000u64),
        growth in 1..4u64,
        seed: u64,
    ) {
        let config = TransportConfig {
            stream_receive_window: ByteCount::new(windows.0),
            max_stream_receive_window: ByteCount::new(windows.0 * growth),
            receive_window: ByteCount::new(windows.1),
            max_receive_window: ByteCount::new(windows.1 * growth),
            send_window: ByteCount::new(windows.2),
            ..config()
        };
        transfer(&sizes, &config, loss, seed);
    }
}
