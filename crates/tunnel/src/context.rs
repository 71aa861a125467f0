//! Payloads of the HTTP datagrams of UDP proxying: a context identifier, and what it says the rest is (RFC 9298,
//! section 5).

use bytes::{Buf, Bytes};
use swiftwater_wire::{Reader, VarInt};

/// A context identifier (RFC 9298, section 4). 0 is UDP payloads; even values are allocated by clients, odd ones
/// by proxies.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ContextId(VarInt);

impl ContextId {
    /// UDP payloads.
    pub const UDP: Self = Self(VarInt::from_u32(0));

    /// A context of this number.
    pub const fn new(number: VarInt) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// Bytes that it takes in a datagram.
    pub const fn size(self) -> usize {
        self.0.size()
    }
}

/// What precedes a payload in [`ContextId::UDP`].
pub(crate) const UDP_HEAD: [u8; 1] = [0];

/// The payload of an HTTP datagram: `payload` in `context`.
pub fn encode(context: ContextId, payload: &[u8]) -> Vec<u8> {
    encode_parts(context, &[payload])
}

/// The same for a payload in parts.
pub(crate) fn encode_parts(context: ContextId, parts: &[&[u8]]) -> Vec<u8> {
    let head = context.0.encode();
    let head = head.as_bytes();
    let len: usize = parts.iter().map(|part| part.len()).sum();
    let mut out = Vec::with_capacity(head.len() + len);
    out.extend_from_slice(head);
    for part in parts {
        out.extend_from_slice(part);
    }
    out
}

/// The context of an HTTP datagram, and what follows; `None` if it has no context identifier.
pub fn decode(mut datagram: Bytes) -> Option<(ContextId, Bytes)> {
    let mut reader = Reader::new(&datagram);
    let number = VarInt::new(reader.varint().ok()?).ok()?;
    let used = datagram.len() - reader.remaining();
    datagram.advance(used);
    Some((ContextId(number), datagram))
}
