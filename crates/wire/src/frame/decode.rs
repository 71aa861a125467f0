//! Decodes the frames of a packet's payload, one at a time and without copying.

use swiftwater_units::{Dir, PathId, StreamId};
use thiserror::Error;

use super::ack::Ack;
use super::feedback;
use super::multipath::{self, PathFrame};
use super::{
    AckFrequency, ConnectionClose, Crypto, Frame, NewConnectionId, ResetStream, ResetStreamAt,
    StopSending, Stream,
};
use super::{MAX_STREAMS, STREAM_FIN, STREAM_LEN, STREAM_OFF, types};
use crate::coding::Reader;
use crate::connection_id::{ConnectionId, ResetToken};
use crate::error::{DecodeError, ErrorCode};
use crate::multipath_version::MultipathVersion;
use crate::varint::VarInt;

/// Why a payload could not be decoded further, and in which frame.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("frame of type {frame_type:#x}: {error}")]
pub struct FrameError {
    /// Type of the offending frame (for `CONNECTION_CLOSE`); 0 if the type could not be read.
    pub frame_type: u64,
    /// The error.
    pub error: DecodeError,
}

impl FrameError {
    /// The code to close the connection with if the bytes were authenticated.
    pub const fn error_code(&self) -> ErrorCode {
        let version = MultipathVersion::of_frame(self.frame_type);
        match (self.error, version) {
            // draft-ietf-quic-multipath-10, section 7.
            (DecodeError::PathIdTooLarge(_), Some(MultipathVersion::Draft10)) => {
                ErrorCode::MP_PROTOCOL_VIOLATION
            }
            (error, _) => error.error_code(),
        }
    }
}

/// The frames of a packet's payload in order, each with its type as received.
///
/// Frames of every version of the multipath extension are read; [`MultipathVersion::of_frame`] says which one
/// defines a type. Consecutive padding bytes are returned as one [`Frame::Padding`]. Nothing follows an error. An
/// empty payload yields nothing; the caller treats it as a protocol violation (RFC 9000, section
/// 12.4).
#[derive(Clone, Debug)]
pub struct FrameIter<'a> {
    rest: Reader<'a>,
}

impl<'a> FrameIter<'a> {
    /// Reads the frames of `payload`, the plaintext after the packet number.
    pub const fn new(payload: &'a [u8]) -> Self {
        Self {
            rest: Reader::new(payload),
        }
    }
}

impl<'a> Iterator for FrameIter<'a> {
    type Item = Result<(u64, Frame<'a>), FrameError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let mut frame_type = 0;
        let result = read_type(&mut self.rest, &mut frame_type)
            .and_then(|()| read_frame(&mut self.rest, frame_type));
        Some(match result {
            Ok(frame) => Ok((frame_type, frame)),
            Err(error) => {
                self.rest.take_rest();
                Err(FrameError { frame_type, error })
            }
        })
    }
}

fn read_type(r: &mut Reader<'_>, frame_type: &mut u64) -> Result<(), DecodeError> {
    let before = r.remaining();
    *frame_type = r.varint()?;
    if before - r.remaining() == VarInt::saturating(*frame_type).size() {
        Ok(())
    } else {
        Err(DecodeError::NonMinimalFrameType(*frame_type))
    }
}

