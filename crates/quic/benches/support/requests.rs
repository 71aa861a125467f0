//! Small requests over the perfect wire, each on a stream of its own.

use std::time::Duration;

use swiftwater_quic::{Connection, Event, ReadOutcome, RetryPolicy, StreamEvent, TransportConfig};
use swiftwater_units::{Dir, StreamId};

use crate::support::{Wire, establish};

/// Bytes of a request.
const UP: usize = 100;
/// Bytes of a response.
const DOWN: usize = 1024;

/// A connection, and requests in flight on it.
pub(crate) struct Requests {
    /// Both ends.
    pub(crate) wire: Wire,
    in_flight: usize,
    up: Vec<u8>,
    down: Vec<u8>,
    sink: Vec<u8>,
    opened: Vec<StreamId>,
}

impl Requests {
    pub(crate) fn new(real_tls: bool, in_flight: usize) -> Self {
        let config = TransportConfig {
            initial_max_datagram_size: 1452,
            pacing: false,
            ..TransportConfig::default()
        };
        let mut wire = Wire::with(real_tls, RetryPolicy::Never, config);
        establish(&mut wire);
        let mut requests = Self {
            wire,
            in_flight,
            up: vec![7; UP],
            down: vec![8; DOWN],
            sink: vec![0; 4096],
            opened: Vec::new(),
        };
        // Past slow start and every buffer's growth.
        for _ in 0..64 {
            requests.round();
        }
        requests
    }

    /// As many requests as may be in flight: all go out, all are answered.
    pub(crate) fn round(&mut self) {
        let client = self.wire.client.connection();
        for _ in 0..self.in_flight {
            let id = client.open(Dir::Bi).unwrap();
            let mut stream = client.send_stream(id);
            assert_eq!(stream.write(&self.up), Ok(UP));
            stream.finish().unwrap();
        }
        self.wire.step(Duration::ZERO);
        self.opened.clear();
        let events = std::mem::take(&mut self.wire.server.events);
        let server = self.wire.server.connection();
        for event in &events {
            match *event {
                Event::Stream(StreamEvent::Opened { dir }) => {
                    while let Some(id) = server.accept(dir) {
                        self.opened.push(id);
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) => self.opened.push(id),
                _ => {}
            }
        }
        let mut answered = 0;
        for &id in &self.opened {
            if read(server, id, &mut self.sink) {
                let mut stream = server.send_stream(id);
                assert_eq!(stream.write(&self.down), Ok(DOWN));
                stream.finish().unwrap();
                answered += 1;
            }
        }
        assert_eq!(answered, self.in_flight);
        self.wire.server.events = events;
        self.wire.server.events.clear();
        self.wire.step(Duration::ZERO);
        let events = std::mem::take(&mut self.wire.client.events);
        let client = self.wire.client.connection();
        let mut complete = 0;
        for event in &events {
            if let Event::Stream(StreamEvent::Readable { id }) = *event {
                complete += usize::from(read(client, id, &mut self.sink));
            }
        }
        assert_eq!(complete, self.in_flight);
        self.wire.client.events = events;
        self.wire.client.events.clear();
    }

    /// Packets sent by the client and by the server.
    pub(crate) fn packets(&mut self) -> [u64; 2] {
        [&mut self.wire.client, &mut self.wire.server]
            .map(|peer| peer.connection().stats().packets_sent.get())
    }
}

/// Reads what is there; true at the end of the stream.
fn read(connection: &mut Connection, id: StreamId, sink: &mut [u8]) -> bool {
    loop {
        match connection.recv_stream(id).read(sink) {
            Ok(ReadOutcome::Data(_)) => {}
            Ok(ReadOutcome::Finished) => return true,
            Ok(ReadOutcome::Blocked) | Err(_) => return false,
        }
    }
}
