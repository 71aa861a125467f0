//! What is said in the same words to clients and servers before they exist.

use std::path::PathBuf;

use swiftwater_quic::TransportConfig;
use swiftwater_tls::CipherSuite;

use crate::profile::Profile;
use crate::settings::Settings;

/// Collects settings for one side; [`ClientBuilder`](crate::ClientBuilder) and
/// [`ServerBuilder`](crate::ServerBuilder) add what only their side needs.
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

    /// Takes the settings of `profile`, replacing what was set of the transport before.
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Self {
        self.settings.transport = profile.transport();
        self
    }

    /// Changes single settings of the transport.
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

    /// Chooses by name how lost data are repaired, and whatever else the policies of that name decide;
    /// see [`policies::names`](crate::policies::names). It concerns what this end sends; the peer
    /// needs to know nothing of it.
    #[must_use]
    pub fn recovery(mut self, name: &str) -> Self {
        self.settings.recovery = Some(name.to_owned());
        self
    }

    /// Logs each connection into a file of its own in `directory`, which is made if it is missing:
    /// see [`qlog`](crate::qlog). An observer set with [`Builder::transport`] is told too.
    #[must_use]
    pub fn qlog(mut self, directory: impl Into<PathBuf>) -> Self {
        self.settings.qlog = Some(directory.into());
        self
    }

    /// Speaks these application protocols, best first (ALPN). A client offers them, and most servers
    /// insist on one they know; a server refuses clients that offer none of them.
    #[must_use]
    pub fn alpn(mut self, protocols: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Self {
        self.settings.alpn = protocols.into_iter().map(Into::into).collect();
        self
    }

    /// Uses exactly these cipher suites; a client offers them best first.
    #[must_use]
    pub fn cipher_suites(mut self, suites: &[CipherSuite]) -> Self {
        self.settings.suites = suites.to_vec();
        self
    }

    /// Speaks these versions of QUIC, best first: [`VERSION_1`](crate::VERSION_1) and
    /// [`VERSION_2`](crate::VERSION_2), which is also the default. A client begins in the first one,
    /// offers the others, and falls back to them if the server doesn't speak the first. A server goes
    /// on in the first one that the client could speak too. An empty list means version 1.
    #[must_use]
    pub fn versions(mut self, versions: impl IntoIterator<Item = u32>) -> Self {
        self.settings.versions = Some(versions.into_iter().collect());
        self
    }

    /// Lets clients begin in this one of the [`versions`](Self::versions), and move to a better one of the
    /// list if the server agrees (RFC 9368); without it they begin in the first.
    #[must_use]
    pub fn first_version(mut self, version: u32) -> Self {
        self.settings.first_version = Some(version);
        self
    }

    /// Sends what means nothing, such as reserved versions, so that nobody gets used to its absence;
    /// on unless said otherwise.
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
