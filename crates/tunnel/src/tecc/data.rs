//! Numbered payloads: the number of a UDP payload in its tunnel, and the payload.

use bytes::{Buf, Bytes};
use swiftwater_wire::{Reader, VarInt};

use crate::context::{self, ContextId};

/// Whether a UDP payload is numbered: packets of QUIC with a long header are not, so that they need no more room
/// than in plain tunnels.
pub fn is_numbered(payload: &[u8]) -> bool {
    payload.first().is_some_and(|first| first & 0x80 == 0)
}

/// The payload of an HTTP datagram in `context`: `payload` with its number.
pub fn encode(context: ContextId, number: u64, payload: &[u8]) -> Vec<u8> {
    let number = VarInt::saturating(number);
    let size = number.size();
    let mut numbered = [0; 8];
    numbered[..size].copy_from_slice(&number.get().to_be_bytes()[8 - size..]);
    numbered[0] |= (size.trailing_zeros() as u8) << 6;
    context::encode_parts(context, &[&numbered[..size], payload])
}

/// The number and the payload of what follows the context; `None` if there is no number.
pub fn decode(mut content: Bytes) -> Option<(u64, Bytes)> {
    let mut reader = Reader::new(&content);
    let number = reader.varint().ok()?;
    let used = content.len() - reader.remaining();
    content.advance(used);
    Some((number, content))
}
