//! Configuration of one HTTP/3 connection.

use swiftwater_units::Side;

use super::limits::Limits;
use super::settings::Settings;

/// Configuration of one connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Config {
    /// Limits on state and work that the peer can cause.
    pub limits: Limits,
    /// Capacity of the dynamic table of this end's QPACK decoder, bytes; 0 for none. Default 4096.
    pub qpack_decoder_table: u64,
    /// Streams of the peer that may be blocked on that table at once. Default 16.
    pub qpack_blocked_streams: u64,
    /// Largest capacity of the dynamic table that this end's QPACK encoder uses, within what the
    /// peer allows, bytes; 0 for none. Default 4096.
    pub qpack_encoder_table: u64,
    /// Most streams of this end that may be blocked on that table at once, within what the peer
    /// allows; with 0 no request ever waits for another stream. Default 16.
    pub qpack_encoder_blocked: u64,
    /// Accept extended CONNECT (RFC 9220); servers only. Default true.
    pub enable_connect_protocol: bool,
    /// Offer HTTP datagrams (RFC 9297). Requires that the transport accepts DATAGRAM frames. Default
    /// true.
    pub datagrams: bool,
    /// WebTransport sessions that a client may have at once. 0 (default) offers none; other values
    /// require `datagrams` and `enable_connect_protocol`. On a client any value but 0 permits requests
    /// for sessions, as many as the server accepts.
    pub webtransport_sessions: u64,
    /// Seed of reserved values (greasing), sent so that peers keep accepting unknown values; `None`
    /// sends none. Default `None`: drivers should set a random one.
    pub grease: Option<u64>,
    /// The server's settings of an earlier connection ([`Settings::to_bytes`]), which apply to early
    /// data (RFC 9114, section 7.2.4.2); clients only.
    pub remembered: Option<Settings>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            qpack_decoder_table: 4096,
            qpack_blocked_streams: 16,
            qpack_encoder_table: 4096,
            qpack_encoder_blocked: 16,
            enable_connect_protocol: true,
            datagrams: true,
            webtransport_sessions: 0,
            grease: None,
            remembered: None,
        }
    }
}

impl Config {
    /// The settings sent to the peer.
    pub(crate) fn settings(&self, side: Side) -> Settings {
        Settings {
            qpack_max_table_capacity: self.qpack_decoder_table,
            qpack_blocked_streams: self.qpack_blocked_streams,
            max_field_section_size: Some(self.limits.max_field_section_size),
            enable_connect_protocol: self.enable_connect_protocol && side.is_server(),
            h3_datagram: self.datagrams,
            webtransport_sessions: if self.offers_sessions() {
                self.webtransport_sessions
            } else {
                0
            },
        }
    }

    /// True if WebTransport sessions are offered.
    pub(crate) const fn offers_sessions(&self) -> bool {
        self.webtransport_sessions > 0 && self.datagrams && self.enable_connect_protocol
    }
}
