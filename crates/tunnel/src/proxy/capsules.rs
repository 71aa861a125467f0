//! Capsules of clients: UDP payloads in DATAGRAM capsules, for clients without datagrams below HTTP (RFC 9297,
//! section 3.5), and connection IDs.

use bytes::Bytes;
use swiftwater_http::h3::capsule::{Capsule, CapsuleReader, capsule_type};
use thiserror::Error;

use crate::MAX_UDP_PAYLOAD;
use crate::context::{self, ContextId};
use crate::forwarding::{CidCapsule, CidCapsuleError};

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
    /// A capsule of connection IDs is malformed.
    #[error(transparent)]
    Cid(#[from] CidCapsuleError),
}

/// What a client sends in a capsule.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum FromClient {
    /// The payload of an HTTP datagram.
    Datagram(Bytes),
    /// Something about connection IDs.
    Cid(CidCapsule),
}

/// The capsules in the content of a request.
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

    /// The next piece of the content; the capsules of the previous ones were taken.
    pub(super) fn push(&mut self, piece: Bytes) {
        self.piece = piece;
    }

    /// The next capsule; `None` if it needs more content. Those of other types are skipped.
    pub(super) fn next(&mut self) -> Result<Option<FromClient>, CapsuleError> {
        while let Some(capsule) = self.reader.next(&mut self.piece) {
            if self.reader.passed_over() == Some(capsule_type::DATAGRAM) {
                return Err(CapsuleError::Large);
            }
            if capsule.capsule_type == capsule_type::DATAGRAM {
                return match context::decode(capsule.value.clone()) {
                    Some((ContextId::UDP, payload)) if payload.len() > MAX_UDP_PAYLOAD => {
                        Err(CapsuleError::Large)
                    }
                    _ => Ok(Some(FromClient::Datagram(capsule.value))),
                };
            }
            if let Some(capsule) = CidCapsule::decode(&capsule)? {
                return Ok(Some(FromClient::Cid(capsule)));
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
