//! Version Negotiation packets (RFC 9000, sections 6 and 17.2.1).

use rand_core::Rng;
use swiftwater_wire::{InvariantHeader, Writer, write_version_negotiation};

use crate::handshake::reserved_version;

/// Versions that a packet offers at most, the reserved one included.
const MAX_VERSIONS: usize = 16;

/// Writes the answer to a packet with the long header `header`: `versions` (the first 15), and with
/// `grease` a reserved version before them, so that peers keep ignoring unknown versions (section 6.3). Returns its size,
/// or `None` if it doesn't fit in `out`.
pub(super) fn write(
    rng: &mut impl Rng,
    header: &InvariantHeader<'_>,
    versions: &[u32],
    grease: bool,
    out: &mut [u8],
) -> Option<usize> {
    let src = header.src_cid?;
    let count = versions.len().min(MAX_VERSIONS - 1);
    let mut offer = [0; MAX_VERSIONS];
    offer[0] = other_reserved_version(rng.next_u32(), header.version);
    offer[1..=count].copy_from_slice(&versions[..count]);
    let offer = &offer[usize::from(!grease)..=count];
    if 7 + src.len() + header.dst_cid.len() + 4 * offer.len() > out.len() {
        return None;
    }
    let random = rng.next_u32() as u8;
    let mut w = Writer::new(out);
    write_version_negotiation(&mut w, random, src, header.dst_cid, offer);
    Some(w.written())
}

/// A version of the form `0x?a?a?a?a` (RFC 9000, section 15) other than the one that the client
/// tried: a client discards an offer of the version that it sent.
pub(super) fn other_reserved_version(random: u32, tried: Option<u32>) -> u32 {
    let version = reserved_version(random);
    if Some(version) == tried {
        version ^ 0x1000_0000
    } else {
        version
    }
}
