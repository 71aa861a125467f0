//! Limits on state and work that a peer can cause, and their consequences.

use std::time::Duration;

/// Limits on all state that a peer can make grow, in addition to those of the transport (open
/// streams, unread bytes). Exceeding one causes the error stated at the field.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Size of a message's field section, each field counted as its name, its value and 32 bytes
    /// (RFC 9114, section 4.2.2). Advertised in SETTINGS. A larger request is answered with 431, a
    /// larger response and larger trailers end their stream with H3_EXCESSIVE_LOAD. Default 64 KiB.
    pub max_field_section_size: u64,
    /// Fields in a section. Consequences as above. Default 256.
    pub max_fields: usize,
    /// Length of an encoded field section, bytes: the buffer of one stream. Consequences as above.
    /// Default 64 KiB.
    pub max_encoded_section: u64,
    /// Bytes of the peer's SETTINGS and of a PRIORITY_UPDATE frame; more is H3_EXCESSIVE_LOAD.
    /// Default 4 KiB.
    pub max_control_frame: u64,
    /// PRIORITY_UPDATE frames buffered for requests not yet received (RFC 9218, section 7.1);
    /// further ones are dropped. Default 128.
    pub max_early_priorities: usize,
    /// HTTP datagrams buffered for requests not yet received (RFC 9297, section 2.1); further ones
    /// are dropped. Default 32.
    pub max_early_datagrams: usize,
    /// Burst of streams of unknown types; more is H3_EXCESSIVE_LOAD. Default 64, and one more per
    /// second.
    pub max_unknown_streams: u32,
    /// Burst of requests cancelled before they were answered; more is H3_EXCESSIVE_LOAD. Default
    /// 256.
    pub max_cancelled_requests: u32,
    /// Further cancellations permitted per second. Default 32.
    pub cancelled_requests_per_second: u32,
    /// A request's head must be complete this long after its stream was opened; otherwise the
    /// stream ends with H3_REQUEST_REJECTED. `None`: no limit. Default 10 s.
    pub head_timeout: Option<Duration>,
    /// Bytes blocked by flow control on the control and QPACK streams of this end; more is
    /// H3_EXCESSIVE_LOAD. Default 256 KiB.
    pub max_control_backlog: usize,
    /// WebTransport streams that wait for their session's request; more are rejected with
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
