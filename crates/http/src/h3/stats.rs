//! Counters of one connection.

/// Counters of an HTTP/3 connection.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Requests sent, or received with a whole head.
    pub requests: u64,
    /// Final responses received or sent.
    pub responses: u64,
    /// Requests that ended by a reset of either end.
    pub requests_reset: u64,
    /// Requests that this server refused without processing them.
    pub requests_rejected: u64,
    /// Messages that were malformed (RFC 9114, section 4.1.2).
    pub malformed: u64,
    /// Field sections larger than the limits of this end.
    pub sections_too_large: u64,
    /// Bytes of content received.
    pub content_received: u64,
    /// Bytes of content accepted for sending.
    pub content_sent: u64,
    /// Field sections received.
    pub sections_received: u64,
    /// Field sections that were blocked on the QPACK table.
    pub sections_blocked: u64,
    /// HTTP datagrams received.
    pub datagrams_received: u64,
    /// HTTP datagrams accepted for sending.
    pub datagrams_sent: u64,
    /// HTTP datagrams received for unknown requests.
    pub datagrams_dropped: u64,
    /// Streams of unknown type that the peer opened.
    pub unknown_streams: u64,
    /// PRIORITY_UPDATE frames received.
    pub priority_updates: u64,
}
