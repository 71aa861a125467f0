//! What a peer may make us keep or do, and what follows when it wants more.

use std::time::Duration;

/// Caps on everything that a peer can make grow, beside those of the transport (open streams, unread
/// bytes). What exceeds one ends with the error that the field names.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Size of a message's field section, each field counted as its name, its value and 32 bytes
    /// (RFC 9114, section 4.2.2). Advertised in SETTINGS. A larger request is answered with 431, a
    /// larger response and larger trailers end their stream with H3_EXCESSIVE_LOAD. Default 64 KiB.
    pub max_field_section_size: u64,
    /// Fields in a section. What follows is as above. Default 256.
    pub max_fields: usize,
    /// Length of a field section as sent, bytes: what one stream may make us buffer. What follows is
    /// as above. Default 64 KiB.
    pub max_encoded_section: u64,
    /// Bytes of the peer's SETTINGS and of a PRIORITY_UPDATE frame; more is H3_EXCESSIVE_LOAD.
    /// Default 4 KiB.
    pub max_control_frame: u64,
    /// PRIORITY_UPDATE frames kept for requests that have not come yet (RFC 9218, section 7.1); of
    /// more, the newest are dropped. Default 128.
    pub max_early_priorities: usize,
    /// HTTP datagrams kept for requests that have not come yet (RFC 9297, section 2.1); more are
    /// dropped. Default 32.
    pub max_early_datagrams: usize,
    /// Streams of unknown type that the peer may open at once without pause; more is
    /// H3_EXCESSIVE_LOAD. Default 64, and one more for each second.
    pub max_unknown_streams: u32,
    /// Requests that may be cancelled at once before they were answered; more is H3_EXCESSIVE_LOAD.
    /// Default 256.
    pub max_cancelled_requests: u32,
    /// As many more for each second. Default 32.
    pub cancelled_requests_per_second: u32,
    /// A request's head must be complete this long after its stream came; else the stream ends with
    /// H3_REQUEST_REJECTED. `None` waits as long as the connection lives. Default 10 s.
    pub head_timeout: Option<Duration>,
    /// Bytes that wait to be sent on our control and QPACK streams because the peer gives no credit
    /// for them; more is H3_EXCESSIVE_LOAD. Default 256 KiB.
    pub max_control_backlog: usize,
    /// WebTransport streams that wait for their session's request; more are refused with
    /// WEBTRANSPORT_BUFFERED_STREAM_REJECTED. Default 16.
    pub max_early_session_streams: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_field_section_size: 64 << 10,
            max_fields: 256,
            max_encoded_section: 64 << 10,
            max_control_frame: 4 << 10,
            max_early_priorities: 128,
            max_early_datagrams: 32,
            max_unknown_streams: 64,
            max_cancelled_requests: 256,
            cancelled_requests_per_second: 32,
            head_timeout: Some(Duration::from_secs(10)),
            max_control_backlog: 256 << 10,
            max_early_session_streams: 16,
        }
    }
}