fn read_frame<'a>(r: &mut Reader<'a>, frame_type: u64) -> Result<Frame<'a>, DecodeError> {
    Ok(match frame_type {
        types::PADDING => read_padding(r),
        types::PING => Frame::Ping,
        types::ACK | types::ACK_ECN => {
            Frame::Ack(Ack::read(r, None, frame_type == types::ACK_ECN)?)
        }
        types::CRYPTO => Frame::Crypto(read_crypto(r)?),
        types::NEW_TOKEN => match r.length_prefixed()? {
            [] => return Err(DecodeError::Invalid("an empty token in NEW_TOKEN")),
            token => Frame::NewToken { token },
        },
        types::STREAM..=0x0f => Frame::Stream(read_stream(r, frame_type)?),
        types::RESET_STREAM
        | types::STOP_SENDING
        | types::MAX_DATA..=types::STREAMS_BLOCKED_UNI => read_stream_control(r, frame_type)?,
        types::NEW_CONNECTION_ID => Frame::NewConnectionId(read_new_cid(r, None)?),
        types::RETIRE_CONNECTION_ID => Frame::RetireConnectionId {
            path: None,
            sequence: r.varint()?,
        },
        types::PATH_CHALLENGE => Frame::PathChallenge { data: r.array()? },
        types::PATH_RESPONSE => Frame::PathResponse { data: r.array()? },
        types::CONNECTION_CLOSE | types::CONNECTION_CLOSE_APP => {
            Frame::ConnectionClose(read_close(r, frame_type)?)
        }
        types::HANDSHAKE_DONE => Frame::HandshakeDone,
        types::IMMEDIATE_ACK => Frame::ImmediateAck,
        types::ACK_FREQUENCY => Frame::AckFrequency(AckFrequency {
            sequence: r.varint()?,
            ack_eliciting_threshold: r.varint()?,
            max_ack_delay: r.varint()?,
            reordering_threshold: r.varint()?,
        }),
        types::RESET_STREAM_AT => Frame::ResetStreamAt(read_reset_at(r)?),
        types::DATAGRAM => Frame::Datagram {
            data: r.take_rest(),
        },
        types::DATAGRAM_LEN => Frame::Datagram {
            data: r.length_prefixed()?,
        },
        types::FEEDBACK => feedback::read(r, true)?,
        types::FEEDBACK_NOT_ELICITING => feedback::read(r, false)?,
        _ => match PathFrame::of(frame_type) {
            Some((version, frame)) => multipath::read(r, version, frame)?,
            None => return Err(DecodeError::UnknownFrame(frame_type)),
        },
    })
}

/// Bytes of padding that are compared at once.
const PADDING_BLOCK: usize = 16;

/// The padding byte that was the frame type, and those directly after it.
fn read_padding<'a>(r: &mut Reader<'a>) -> Frame<'a> {
    let rest = r.take_rest();
    // Initial packets have some hundred bytes of padding: whole blocks first.
    let blocks = rest.chunks_exact(PADDING_BLOCK);
    let zeros = blocks
        .take_while(|block| **block == [0; PADDING_BLOCK])
        .count()
        * PADDING_BLOCK;
    let more = rest[zeros..]
        .iter()
        .position(|&byte| byte != 0)
        .map_or(rest.len(), |at| zeros + at);
    *r = Reader::new(&rest[more..]);
    Frame::Padding { length: 1 + more }
}

fn read_stream_control<'a>(r: &mut Reader<'a>, frame_type: u64) -> Result<Frame<'a>, DecodeError> {
    Ok(match frame_type {
        types::RESET_STREAM => Frame::ResetStream(ResetStream {
            id: read_stream_id(r)?,
            error: r.varint()?,
            final_size: r.varint()?,
        }),
        types::STOP_SENDING => Frame::StopSending(StopSending {
            id: read_stream_id(r)?,
            error: r.varint()?,
        }),
        types::MAX_DATA => Frame::MaxData { limit: r.varint()? },
        types::MAX_STREAM_DATA => Frame::MaxStreamData {
            id: read_stream_id(r)?,
            limit: r.varint()?,
        },
        types::MAX_STREAMS_BIDI => Frame::MaxStreams {
            dir: Dir::Bi,
            count: read_streams(r)?,
        },
        types::MAX_STREAMS_UNI => Frame::MaxStreams {
            dir: Dir::Uni,
            count: read_streams(r)?,
        },
        types::DATA_BLOCKED => Frame::DataBlocked { limit: r.varint()? },
        types::STREAM_DATA_BLOCKED => Frame::StreamDataBlocked {
            id: read_stream_id(r)?,
            limit: r.varint()?,
        },
        types::STREAMS_BLOCKED_BIDI => Frame::StreamsBlocked {
            dir: Dir::Bi,
            limit: read_streams(r)?,
        },
        types::STREAMS_BLOCKED_UNI => Frame::StreamsBlocked {
            dir: Dir::Uni,
            limit: read_streams(r)?,
        },
        _ => return Err(DecodeError::UnknownFrame(frame_type)),
    })
}

