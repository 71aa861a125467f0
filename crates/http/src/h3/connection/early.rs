//! Settings for early data (RFC 9114, section 7.2.4.2): the remembered settings that a client uses
//! before it receives the server's, and the check that the server's settings are compatible with
//! them.

use swiftwater_quic as quic;
use swiftwater_quic::EarlyDataOutcome;
use swiftwater_units::Instant;

use super::Connection;
use crate::h3::code::Code;
use crate::h3::error::Fault;
use crate::h3::settings::Settings;

impl Connection {
    /// The peer's settings as far as they may be used at present.
    pub(super) fn server_settings(&self) -> Settings {
        let remembered = self.config.remembered.filter(|_| self.side.is_client());
        self.peer.settings.or(remembered).unwrap_or_default()
    }

    /// The server accepted or rejected the early data.
    pub(super) fn on_early_data(&mut self, outcome: EarlyDataOutcome) {
        if outcome == EarlyDataOutcome::Rejected {
            self.config.remembered = None;
        }
    }

    /// A server that accepted early data must not reduce the settings that they were sent under.
    pub(super) fn check_remembered(
        &self,
        quic: &quic::Connection,
        settings: &Settings,
    ) -> Result<(), Fault> {
        match &self.config.remembered {
            Some(remembered)
                if self.side.is_client()
                    && quic.early_data() == Some(EarlyDataOutcome::Accepted) =>
            {
                settings.check_against(remembered)
            }
            _ => Ok(()),
        }
    }

    /// The handshake is complete, so the peer's transport parameters are available: settings
    /// received before can be checked against them.
    pub(super) fn on_connected(&mut self, now: Instant, quic: &mut quic::Connection) {
        let datagrams = self
            .peer
            .settings
            .is_some_and(|settings| settings.h3_datagram);
        if datagrams && quic.max_datagram_size().is_none() {
            let reason = "HTTP datagrams without DATAGRAM frames";
            self.fail(now, quic, Fault::connection(Code::SETTINGS_ERROR, reason));
        }
    }
}
