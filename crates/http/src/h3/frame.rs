//! Frames of HTTP/3 (RFC 9114, section 7; RFC 9218, section 7.2): types, headers, and an
//! incremental parser that stores no payload.
//!
//! Which frames are permitted where is decided elsewhere.

use swiftwater_wire::VarInt;

use super::stream_type::{PartialInt, put_int};

/// Type of a frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FrameType {
    /// 0x00: content of a message.
    Data,
    /// 0x01: a field section.
    Headers,
    /// 0x03: cancels a push.
    CancelPush,
    /// 0x04: SETTINGS.
    Settings,
    /// 0x05: announces a push.
    PushPromise,
    /// 0x07: GOAWAY.
    GoAway,
    /// 0x0d: MAX_PUSH_ID.
    MaxPushId,
    /// 0xf0700: a request's priority (RFC 9218).
    PriorityUpdateRequest,
    /// 0xf0701: a push's priority (RFC 9218).
    PriorityUpdatePush,
    /// 0x41: not a frame, but the signal value at the start of a bidirectional stream of a
    /// WebTransport session.
    WebTransportStream,
    /// 0x02, 0x06, 0x08, 0x09: frames of HTTP/2 that HTTP/3 forbids (RFC 9114, section 7.2.8).
    Http2(u64),
    /// Any other, which is ignored.
    Unknown(u64),
}

impl FrameType {
    /// The type of value `n`.
    pub const fn from_wire(n: u64) -> Self {
        match n {
            0x00 => Self::Data,
            0x01 => Self::Headers,
            0x03 => Self::CancelPush,
            0x04 => Self::Settings,
            0x05 => Self::PushPromise,
            0x07 => Self::GoAway,
            0x0d => Self::MaxPushId,
            0x41 => Self::WebTransportStream,
            0xf_0700 => Self::PriorityUpdateRequest,
            0xf_0701 => Self::PriorityUpdatePush,
            0x02 | 0x06 | 0x08 | 0x09 => Self::Http2(n),
            n => Self::Unknown(n),
        }
    }

    /// Its value.
    pub const fn to_wire(self) -> u64 {
        match self {
            Self::Data => 0x00,
            Self::Headers => 0x01,
            Self::CancelPush => 0x03,
            Self::Settings => 0x04,
            Self::PushPromise => 0x05,
            Self::GoAway => 0x07,
            Self::MaxPushId => 0x0d,
            Self::PriorityUpdateRequest => 0xf_0700,
            Self::PriorityUpdatePush => 0xf_0701,
            Self::WebTransportStream => 0x41,
            Self::Http2(n) | Self::Unknown(n) => n,
        }
    }
}

/// Appends the header of a frame whose payload is `len` bytes long.
pub fn put_header(out: &mut Vec<u8>, frame_type: FrameType, len: u64) {
    out.extend_from_slice(FrameHeader::new(frame_type, len).as_bytes());
}

/// The header of a frame, encoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameHeader {
    bytes: [u8; 16],
    len: usize,
}

impl FrameHeader {
    /// Of a frame whose payload is `len` bytes long.
    pub(crate) fn new(frame_type: FrameType, len: u64) -> Self {
        let mut header = Self {
            bytes: [0; 16],
            len: 0,
        };
        for n in [frame_type.to_wire(), len] {
            let encoded = VarInt::saturating(n).encode();
            let bytes = encoded.as_bytes();
            header.bytes[header.len..header.len + bytes.len()].copy_from_slice(bytes);
            header.len += bytes.len();
        }
        header
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Appends a complete frame.
pub fn put_frame(out: &mut Vec<u8>, frame_type: FrameType, payload: &[u8]) {
    put_header(out, frame_type, payload.len() as u64);
    out.extend_from_slice(payload);
}

/// Appends a frame whose payload is one integer: GOAWAY, MAX_PUSH_ID, CANCEL_PUSH.
pub fn put_int_frame(out: &mut Vec<u8>, frame_type: FrameType, n: u64) {
    let mut payload = Vec::with_capacity(8);
    put_int(&mut payload, n);
    put_frame(out, frame_type, &payload);
}

/// Next token of the parser.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Token<'a> {
    /// Start of a frame whose payload is `len` bytes long.
    Begin {
        /// Its type.
        frame_type: FrameType,
        /// Length of the payload, bytes.
        len: u64,
    },
    /// The next bytes of the frame's payload, at least one.
    Payload(&'a [u8]),
    /// The frame is complete.
    End,
}

/// State of the parser.
#[derive(Clone, Copy, Debug)]
enum Place {
    Type,
    Length(u64),
    Payload(u64),
}

/// Incremental parser that splits a stream into frames. Holds at most one incomplete integer.
#[derive(Clone, Copy, Debug)]
pub struct FrameParser {
    place: Place,
    int: PartialInt,
}

impl Default for FrameParser {
    fn default() -> Self {
        Self {
            place: Place::Type,
            int: PartialInt::default(),
        }
    }
}

impl FrameParser {
    /// The next token, whose bytes are consumed from `data`; `None` if it needs more bytes. `End`
    /// consumes none, so call until `None`.
    pub fn next<'a>(&mut self, data: &mut &'a [u8]) -> Option<Token<'a>> {
        if matches!(self.place, Place::Type) {
            self.place = Place::Length(self.int.take(data)?);
        }
        match self.place {
            Place::Type => None,
            Place::Length(frame_type) => {
                let len = self.int.take(data)?;
                self.place = Place::Payload(len);
                let frame_type = FrameType::from_wire(frame_type);
                Some(Token::Begin { frame_type, len })
            }
            Place::Payload(0) => {
                self.place = Place::Type;
                Some(Token::End)
            }
            Place::Payload(left) => {
                let n = usize::try_from(left).map_or(data.len(), |left| left.min(data.len()));
                if n == 0 {
                    return None;
                }
                let (payload, rest) = data.split_at(n);
                *data = rest;
                self.place = Place::Payload(left - n as u64);
                Some(Token::Payload(payload))
            }
        }
    }

    /// True between two frames: a stream may end here.
    pub fn is_between_frames(&self) -> bool {
        matches!(self.place, Place::Type) && !self.int.is_partial()
    }
}
