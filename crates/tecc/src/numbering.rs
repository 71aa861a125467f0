//! Which payloads have numbers.

use swiftwater_wire::has_short_header;

/// Whether a UDP payload is numbered: packets of QUIC with a long header are not, so that they need no more room
/// than in plain tunnels.
pub fn is_numbered(payload: &[u8]) -> bool {
    has_short_header(payload)
}
