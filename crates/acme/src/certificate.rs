//! A chain with its key.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use sha2::{Digest as _, Sha256};
use swiftwater_http::tcp::Certificates;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::error::AcmeError;

/// A certificate with its chain and key, which was checked to belong together.
#[derive(Clone, Eq, PartialEq)]
pub struct Certificate {
    chain: String,
    key: String,
    leaf: CertificateDer<'static>,
    names: Vec<String>,
    valid: (SystemTime, SystemTime),
}

impl Certificate {
    /// From PEM texts.
    ///
    /// # Errors
    ///
    /// If they are none, or don't belong together.
    pub fn from_pem(chain: &str, key: &str) -> Result<Self, AcmeError> {
        Certificates::from_pem(chain.as_bytes(), key.as_bytes())?;
        let syntax = |error: &dyn fmt::Display| AcmeError::Syntax(error.to_string());
        let leaf = CertificateDer::from_pem_slice(chain.as_bytes());
        let leaf = leaf.map_err(|error| syntax(&error))?;
        let (names, valid) = {
            let (_, parsed) = X509Certificate::from_der(&leaf).map_err(|error| syntax(&error))?;
            let alternative = parsed.subject_alternative_name();
            let alternative = alternative.map_err(|error| syntax(&error))?;
            let names = alternative.iter().flat_map(|it| &it.value.general_names);
            let mut names: Vec<String> = names
                .filter_map(|name| match name {
                    GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
                    _ => None,
                })
                .collect();
            names.sort_unstable();
            let validity = parsed.validity();
            let (begin, end) = (
                validity.not_before.timestamp(),
                validity.not_after.timestamp(),
            );
            (names, (at(begin), at(end)))
        };
        Ok(Self {
            chain: chain.to_owned(),
            key: key.to_owned(),
            leaf,
            names,
            valid,
        })
    }

    /// The chain, PEM, the server's own certificate first.
    pub fn chain_pem(&self) -> &str {
        &self.chain
    }

    /// The private key, PEM.
    pub fn key_pem(&self) -> &str {
        &self.key
    }

    /// The names, in alphabetical order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// When it becomes valid.
    pub fn not_before(&self) -> SystemTime {
        self.valid.0
    }

    /// When it expires.
    pub fn not_after(&self) -> SystemTime {
        self.valid.1
    }

    /// Whether it is valid at a time.
    pub fn is_valid_at(&self, time: SystemTime) -> bool {
        (self.valid.0..self.valid.1).contains(&time)
    }

    pub(crate) fn leaf(&self) -> &CertificateDer<'static> {
        &self.leaf
    }

    /// A number between 0 and 1 that differs between certificates: servers that got theirs at the same time renew them
    /// at different ones.
    pub(crate) fn spread(&self) -> f64 {
        let digest = Sha256::digest(&self.leaf);
        let bits = digest.iter().take(4);
        let number = bits.fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
        f64::from(number) / f64::from(u32::MAX)
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate")
            .field("names", &self.names)
            .field("valid", &self.valid)
            .finish_non_exhaustive()
    }
}

/// Seconds since 1970; before that counts as 1970.
fn at(seconds: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
}
