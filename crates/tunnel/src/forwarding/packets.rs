//! What forwarding reads and changes of QUIC packets: the version-independent parts (RFC 8999, section 5).

use swiftwater_wire::{ConnectionId, InvariantHeader, VERSION_1, VERSION_2, has_short_header};

/// Appends `packet`, which has a short header with a connection ID of `old_len` bytes, to `out` with `new` in the place of
/// that ID; false, and nothing is appended, if the packet is shorter than its header.
pub fn replace_cid(packet: &[u8], old_len: usize, new: &[u8], out: &mut Vec<u8>) -> bool {
    let Some((first, rest)) = packet.split_first() else {
        return false;
    };
    let Some(rest) = rest.get(old_len..) else {
        return false;
    };
    out.push(*first);
    out.extend_from_slice(new);
    out.extend_from_slice(rest);
    true
}

/// The connection IDs of a packet with a long header.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct LongHeaderIds {
    pub(super) destination: ConnectionId,
    pub(super) source: ConnectionId,
}

/// The connection IDs of the first packet of a datagram if it has a long header and its source goes on to be used: those
/// of Version Negotiation and Retry packets are not, and IDs that no known version has are left alone.
pub(super) fn long_header_ids(datagram: &[u8]) -> Option<LongHeaderIds> {
    /// The bits of the first byte that are the type of a packet.
    const TYPE: u8 = 0x30;
    let first = datagram.first()?;
    if has_short_header(datagram) {
        return None;
    }
    let header = InvariantHeader::parse(datagram, 0).ok()?;
    let retry = match header.version? {
        // Version Negotiation (RFC 8999, section 6).
        0 => return None,
        // RFC 9000, section 17.2.5.
        VERSION_1 => Some(0x30),
        // RFC 9369, section 3.2.
        VERSION_2 => Some(0x00),
        _ => None,
    };
    if retry == Some(first & TYPE) {
        return None;
    }
    Some(LongHeaderIds {
        destination: ConnectionId::new(header.dst_cid)?,
        source: ConnectionId::new(header.src_cid?)?,
    })
}
