//! Datagram sizes that RFC 9000 fixes or that follow from it, in bytes of UDP payload.

/// The smallest maximum datagram size: every path that can carry QUIC carries it (section 14). Datagrams
/// with Initial packets and with path validation have this size at least (sections 14.1 and 8.2.1).
pub(crate) const MIN_MAX_DATAGRAM_SIZE: u16 = 1200;

/// The same for lengths of buffers.
pub(crate) const MIN_INITIAL_SIZE: usize = MIN_MAX_DATAGRAM_SIZE as usize;

/// The smallest datagram that can be a stateless reset (section 10.3).
pub(crate) const MIN_STATELESS_RESET: usize = 21;

/// Least room worth starting a packet in: headers, tag, and a short ACK frame.
pub(crate) const MIN_PACKET_ROOM: usize = 64;
