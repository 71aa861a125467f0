//! Room for a report beside a payload.
//!
//! A report in a packet of its own is one more packet that can be lost, and a congestion controller that takes any loss for
//! a congestion event slows down as for a payload. So payloads are a little smaller than packets between proxy and client can be, and
//! reports share packets with them.

/// Bytes of a packet that a report takes, with the head of its datagram and an ACK frame beside it: some 55 for the
/// report in a tunnel that is older than a quarter of an hour, 8 for the head, and an ACK frame of two ranges.
pub const REPORT_ROOM: u16 = 80;

/// The UDP payload of a packet between proxy and client on a path for Ethernet frames over IPv6, bytes.
const PACKET: u16 = 1452;

/// What a packet with a numbered payload consists of beside it, bytes: header and tag of QUIC with a connection ID of 8
/// bytes (27), the heads of DATAGRAM frame and HTTP datagram, context and number (up to 11).
const HEADERS: u16 = 38;

/// The largest UDP payload for the client of a tunnel with reports that leaves room for one, bytes, on paths that carry
/// Ethernet frames. Larger ones pass as well; reports then take packets of their own.
pub const MAX_PAYLOAD_BESIDE_REPORT: u16 = PACKET - HEADERS - REPORT_ROOM;
