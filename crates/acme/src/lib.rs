//! Certificates from an authority by ACME (RFC 8555), kept and renewed in time.
//!
//! - [`Settings`]: which names, from which authority, how they are validated, where state is kept.
//! - [`Acme`]: gets a certificate ([`Acme::obtain`]) or keeps one up to date ([`Acme::maintain`]).
//! - [`Answers`]: how validations are answered, by the servers of `swiftwater-http`: over TLS (TLS-ALPN-01, RFC 8737)
//!   or over HTTP (HTTP-01).
//! - [`Certificate`]: a chain with its key and its validity. [`Schedule`]: when it is renewed, and when after a failure.
//!
//! The protocol is that of `instant_acme`; requests go through the HTTP client of this project. Not here: DNS-01, and with
//! it names with a wildcard.

#![forbid(unsafe_code)]

mod account;
mod answers;
mod certificate;
mod client;
mod error;
mod maintenance;
mod order;
mod schedule;
mod settings;
mod store;
mod validation_certificate;

pub use answers::Answers;
pub use certificate::Certificate;
pub use error::AcmeError;
pub use maintenance::Progress;
pub use schedule::Schedule;
pub use settings::{ExternalAccount, LETS_ENCRYPT, Settings, SettingsError};

use std::path::PathBuf;

use swiftwater_http::client::HttpClient;

use self::store::Store;

/// Gets and renews the certificate of a server.
#[derive(Debug)]
pub struct Acme {
    settings: Settings,
    client: HttpClient,
    answers: Answers,
    store: Store,
}

impl Acme {
    /// With these settings. `client` reaches the authority and must trust its certificate; `answers` are given by the
    /// server that the names lead to.
    pub fn new(settings: Settings, client: HttpClient, answers: Answers) -> Self {
        let store = Store::new(&settings);
        Self {
            settings,
            client,
            answers,
            store,
        }
    }
}

impl Settings {
    /// The certificate of an earlier run for the same names and authority, if there is one, whether it is still valid
    /// or not.
    ///
    /// # Errors
    ///
    /// If the file can't be read or is damaged.
    pub fn stored(&self) -> Result<Option<Certificate>, AcmeError> {
        Store::new(self).certificate()
    }

    /// The file of the certificate and its key.
    pub fn certificate_path(&self) -> PathBuf {
        Store::new(self).certificate_path().to_owned()
    }
}
