//! Packets that arrive before the keys that open them (RFC 9001, section 5.7).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use swiftwater_quic::crypto::EncryptionLevel;
use swiftwater_quic::observe::{Observation, Observer, ObserverFactory};
use swiftwater_quic::wire::{Frame, PacketType, PartialHeader};
use swiftwater_quic::{Event, TransportConfig};
use swiftwater_sim::{Direction, Pair, Verdict};
use swiftwater_units::{Instant, Side};

use crate::support::{CID_LEN, count, link, millis, packet_types, path};

/// The server's record of 1-RTT packets.
#[derive(Debug, Default)]
struct Record {
    /// When packets without keys arrived.
    buffered: Vec<Instant>,
    /// When packets were opened, and their numbers.
    opened: Vec<(Instant, u64)>,
    /// When ACKs were sent, the largest packet number in each and its delay.
    acks: Vec<(Instant, u64, Duration)>,
}

#[derive(Clone, Debug, Default)]
struct Recorder(Arc<Mutex<Record>>);

impl ObserverFactory for Recorder {
    fn observer(&self, side: Side) -> Option<Box<dyn Observer>> {
        (side == Side::Server).then(|| Box::new(self.clone()) as Box<dyn Observer>)
    }
}

impl Observer for Recorder {
    fn observe(&mut self, now: Instant, observation: &Observation<'_>) {
        let mut record = self.0.lock().unwrap();
        match *observation {
            Observation::PacketBuffered {
                level: EncryptionLevel::OneRtt,
                ..
            } => record.buffered.push(now),
            Observation::PacketReceived {
                level: EncryptionLevel::OneRtt,
                number,
                ..
            } => record.opened.push((now, number.get())),
            Observation::PacketSent {
                level: EncryptionLevel::OneRtt,
                payload,
                ..
            } => {
                let exponent = TransportConfig::default().ack_delay_exponent;
                for frame in payload.frames() {
                    if let Frame::Ack(ack) = frame {
                        let delay = Duration::from_micros(ack.delay << exponent);
                        record.acks.push((now, ack.largest, delay));
                    }
                }
            }
            _ => {}
        }
    }
}

/// Bytes of a datagram before its first 1-RTT packet.
fn long_headers_len(data: &[u8]) -> usize {
    let mut len = 0;
    while let Ok(header) = PartialHeader::parse(&data[len..], CID_LEN)
        && header.packet_type != PacketType::OneRtt
    {
        len += header.packet_len;
    }
    len
}

/// The end of the client's handshake arrives late, behind the only 1-RTT packet: that waits for the
/// server's keys. Its acknowledgement reports the delay since it arrived, not since it was opened, so
/// that the time it waited is no part of the round-trip time (RFC 9000, section 13.2.5).
#[test]
fn a_packet_that_waited_for_its_keys_is_acknowledged_with_the_delay_since_its_arrival() {
    let recorder = Recorder::default();
    let factory = Arc::new(recorder.clone());
    let mut pair = Pair::builder()
        .link(link(10, 20))
        .server_config(|config| config.observer = Some(factory))
        .build()
        .unwrap();
    let until = Instant::from_millis(400);
    pair.tap(Direction::ToServer, move |datagram| {
        if !packet_types(datagram.data).contains(&PacketType::Handshake) {
            return Verdict::Pass;
        }
        // Without the 1-RTT packets that a probe carries along.
        datagram.data.truncate(long_headers_len(datagram.data));
        if datagram.now < until {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    pair.start().unwrap();
    let connected = |event: &Event| *event == Event::Connected;
    assert!(pair.run_until(|pair| count(pair, Side::Client, connected) > 0));
    pair.advance(millis(5));
    pair.start_transfer(500, Direction::ToServer);
    assert!(pair.finish_transfers());
    assert!(pair.now() > until);

    let record = recorder.0.lock().unwrap();
    let &[arrived] = record.buffered.as_slice() else {
        panic!("{record:?}");
    };
    let (opened, number) = record.opened[0];
    assert!(opened > arrived + millis(250), "{record:?}");
    let mut acks = record.acks.iter().filter(|ack| ack.1 == number);
    let (sent, _, delay) = acks.next().unwrap();
    let since_arrival = *sent - arrived;
    // The frame has units of 2^3 microseconds.
    assert!(
        since_arrival.abs_diff(*delay) < Duration::from_micros(8),
        "{record:?}"
    );
    let smoothed_rtt = path(&pair, Side::Client).smoothed_rtt;
    assert!(smoothed_rtt < millis(45), "{smoothed_rtt:?}");
}
