//! The Capsule Protocol (RFC 9297, section 3): messages on the data stream of an extended CONNECT
//! request. Applications pass the request's content through a [`CapsuleReader`].

use bytes::{Buf, Bytes};
use thiserror::Error;

use super::stream_type::{PartialInt, put_int};

/// Types of capsules.
pub mod capsule_type {
    /// An HTTP datagram (RFC 9297, section 3.5).
    pub const DATAGRAM: u64 = 0x00;
    /// Ends a WebTransport session (draft-ietf-webtrans-http3, section 5).
    pub const CLOSE_WEBTRANSPORT_SESSION: u64 = 0x2843;
    /// Asks for the end of a WebTransport session (draft-ietf-webtrans-http3, section 4.7).
    pub const DRAIN_WEBTRANSPORT_SESSION: u64 = 0x78ae;
}

/// One capsule.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Capsule {
    /// Its type; unknown types are ignored.
    pub capsule_type: u64,
    /// Its value.
    pub value: Bytes,
}

impl Capsule {
    /// A datagram.
    pub fn datagram(payload: Bytes) -> Self {
        Self {
            capsule_type: capsule_type::DATAGRAM,
            value: payload,
        }
    }

    /// Appends the encoded capsule.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_int(out, self.capsule_type);
        put_int(out, self.value.len() as u64);
        out.extend_from_slice(&self.value);
    }
}

/// The data stream ended within a capsule: the message is malformed (RFC 9297, section 3.3).
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("the data stream ended within a capsule")]
pub struct TruncatedCapsule;

#[derive(Clone, Copy, Debug)]
enum Place {
    Type,
    Length(u64),
    Value { capsule_type: u64, left: u64 },
    Skip(u64),
}

/// Incremental parser that splits a data stream into capsules, however it is fragmented.
#[derive(Debug)]
pub struct CapsuleReader {
    place: Place,
    int: PartialInt,
    value: Vec<u8>,
    max_value: u64,
    skipped: u64,
    passed_over: Option<u64>,
}

impl CapsuleReader {
    /// A reader that keeps values of up to `max_value` bytes; longer ones are skipped, as RFC 9297
    /// permits for datagrams (section 3.5) and requires for unknown capsules.
    pub fn new(max_value: u64) -> Self {
        Self {
            place: Place::Type,
            int: PartialInt::default(),
            value: Vec::new(),
            max_value,
            skipped: 0,
            passed_over: None,
        }
    }

    /// The type of the last capsule that was skipped for its length.
    pub fn passed_over(&self) -> Option<u64> {
        self.passed_over
    }

    /// Capsules skipped for their length.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The next capsule, whose bytes are consumed from `data`; `None` if it needs more bytes.
    pub fn next(&mut self, data: &mut Bytes) -> Option<Capsule> {
        loop {
            match self.place {
                Place::Type => self.place = Place::Length(self.int(data)?),
                Place::Length(capsule_type) => {
                    let left = self.int(data)?;
                    self.place = if left > self.max_value {
                        self.skipped += 1;
                        self.passed_over = Some(capsule_type);
                        Place::Skip(left)
                    } else {
                        Place::Value { capsule_type, left }
                    };
                }
                Place::Value { capsule_type, left } => {
                    let n = (data.len() as u64).min(left);
                    let part = data.split_to(n as usize);
                    if n < left {
                        self.value.extend_from_slice(&part);
                        let left = left - n;
                        self.place = Place::Value { capsule_type, left };
                        return None;
                    }
                    self.place = Place::Type;
                    let value = if self.value.is_empty() {
                        part
                    } else {
                        self.value.extend_from_slice(&part);
                        std::mem::take(&mut self.value).into()
                    };
                    return Some(Capsule {
                        capsule_type,
                        value,
                    });
                }
                Place::Skip(left) => {
                    let n = (data.len() as u64).min(left);
                    data.advance(n as usize);
                    if n < left {
                        self.place = Place::Skip(left - n);
                        return None;
                    }
                    self.place = Place::Type;
                }
            }
        }
    }

    /// Must be called at the end of the data stream.
    pub fn finish(&self) -> Result<(), TruncatedCapsule> {
        let between = matches!(self.place, Place::Type) && !self.int.is_partial();
        between.then_some(()).ok_or(TruncatedCapsule)
    }

    fn int(&mut self, data: &mut Bytes) -> Option<u64> {
        let mut rest = &data[..];
        let n = self.int.take(&mut rest);
        let used = data.len() - rest.len();
        data.advance(used);
        n
    }
}
