//! Numbered payloads: the number of a UDP payload in its tunnel, and the payload.

use bytes::{Buf, Bytes};
use swiftwater_wire::{Reader, VarInt};

use crate::context::{self, ContextId};

pub use swiftwater_tecc::is_numbered;

/// The payload of an HTTP datagram in `context`: `payload` with its number.
pub fn encode(context: ContextId, number: u64, payload: &[u8]) -> Vec<u8> {
    let number = VarInt::saturating(number).encode();
    context::encode_parts(context, &[number.as_bytes(), payload])
}

/// The number and the payload of what follows the context; `None` if there is no number.
pub fn decode(mut content: Bytes) -> Option<(u64, Bytes)> {
    let mut reader = Reader::new(&content);
    let number = reader.varint().ok()?;
    let used = content.len() - reader.remaining();
    content.advance(used);
    Some((number, content))
}
