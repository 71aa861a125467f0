//! Server certificates that can be replaced at run time. One [`Certificates`] may be used by
//! several TLS configurations, of TCP and QUIC.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::client::verify_server_name;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use thiserror::Error;

/// Why a certificate can't be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// The text has no certificate, or no private key, or a damaged one.
    #[error("PEM: {0}")]
    Pem(pem::Error),
    /// The chain has no certificate.
    #[error("no certificate was given")]
    Empty,
    /// The key is of an unsupported type or does not belong to the certificate.
    #[error("certificate and key: {0}")]
    Key(#[from] rustls::Error),
}

/// One or more certificate chains with their private keys, which can be replaced at any time. Later
/// handshakes use the new ones; open connections are not affected.
///
/// Of several, the first that is valid for the client's server name is sent (RFC 6066, section 3),
/// and the first of all if none is valid or the client sends no name. Each handshake searches them
/// linearly: intended for dozens, not thousands.
#[derive(Debug)]
pub struct Certificates {
    current: RwLock<Arc<[Arc<CertifiedKey>]>>,
}

impl Certificates {
    /// `chain`, the server's own certificate first, with its key.
    pub fn new(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, CertificateError> {
        Ok(Self::of(vec![certified(chain, key)?]))
    }

    /// The same, from PEM texts.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, CertificateError> {
        Self::from_pems([(chain, key)])
    }

    /// Several chains with their keys, from PEM texts; at least one.
    pub fn from_pems<'a>(
        pairs: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Result<Self, CertificateError> {
        Ok(Self::of(parse_all(pairs)?))
    }

    fn of(keys: Vec<Arc<CertifiedKey>>) -> Self {
        Self {
            current: RwLock::new(keys.into()),
        }
    }

    /// Replaces the certificates by one chain. After an error the old ones stay.
    pub fn replace(
        &self,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<(), CertificateError> {
        self.put(vec![certified(chain, key)?]);
        Ok(())
    }

    /// The same, from PEM texts.
    pub fn replace_from_pem(&self, chain: &[u8], key: &[u8]) -> Result<(), CertificateError> {
        self.replace_from_pems([(chain, key)])
    }

    /// Replaces the certificates, as [`from_pems`](Self::from_pems). After an error the old ones
    /// stay.
    pub fn replace_from_pems<'a>(
        &self,
        pairs: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Result<(), CertificateError> {
        self.put(parse_all(pairs)?);
        Ok(())
    }

    /// Takes over the certificates of `other`.
    pub fn replace_with(&self, other: &Self) {
        let next = other.get();
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = next;
    }

    fn put(&self, keys: Vec<Arc<CertifiedKey>>) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = keys.into();
    }

    fn get(&self) -> Arc<[Arc<CertifiedKey>]> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let current = self.get();
        let named = match &*current {
            [_, _, ..] => hello.server_name().and_then(|name| {
                let name = ServerName::try_from(name).ok()?;
                current.iter().find(|key| is_valid_for(key, &name))
            }),
            _ => None,
        };
        named.or_else(|| current.first()).cloned()
    }
}

/// Whether the certificate is valid for `name`, by the rules of clients.
fn is_valid_for(key: &CertifiedKey, name: &ServerName<'_>) -> bool {
    let Some(certificate) = key.cert.first() else {
        return false;
    };
    ParsedCertificate::try_from(certificate)
        .is_ok_and(|certificate| verify_server_name(&certificate, name).is_ok())
}

fn certified(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<CertifiedKey>, CertificateError> {
    if chain.is_empty() {
        return Err(CertificateError::Empty);
    }
    let provider = aws_lc_rs::default_provider();
    Ok(Arc::new(CertifiedKey::from_der(chain, key, &provider)?))
}

fn parse_all<'a>(
    pairs: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
) -> Result<Vec<Arc<CertifiedKey>>, CertificateError> {
    let keys = pairs.into_iter().map(|(chain, key)| parse(chain, key));
    let keys = keys.collect::<Result<Vec<_>, _>>()?;
    if keys.is_empty() {
        return Err(CertificateError::Empty);
    }
    Ok(keys)
}

fn parse(chain: &[u8], key: &[u8]) -> Result<Arc<CertifiedKey>, CertificateError> {
    let chain = CertificateDer::pem_slice_iter(chain)
        .collect::<Result<_, _>>()
        .map_err(CertificateError::Pem)?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(CertificateError::Pem)?;
    certified(chain, key)
}
