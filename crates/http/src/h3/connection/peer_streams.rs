//! The peer's unidirectional streams (RFC 9114, section 6.2; RFC 9204, section 4.2): their types and
//! the dispatch of their bytes.

use std::collections::BTreeMap;

use bytes::Bytes;
use swiftwater_quic as quic;
use swiftwater_quic::{ReadChunk, ReadError};
use swiftwater_units::{Dir, Instant, StreamId};

use super::Connection;
use super::control::ControlReader;
use crate::h3::code::Code;
use crate::h3::error::Fault;
use crate::h3::frame::FrameType;
use crate::h3::settings::Settings;
use crate::h3::stream_type::{PartialInt, StreamType};

/// State of a stream of the peer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// Its type was not received yet.
    Untyped(PartialInt),
    /// The signal value of a bidirectional stream was not received yet.
    Signal(PartialInt),
    /// The session's identifier was not received yet.
    Session(PartialInt),
    Control,
    Encoder,
    Decoder,
}

/// The peer's streams that the engine reads, and their parsers.
#[derive(Debug, Default)]
pub(super) struct PeerStreams {
    streams: BTreeMap<StreamId, Kind>,
    seen: Seen,
    pub(super) control: ControlReader,
    pub(super) settings: Option<Settings>,
}

/// Types that may occur once.
#[derive(Debug, Default)]
struct Seen {
    control: bool,
    encoder: bool,
    decoder: bool,
}

impl PeerStreams {
    /// Records the type of a stream; each of these may occur once.
    fn begin(&mut self, id: StreamId, kind: Kind) -> Result<(), Fault> {
        let seen = match kind {
            Kind::Control => &mut self.seen.control,
            Kind::Encoder => &mut self.seen.encoder,
            Kind::Decoder => &mut self.seen.decoder,
            Kind::Untyped(_) | Kind::Signal(_) | Kind::Session(_) => {
                self.streams.insert(id, kind);
                return Ok(());
            }
        };
        if std::mem::replace(seen, true) {
            let reason = "a second control or QPACK stream";
            return Err(Fault::connection(Code::STREAM_CREATION_ERROR, reason));
        }
        self.streams.insert(id, kind);
        Ok(())
    }
}

/// Result of reading a stream.
enum Read {
    /// Some bytes; there may be more.
    Some(Bytes),
    Blocked,
    /// The stream ended, by FIN or reset.
    Ended,
    Lost,
}

/// The next bytes of a stream, at most `max`.
fn read(quic: &mut quic::Connection, id: StreamId, max: usize) -> Read {
    match quic.recv_stream(id).read_chunk() {
        Ok(ReadChunk::Data(chunk)) => {
            let data = chunk.data();
            let taken = Bytes::copy_from_slice(&data[..data.len().min(max)]);
            chunk.consume(taken.len());
            Read::Some(taken)
        }
        Ok(ReadChunk::Blocked) => Read::Blocked,
        Ok(ReadChunk::Finished) | Err(ReadError::Reset(_)) => Read::Ended,
        Err(_) => Read::Lost,
    }
}

impl Connection {
    pub(super) fn accept_peer_streams(&mut self, now: Instant, quic: &mut quic::Connection) {
        while self.reports.fault.is_none()
            && quic.close_reason().is_none()
            && let Some(id) = quic.accept(Dir::Uni)
        {
            let kind = Kind::Untyped(PartialInt::default());
            self.peer.streams.insert(id, kind);
            self.read_peer_stream(now, quic, id);
        }
    }

    /// A server opened a bidirectional stream, which is only permitted for a WebTransport session.
    pub(super) fn expect_session_stream(
        &mut self,
        now: Instant,
        quic: &mut quic::Connection,
        id: StreamId,
    ) {
        let kind = Kind::Signal(PartialInt::default());
        self.peer.streams.insert(id, kind);
        self.read_peer_stream(now, quic, id);
    }

    /// Reads the available data of a stream of the peer.
    pub(super) fn read_peer_stream(
        &mut self,
        now: Instant,
        quic: &mut quic::Connection,
        id: StreamId,
    ) {
        while self.reports.fault.is_none()
            && let Some(&kind) = self.peer.streams.get(&id)
        {
            let result = match kind {
                Kind::Untyped(int) => self.read_type(now, quic, id, int),
                Kind::Signal(int) => self.read_signal(quic, id, int),
                Kind::Session(int) => self.read_session(quic, id, int),
                Kind::Control | Kind::Encoder | Kind::Decoder => {
                    self.read_critical(now, quic, id, kind)
                }
            };
            match result {
                Ok(true) => {}
                Ok(false) => return,
                Err(fault) => return self.fail(now, quic, fault),
            }
        }
    }

