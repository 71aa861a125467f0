//! Limits on what a session buffers for its application.

/// Limits on what a session buffers until its application reads it, in addition to those of the
/// transport (concurrent streams, unread bytes of streams) and of the engine
/// ([`h3::Limits`](crate::h3::Limits): streams and datagrams that come before their session).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SessionLimits {
    /// Streams of the peer that wait to be accepted, of both kinds together; more are refused with
    /// WEBTRANSPORT_BUFFERED_STREAM_REJECTED. Default 128.
    pub max_waiting_streams: usize,
    /// Bytes of datagrams that wait to be read, each counted as its payload and 64 bytes; beyond it,
    /// the oldest are dropped. Default 256 KiB.
    pub max_waiting_datagrams: usize,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            max_waiting_streams: 128,
            max_waiting_datagrams: 256 << 10,
        }
    }
}
