//! Counters of one connection.

/// What an HTTP/3 connection has done so far.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Requests sent, or received with a whole head.
    pub requests: u64,
    /// Final responses received or sent.
    pub responses: u64,
    /// Requests that ended in a reset of either end.
    pub requests_reset: u64,
    /// Requests that this server refused without processing them.
    pub requests_rejected: u64,
    /// Messages that were malformed (RFC 9114, section 4.1.2).
    pub malformed: u64,
    /// Field sections larger than our limits.
    pub sections_too_large: u64,
    /// Bytes of content received.
    pub content_received: u64,
    /// Bytes of content accepted for sending.
    pub content_sent: u64,
    /// Field sections received.
    pub sections_received: u64,
    /// Field sections that waited for the QPACK table.
    pub sections_blocked: u64,
    /// HTTP datagrams received.
    pub datagrams_received: u64,
    /// HTTP datagrams accepted for sending.
    pub datagrams_sent: u64,
    /// HTTP datagrams received for no request of ours.
    pub datagrams_dropped: u64,
    /// Streams of unknown type that the peer opened.
    pub unknown_streams: u64,
    /// PRIORITY_UPDATE frames received.
    pub priority_updates: u64,
}
