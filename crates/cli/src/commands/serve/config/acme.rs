//! `[acme]`: a certificate from an authority.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use swiftwater_acme::{ExternalAccount, LETS_ENCRYPT, Settings, SettingsError};

use super::Config;
use crate::exit::{Exit, Failure, plain_io_error};
use crate::identity::default_state_dir;

/// Directory of accounts and certificates in the state directory.
const DIRECTORY: &str = "acme";

/// How the authority validates names.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize, ValueEnum)]
pub enum Challenge {
    /// Over TLS at port 443 (RFC 8737).
    #[default]
    #[serde(rename = "tls-alpn-01")]
    #[value(name = "tls-alpn-01")]
    TlsAlpn01,
    /// Over HTTP at port 80 (RFC 8555, section 8.3).
    #[serde(rename = "http-01")]
    #[value(name = "http-01")]
    Http01,
}

/// A certificate that the server gets and renews by ACME (RFC 8555).
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Acme {
    /// Its names, without wildcards.
    pub domains: Vec<String>,
    /// Whether the user agrees to the authority's terms of service; required.
    pub accept_terms: bool,
    /// The directory of the authority. Default: Let's Encrypt.
    pub directory: String,
    /// Addresses of e-mail for the authority.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contact: Vec<String>,
    /// How names are validated. Default: tls-alpn-01.
    pub challenge: Challenge,
    /// Certificates that are trusted for the authority's own server. Default: those that the system trusts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// The account outside of ACME that a new account belongs to, if the authority demands one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_account: Option<String>,
    /// File with the key of that account, in base64url.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_key: Option<PathBuf>,
}

impl Default for Acme {
    fn default() -> Self {
        Self {
            domains: Vec::new(),
            accept_terms: false,
            directory: LETS_ENCRYPT.to_owned(),
            contact: Vec::new(),
            challenge: Challenge::default(),
            ca: None,
            external_account: None,
            external_key: None,
        }
    }
}

impl Acme {
    /// What is wrong with it in `config`, if anything.
    pub(super) fn problem(&self, config: &Config) -> Option<String> {
        if let Err(error) = self.settings_in(Path::new("")) {
            return Some(error.to_string());
        }
        let text = match self.challenge {
            _ if !self.accept_terms => {
                "accept_terms = true is needed: you agree to the authority's terms of service"
            }
            Challenge::TlsAlpn01 if !config.tcp => "tls-alpn-01 needs tcp = true",
            Challenge::Http01 if config.http.listen.is_none() => {
                "http-01 needs [http] with listen, reached at port 80"
            }
            _ if self.external_account.is_some() != self.external_key.is_some() => {
                "external_account and external_key are given together"
            }
            _ => return None,
        };
        Some(text.to_owned())
    }

    fn settings_in(&self, state: &Path) -> Result<Settings, SettingsError> {
        let settings = Settings::new(&self.domains, &self.directory, state)?;
        Ok(settings.contacts(&self.contact))
    }

    /// What is asked of the authority; state is kept in the state directory of `config`.
    pub fn settings(&self, config: &Config) -> Result<Settings, Failure> {
        let state = match &config.tls.state_dir {
            Some(directory) => directory.clone(),
            None => default_state_dir()?,
        };
        let settings = self.settings_in(&state.join(DIRECTORY));
        let settings = settings.map_err(|error| Failure::new(Exit::Usage, error))?;
        Ok(settings.external_account(self.external()?))
    }

    fn external(&self) -> Result<Option<ExternalAccount>, Failure> {
        let (Some(id), Some(path)) = (&self.external_account, &self.external_key) else {
            return Ok(None);
        };
        let failure = |why: &str| {
            let text = format!("{}: {why}", path.display());
            Failure::new(Exit::LocalFile, text)
        };
        let text = fs::read_to_string(path);
        let text = text.map_err(|error| failure(&plain_io_error(&error)))?;
        let key = URL_SAFE_NO_PAD.decode(text.trim().trim_end_matches('='));
        let key = key.map_err(|_| failure("no key in base64url"))?;
        let id = id.clone();
        Ok(Some(ExternalAccount { id, key }))
    }
}
