//! Settings common to the builders of clients and servers.

use std::path::PathBuf;

use swiftwater_quic::{MultipathConfig, TransportConfig};
use swiftwater_tls::CipherSuite;

use crate::profile::Profile;
use crate::settings::Settings;

/// Collects settings for one role; [`ClientBuilder`](crate::ClientBuilder) and
/// [`ServerBuilder`](crate::ServerBuilder) add those of their role.
#[derive(Clone, Debug)]
pub struct Builder<Side> {
    pub(crate) settings: Settings,
    pub(crate) side: Side,
}

impl<Side> Builder<Side> {
    pub(crate) fn new(side: Side) -> Self {
        Self {
            settings: Settings::new(),
            side,
        }
    }

    /// Applies the settings of `profile`, replacing earlier settings of the transport.
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Self {
        self.settings.transport = profile.transport();
        self
    }

    /// Changes individual settings of the transport.
    #[must_use]
    pub fn transport(mut self, change: impl FnOnce(&mut TransportConfig)) -> Self {
        change(&mut self.settings.transport);
        self
    }

    /// Chooses the congestion controller by name, see [`congestion::names`](crate::congestion::names).
    #[must_use]
    pub fn congestion(mut self, name: &str) -> Self {
        self.settings.congestion = Some(name.to_owned());
        self
    }

    /// Chooses the loss recovery policy by name; see [`policies::names`](crate::policies::names). It
    /// applies to data that this end sends; the peer needs no support for it.
    #[must_use]
    pub fn recovery(mut self, name: &str) -> Self {
        self.settings.recovery = Some(name.to_owned());
        self
    }

    /// Logs each connection to a separate file in `directory`, which is created if missing: see
    /// [`qlog`](crate::qlog). An observer set with [`Builder::transport`] also receives the events.
    #[must_use]
    pub fn qlog(mut self, directory: impl Into<PathBuf>) -> Self {
        self.settings.qlog = Some(directory.into());
        self
    }

    /// Permits several paths in a connection (RFC 10069), if the peer does too; default off. Clients open them:
    /// [`PathManager`](crate::paths::PathManager), or
    /// [`Connection::open_path`](crate::Connection::open_path).
    #[must_use]
    pub fn multipath(mut self, config: MultipathConfig) -> Self {
        self.settings.multipath = Some(config);
        self
    }

    /// Chooses the path of each packet with this scheduler, such as `min-rtt`, `weighted` or `backup`, with
    /// parameters if that is to be (`weighted:batch=6000`); default `min-rtt` with
    /// [`multipath`](Self::multipath). It matters at the end that sends.
    #[must_use]
    pub fn scheduler(mut self, specification: impl Into<String>) -> Self {
        self.settings.scheduler = Some(specification.into());
        self
    }

    /// Chooses by name when packets count as lost; see
    /// [`LossJudgeCatalogue`](crate::policies::LossJudgeCatalogue). Default: the thresholds of RFC 9002, or what the
    /// recovery policy has.
    #[must_use]
    pub fn loss_judge(mut self, specification: impl Into<String>) -> Self {
        self.settings.loss_judge = Some(specification.into());
        self
    }

    /// Chooses by name what this end tells the peer's policies, and accepts what they tell it: `player` for a media
    /// player, `chorus` for the server of one. Default: nothing is sent, nothing accepted. The contents come from
    /// [`Connection::update_hints`](crate::Connection::update_hints).
    #[must_use]
    pub fn feedback(mut self, specification: impl Into<String>) -> Self {
        self.settings.feedback = Some(specification.into());
        self
    }

    /// Application protocols in order of preference (ALPN). A client offers them, and most servers
    /// require a known one; a server rejects clients that offer none of them.
    #[must_use]
    pub fn alpn(mut self, protocols: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Self {
        self.settings.alpn = protocols.into_iter().map(Into::into).collect();
        self
    }

    /// Uses exactly these cipher suites; a client offers them in order of preference.
    #[must_use]
    pub fn cipher_suites(mut self, suites: &[CipherSuite]) -> Self {
        self.settings.suites = suites.to_vec();
        self
    }

    /// QUIC versions in order of preference: [`VERSION_1`](crate::VERSION_1) and
    /// [`VERSION_2`](crate::VERSION_2), which is also the default. A client starts with the first
    /// one, offers the others, and falls back to them if the server doesn't support the first. A
    /// server continues with the first one that the client also supports. An empty list means version
    /// 1.
    #[must_use]
    pub fn versions(mut self, versions: impl IntoIterator<Item = u32>) -> Self {
        self.settings.versions = Some(versions.into_iter().collect());
        self
    }

    /// Clients start with this one of the [`versions`](Self::versions), and change to a preferred one if
    /// the server supports it (RFC 9368); by default they start with the first.
    #[must_use]
    pub fn first_version(mut self, version: u32) -> Self {
        self.settings.first_version = Some(version);
        self
    }

    /// Sends reserved values, such as reserved versions, so that peers keep ignoring them
    /// (greasing); default on.
    #[must_use]
    pub fn grease(mut self, grease: bool) -> Self {
        self.settings.grease = grease;
        self
    }

    /// Appends TLS secrets to the file named by `SSLKEYLOGFILE`, if that is set, for Wireshark.
    #[must_use]
    pub fn key_log(mut self) -> Self {
        self.settings.key_log = true;
        self
    }
}
