//! What is asked of which authority.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// The directory of Let's Encrypt.
pub const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// Most names of a certificate: the limit of Let's Encrypt.
const MAX_NAMES: usize = 100;

/// Longest name, and longest label in it (RFC 1035, section 2.3.4).
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

/// Why settings can't be used.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum SettingsError {
    /// There is nothing to certify.
    #[error("a certificate needs at least one name")]
    NoNames,
    /// An authority would refuse so many.
    #[error("a certificate has at most {MAX_NAMES} names")]
    TooManyNames,
    /// A wildcard needs DNS-01.
    #[error("`{0}`: names with a wildcard need validation by DNS, which is not supported")]
    Wildcard(String),
    /// Not a name of DNS.
    #[error("`{0}` is no DNS name (international names are written as xn--…)")]
    Name(String),
    /// The directory is not reached over TLS.
    #[error("`{0}`: the directory of an authority is an https:// address")]
    Directory(String),
}

/// The account at an authority outside of ACME that a new account belongs to (RFC 8555, section 7.3.4).
#[derive(Clone, Eq, PartialEq)]
pub struct ExternalAccount {
    /// Its identifier.
    pub id: String,
    /// The key, as bytes.
    pub key: Vec<u8>,
}

impl fmt::Debug for ExternalAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalAccount")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// What is asked of which authority.
#[derive(Clone, Debug)]
pub struct Settings {
    names: Vec<String>,
    directory: String,
    state: PathBuf,
    contacts: Vec<String>,
    external: Option<ExternalAccount>,
}

impl Settings {
    /// A certificate for `names`, from the authority with this `directory`, such as [`LETS_ENCRYPT`], to whose terms of
    /// service the user agrees. Account, key and certificate are kept below `state`.
    ///
    /// # Errors
    ///
    /// Names that can't be certified, and a directory without TLS.
    pub fn new<N: AsRef<str>>(
        names: impl IntoIterator<Item = N>,
        directory: &str,
        state: impl Into<PathBuf>,
    ) -> Result<Self, SettingsError> {
        let names = names.into_iter().map(|name| checked(name.as_ref()));
        // In order, so that the same set is the same certificate.
        let names: BTreeSet<String> = names.collect::<Result<_, _>>()?;
        match names.len() {
            0 => return Err(SettingsError::NoNames),
            1..=MAX_NAMES => {}
            _ => return Err(SettingsError::TooManyNames),
        }
        if !directory.starts_with("https://") {
            return Err(SettingsError::Directory(directory.to_owned()));
        }
        Ok(Self {
            names: names.into_iter().collect(),
            directory: directory.to_owned(),
            state: state.into(),
            contacts: Vec::new(),
            external: None,
        })
    }

    /// Addresses at which the authority may reach the user, without `mailto:`.
    #[must_use]
    pub fn contacts(mut self, addresses: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let addresses = addresses.into_iter().map(Into::into);
        self.contacts = addresses
            .map(|address| format!("mailto:{address}"))
            .collect();
        self
    }

    /// The account that a new account belongs to, if the authority demands one.
    #[must_use]
    pub fn external_account(mut self, account: Option<ExternalAccount>) -> Self {
        self.external = account;
        self
    }

    /// The names, in alphabetical order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The address of the authority's directory.
    pub fn directory(&self) -> &str {
        &self.directory
    }

    pub(crate) fn state(&self) -> &Path {
        &self.state
    }

    pub(crate) fn contact_uris(&self) -> &[String] {
        &self.contacts
    }

    pub(crate) fn external(&self) -> Option<&ExternalAccount> {
        self.external.as_ref()
    }
}

/// A DNS name in lower case, without a final dot.
fn checked(name: &str) -> Result<String, SettingsError> {
    let plain = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    if plain.starts_with("*.") {
        return Err(SettingsError::Wildcard(name.to_owned()));
    }
    let is_label = |label: &str| {
        (1..=MAX_LABEL).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && (label.bytes()).all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let labels = plain.split('.').count();
    let is_address = plain.parse::<std::net::IpAddr>().is_ok();
    if labels < 2 || plain.len() > MAX_NAME || is_address || !plain.split('.').all(is_label) {
        return Err(SettingsError::Name(name.to_owned()));
    }
    Ok(plain)
}
