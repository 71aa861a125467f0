//! Settings and early data (RFC 9114, section 7.2.4.2): what a client may rely on before the
//! server's settings are here, and that they keep the promise.

use swiftwater_quic as quic;
use swiftwater_quic::EarlyDataOutcome;
use swiftwater_units::Instant;

use super::Connection;
use crate::h3::code::Code;
use crate::h3::error::Fault;
use crate::h3::settings::Settings;

impl Connection {
    /// The peer's settings as far as they can be relied on now.
    pub(super) fn server_settings(&self) -> Settings {
        let remembered = self.config.remembered.filter(|_| self.side.is_client());
        self.peer.settings.or(remembered).unwrap_or_default()
    }

    /// The server took the early data, or not.
    pub(super) fn on_early_data(&mut self, outcome: EarlyDataOutcome) {
        if outcome == EarlyDataOutcome::Rejected {
            self.config.remembered = None;
        }
    }

    /// A server that took early data must keep to the settings that they relied on.
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

    /// The handshake is complete, so the peer's transport parameters are known: settings that came
    /// with early data can be checked against them.
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
