//! What a proxy sends ahead of the payloads that wait, as urgencies of datagrams: a smaller one goes first.

/// Of a payload that is sent again: the client's QUIC already misses it.
pub const URGENCY_OF_REPAIRS: u8 = 2;
/// Of reports, which go ahead of repairs.
pub const URGENCY_OF_REPORTS: u8 = 1;