fn read_reset_at(r: &mut Reader<'_>) -> Result<ResetStreamAt, DecodeError> {
    let reset = ResetStreamAt {
        id: read_stream_id(r)?,
        error: r.varint()?,
        final_size: r.varint()?,
        reliable_size: r.varint()?,
    };
    if reset.reliable_size > reset.final_size {
        return Err(DecodeError::Invalid("a Reliable Size above the Final Size"));
    }
    Ok(reset)
}

fn read_stream_id(r: &mut Reader<'_>) -> Result<StreamId, DecodeError> {
    r.varint().map(StreamId::from_wire)
}

/// A number of streams; with more than 2^60 the last stream ID could not be encoded.
fn read_streams(r: &mut Reader<'_>) -> Result<u64, DecodeError> {
    match r.varint()? {
        count @ 0..=MAX_STREAMS => Ok(count),
        _ => Err(DecodeError::Invalid("a stream count above 2^60")),
    }
}

/// Offsets are 62-bit, so the sum can't overflow a u64, but it may exceed a varint.
fn check_end(offset: u64, data: &[u8]) -> Result<(), DecodeError> {
    if offset + data.len() as u64 > VarInt::MAX.get() {
        return Err(DecodeError::Invalid(
            "data that ends beyond offset 2^62 - 1",
        ));
    }
    Ok(())
}

fn read_crypto<'a>(r: &mut Reader<'a>) -> Result<Crypto<'a>, DecodeError> {
    let offset = r.varint()?;
    let data = r.length_prefixed()?;
    check_end(offset, data)?;
    Ok(Crypto { offset, data })
}

fn read_stream<'a>(r: &mut Reader<'a>, frame_type: u64) -> Result<Stream<'a>, DecodeError> {
    let id = read_stream_id(r)?;
    let offset = if frame_type & STREAM_OFF != 0 {
        r.varint()?
    } else {
        0
    };
    let data = if frame_type & STREAM_LEN != 0 {
        r.length_prefixed()?
    } else {
        r.take_rest()
    };
    check_end(offset, data)?;
    Ok(Stream {
        id,
        offset,
        fin: frame_type & STREAM_FIN != 0,
        data,
    })
}

pub(super) fn read_new_cid(
    r: &mut Reader<'_>,
    path: Option<PathId>,
) -> Result<NewConnectionId, DecodeError> {
    let sequence = r.varint()?;
    let retire_prior_to = r.varint()?;
    if retire_prior_to > sequence {
        return Err(DecodeError::Invalid(
            "Retire Prior To above the Sequence Number",
        ));
    }
    let length = r.u8()?;
    if !(1..=20).contains(&length) {
        return Err(DecodeError::Invalid(
            "a new connection ID that is not of 1 to 20 bytes",
        ));
    }
    let cid = ConnectionId::new(r.bytes(usize::from(length))?).ok_or(DecodeError::Invalid(
        "a connection ID of more than 20 bytes",
    ))?;
    let reset_token = ResetToken(r.array()?);
    Ok(NewConnectionId {
        path,
        sequence,
        retire_prior_to,
        cid,
        reset_token,
    })
}

fn read_close<'a>(r: &mut Reader<'a>, frame_type: u64) -> Result<ConnectionClose<'a>, DecodeError> {
    let error = r.varint()?;
    if frame_type == types::CONNECTION_CLOSE_APP {
        return Ok(ConnectionClose::Application {
            error,
            reason: r.length_prefixed()?,
        });
    }
    let error = ErrorCode(error);
    let frame_type = r.varint()?;
    Ok(ConnectionClose::Transport {
        error,
        frame_type,
        reason: r.length_prefixed()?,
    })
}