    /// True if more data may be available.
    fn read_critical(
        &mut self,
        now: Instant,
        quic: &mut quic::Connection,
        id: StreamId,
        kind: Kind,
    ) -> Result<bool, Fault> {
        match read(quic, id, usize::MAX) {
            Read::Some(data) => {
                match kind {
                    Kind::Encoder => self.on_encoder_bytes(now, quic, &data)?,
                    Kind::Decoder => self.compression.on_decoder_bytes(&data)?,
                    _ => self.on_control_bytes(now, quic, &data)?,
                }
                Ok(true)
            }
            Read::Blocked | Read::Lost => Ok(false),
            Read::Ended => Err(Fault::connection(
                Code::CLOSED_CRITICAL_STREAM,
                "a control or QPACK stream ended",
            )),
        }
    }

    /// Reads the type integer of a stream, one byte at a time: the bytes after it may belong to the
    /// application. `None` if it is incomplete or never completes; the stream may then be gone.
    fn read_int(
        &mut self,
        quic: &mut quic::Connection,
        id: StreamId,
        mut int: PartialInt,
        keep: impl Fn(PartialInt) -> Kind,
    ) -> Option<u64> {
        loop {
            match read(quic, id, 1) {
                Read::Some(byte) => {
                    if let Some(value) = int.take(&mut &byte[..]) {
                        return Some(value);
                    }
                }
                Read::Blocked => {
                    self.peer.streams.insert(id, keep(int));
                    return None;
                }
                // The end of a stream before its type is no error (RFC 9114, section 6.2).
                Read::Ended | Read::Lost => {
                    self.peer.streams.remove(&id);
                    return None;
                }
            }
        }
    }

    fn read_type(
        &mut self,
        now: Instant,
        quic: &mut quic::Connection,
        id: StreamId,
        int: PartialInt,
    ) -> Result<bool, Fault> {
        let Some(value) = self.read_int(quic, id, int, Kind::Untyped) else {
            return Ok(false);
        };
        match StreamType::from_wire(value) {
            StreamType::Control => self.peer.begin(id, Kind::Control)?,
            StreamType::QpackEncoder => self.peer.begin(id, Kind::Encoder)?,
            StreamType::QpackDecoder => self.peer.begin(id, Kind::Decoder)?,
            StreamType::Push if self.side.is_server() => {
                let reason = "a push stream of a client";
                return Err(Fault::connection(Code::STREAM_CREATION_ERROR, reason));
            }
            StreamType::Push => {
                // This end permits no pushes (RFC 9114, section 4.6).
                let reason = "a push stream although no push is permitted";
                return Err(Fault::connection(Code::ID_ERROR, reason));
            }
            StreamType::WebTransport if self.offers_sessions() => {
                self.peer.begin(id, Kind::Session(PartialInt::default()))?;
            }
            StreamType::WebTransport | StreamType::Unknown(_) => {
                self.refuse_unknown(now, quic, id)?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A stream of an unknown type is stopped (RFC 9114, section 6.2).
    fn refuse_unknown(
        &mut self,
        now: Instant,
        quic: &mut quic::Connection,
        id: StreamId,
    ) -> Result<(), Fault> {
        self.peer.streams.remove(&id);
        self.reports.stats.unknown_streams += 1;
        let _ = quic.recv_stream(id).stop(Code::STREAM_CREATION_ERROR.0);
        if !self.budgets.unknown_streams.spend(now) {
            let reason = "too many streams of unknown types";
            return Err(Fault::connection(Code::EXCESSIVE_LOAD, reason));
        }
        Ok(())
    }

    fn read_signal(
        &mut self,
        quic: &mut quic::Connection,
        id: StreamId,
        int: PartialInt,
    ) -> Result<bool, Fault> {
        let Some(value) = self.read_int(quic, id, int, Kind::Signal) else {
            return Ok(false);
        };
        if value != FrameType::WebTransportStream.to_wire() {
            // RFC 9114, section 6.1.
            let reason = "a bidirectional stream of a server without a session";
            return Err(Fault::connection(Code::STREAM_CREATION_ERROR, reason));
        }
        let kind = Kind::Session(PartialInt::default());
        self.peer.begin(id, kind)?;
        Ok(true)
    }

    fn read_session(
        &mut self,
        quic: &mut quic::Connection,
        id: StreamId,
        int: PartialInt,
    ) -> Result<bool, Fault> {
        if let Some(session) = self.read_int(quic, id, int, Kind::Session) {
            self.peer.streams.remove(&id);
            self.on_session_stream(quic, session, id)?;
        }
        Ok(false)
    }
}
