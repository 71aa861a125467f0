//! What an end of HTTP/3 is configured with.

use swiftwater_units::Side;

use super::limits::Limits;
use super::settings::Settings;

/// Configuration of one connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Config {
    /// What the peer may make us keep or do.
    pub limits: Limits,
    /// Table that our QPACK decoder keeps for the peer's encoder, bytes; 0 for none. Default 4096.
    pub qpack_decoder_table: u64,
    /// Field sections of the peer that may wait for that table at once. Default 16.
    pub qpack_blocked_streams: u64,
    /// Table that our QPACK encoder uses at most of what the peer offers, bytes; 0 for none. Default
    /// 4096.
    pub qpack_encoder_table: u64,
    /// Our field sections that may wait for that table at once, at most, of what the peer permits;
    /// 0 never makes a request wait for another stream. Default 16.
    pub qpack_encoder_blocked: u64,
    /// Accept extended CONNECT (RFC 9220); servers only. Default true.
    pub enable_connect_protocol: bool,
    /// Offer HTTP datagrams (RFC 9297). The transport must accept DATAGRAM frames then. Default true.
    pub datagrams: bool,
    /// WebTransport sessions that a client may have at once. 0 (default) offers none; others need
    /// `datagrams` and `enable_connect_protocol`. On a client anything but 0 lets it ask for sessions,
    /// as many as the server takes.
    pub webtransport_sessions: u64,
    /// Seed of reserved values sent now and then so that peers stay ready for new ones; `None` sends
    /// none. Default `None`: drivers should draw one.
    pub grease: Option<u64>,
    /// The server's settings of an earlier connection ([`Settings::to_bytes`]), which early data keep
    /// to (RFC 9114, section 7.2.4.2); clients only.
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
    /// What we tell the peer.
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
