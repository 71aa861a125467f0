//! UDP payloads in DATAGRAM capsules: for clients without datagrams below HTTP (RFC 9297, section 3.5).

use bytes::Bytes;
use swiftwater_http::h3::capsule::{Capsule, CapsuleReader, capsule_type};
use thiserror::Error;

use crate::MAX_UDP_PAYLOAD;

/// The longest context identifier, bytes.
const MAX_CONTEXT: usize = 8;

/// Content that is no sequence of capsules, or has a datagram that is too large.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub(super) enum CapsuleError {
    /// The content ends within a capsule.
    #[error("the content ends within a capsule")]
    Truncated,
    /// A datagram can't be a UDP payload (RFC 9298, section 5).
    #[error("a datagram is larger than a UDP payload")]
    Large,
}

/// The datagrams in the content of a request.
#[derive(Debug)]
pub(super) struct Capsules {
    reader: CapsuleReader,
    piece: Bytes,
}

impl Capsules {
    pub(super) fn new() -> Self {
        Self {
            reader: CapsuleReader::new((MAX_CONTEXT + MAX_UDP_PAYLOAD) as u64),
            piece: Bytes::new(),
        }
    }

    /// The next piece of the content; the datagrams of the previous ones were taken.
    pub(super) fn push(&mut self, piece: Bytes) {
        self.piece = piece;
    }

    /// The payload of the next datagram; `None` if it needs more content. Other capsules are skipped.
    pub(super) fn next(&mut self) -> Result<Option<Bytes>, CapsuleError> {
        while let Some(capsule) = self.reader.next(&mut self.piece) {
            if self.reader.passed_over() == Some(capsule_type::DATAGRAM) {
                return Err(CapsuleError::Large);
            }
            if capsule.capsule_type == capsule_type::DATAGRAM {
                return Ok(Some(capsule.value));
            }
        }
        if self.reader.passed_over() == Some(capsule_type::DATAGRAM) {
            return Err(CapsuleError::Large);
        }
        Ok(None)
    }

    /// The content is over.
    pub(super) fn finish(&self) -> Result<(), CapsuleError> {
        self.reader.finish().map_err(|_| CapsuleError::Truncated)
    }
}

/// A datagram in its capsule.
pub(super) fn encode(payload: Vec<u8>) -> Bytes {
    let mut out = Vec::with_capacity(payload.len() + 2 * MAX_CONTEXT);
    Capsule::datagram(payload.into()).encode(&mut out);
    out.into()
}
