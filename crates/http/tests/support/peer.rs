//! A peer that is driven by hand, byte by byte, against an engine.

use swiftwater_http::h3::frame::{FrameType, put_frame};
use swiftwater_http::h3::{Code, Config};
use swiftwater_http::qpack::{Encoder, EncoderConfig, Field};
use swiftwater_quic::{ConnectionError, Event as QuicEvent, ReadError, ReadOutcome, StreamEvent};
use swiftwater_sim::{Pair, PairBuilder};
use swiftwater_units::{Dir, Side, StreamId};

use super::World;

/// A control stream with SETTINGS that say nothing.
pub const CONTROL: &[u8] = &[0x00, 0x04, 0x00];

/// A field section without the dynamic table.
pub fn section(fields: &[(&str, &str)]) -> Vec<u8> {
    let fields: Vec<_> = fields
        .iter()
        .map(|(name, value)| Field::new(name.as_bytes().to_vec(), value.as_bytes().to_vec()))
        .collect();
    let mut out = Vec::new();
    Encoder::new(EncoderConfig::default()).encode(0, &fields, &mut out);
    out
}

/// A HEADERS frame.
pub fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
    frame(FrameType::Headers, &section(fields))
}

pub fn frame(frame_type: FrameType, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_frame(&mut out, frame_type, payload);
    out
}

/// A GET request.
pub fn get() -> Vec<u8> {
    headers(&[
        (":method", "GET"),
        (":scheme", "https"),
        (":authority", "example.org"),
        (":path", "/"),
    ])
}

/// An engine on one side, raw bytes on the other.
pub struct Duel {
    pub world: World,
    /// The side that is driven by hand.
    pub raw: Side,
    pub told: Vec<QuicEvent>,
}

impl Duel {
    /// The handshake is complete and nothing was said.
    pub fn new(engine: Side, config: Config) -> Self {
        Self::with(Pair::builder(), engine, config)
    }

    pub fn with(builder: PairBuilder, engine: Side, config: Config) -> Self {
        let mut world = World::with(builder, config, config);
        world.raw = Some(!engine);
        let mut duel = Self {
            world,
            raw: !engine,
            told: Vec::new(),
        };
        assert!(duel.run(|duel| duel.told.contains(&QuicEvent::Connected)));
        duel
    }

    /// As [`Duel::new`], and the peer's control stream says what it must.
    pub fn ready(engine: Side, config: Config) -> Self {
        let mut duel = Self::new(engine, config);
        duel.uni(CONTROL);
        assert!(duel.run(|duel| {
            let engine = duel.world.side(engine);
            engine.engine.peer_settings().is_some()
        }));
        duel
    }

    pub fn run(&mut self, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let raw = self.raw;
        for _ in 0..20_000 {
            self.world.turn();
            self.told.extend(self.world.pair.take_events(raw));
            if done(self) {
                return true;
            }
            self.world.pair.advance(super::millis(1));
        }
        false
    }

    pub fn quic(&mut self) -> &mut swiftwater_quic::Connection {
        let raw = self.raw;
        self.world.pair.connection(raw).expect("a connection")
    }

    /// Opens a unidirectional stream with these bytes.
    pub fn uni(&mut self, bytes: &[u8]) -> StreamId {
        let id = self.quic().open(Dir::Uni).expect("credit for a stream");
        self.write(id, bytes);
        id
    }

    /// Opens a bidirectional stream with these bytes, and ends it if `fin`.
    pub fn bidi(&mut self, bytes: &[u8], fin: bool) -> StreamId {
        let id = self.quic().open(Dir::Bi).expect("credit for a stream");
        self.write(id, bytes);
        if fin {
            self.quic()
                .send_stream(id)
                .finish()
                .expect("an open stream");
        }
        id
    }

    pub fn write(&mut self, id: StreamId, bytes: &[u8]) {
        let written = self.quic().send_stream(id).write(bytes);
        assert_eq!(written, Ok(bytes.len()));
    }

    /// Reads what a stream of the engine has, and how it ended if it did.
    pub fn read(&mut self, id: StreamId) -> (Vec<u8>, Option<Result<(), ReadError>>) {
        let mut data = Vec::new();
        let mut buffer = [0; 1024];
        loop {
            match self.quic().recv_stream(id).read(&mut buffer) {
                Ok(ReadOutcome::Data(n)) => data.extend_from_slice(&buffer[..n]),
                Ok(ReadOutcome::Blocked) => return (data, None),
                Ok(ReadOutcome::Finished) => return (data, Some(Ok(()))),
                Err(error) => return (data, Some(Err(error))),
            }
        }
    }

    /// Runs until the engine closes the connection, and returns the code.
    pub fn closed_with(&mut self) -> Code {
        let code = |duel: &Self| {
            duel.told.iter().find_map(|event| match event {
                QuicEvent::Closed {
                    reason: ConnectionError::PeerApplication { code, .. },
                } => Some(Code(*code)),
                _ => None,
            })
        };
        assert!(self.run(|duel| code(duel).is_some()), "never closed");
        code(self).expect("just seen")
    }

    /// Runs until the engine resets stream `id`, and returns the code of its RESET_STREAM.
    pub fn reset_with(&mut self, id: StreamId) -> Code {
        let mut found = None;
        let closed = self.run(|duel| {
            if let (_, Some(Err(ReadError::Reset(code)))) = duel.read(id) {
                found = Some(Code(code));
            }
            found.is_some()
        });
        assert!(closed, "never reset: {:?}", self.told);
        found.expect("just seen")
    }

    /// The code with which the engine stopped reading `id`.
    pub fn stopped_with(&mut self, id: StreamId) -> Code {
        let stop = |duel: &Self| {
            duel.told.iter().find_map(|event| match event {
                QuicEvent::Stream(StreamEvent::Stopped { id: each, code }) if *each == id => {
                    Some(Code(*code))
                }
                _ => None,
            })
        };
        assert!(self.run(|duel| stop(duel).is_some()), "never stopped");
        stop(self).expect("just seen")
    }

    /// Runs for a while; the connection is still there.
    pub fn survives(&mut self) {
        for _ in 0..300 {
            self.world.turn();
            self.told.extend(self.world.pair.take_events(self.raw));
            self.world.pair.advance(super::millis(1));
        }
        let closed = self
            .told
            .iter()
            .any(|event| matches!(event, QuicEvent::Closed { .. }));
        assert!(!closed, "closed: {:?}", self.told);
    }
}
