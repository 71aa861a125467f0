//! The certificate that servers show, replaceable while they run. One [`Certificates`] may stand
//! behind several TLS configurations, of TCP and QUIC alike.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use thiserror::Error;

/// Why a certificate can't be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// The text holds no certificate, or no private key, or a damaged one.
    #[error("PEM: {0}")]
    Pem(pem::Error),
    /// The chain has no certificate.
    #[error("no certificate was given")]
    Empty,
    /// The key is of an unknown kind or does not belong to the certificate.
    #[error("certificate and key: {0}")]
    Key(#[from] rustls::Error),
}

/// A certificate chain with its private key, which can be replaced at any time. Handshakes that begin
/// afterwards see the new one; connections that stand keep theirs.
#[derive(Debug)]
pub struct Certificates {
    current: RwLock<Arc<CertifiedKey>>,
}

impl Certificates {
    /// `chain`, the server's own certificate first, with its key.
    pub fn new(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, CertificateError> {
        Ok(Self {
            current: RwLock::new(certified(chain, key)?),
        })
    }

    /// The same, from PEM texts.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, CertificateError> {
        let (chain, key) = parse(chain, key)?;
        Self::new(chain, key)
    }

    /// Shows another certificate from now on. After an error the old one stays.
    pub fn replace(
        &self,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<(), CertificateError> {
        let next = certified(chain, key)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = next;
        Ok(())
    }

    /// The same, from PEM texts.
    pub fn replace_from_pem(&self, chain: &[u8], key: &[u8]) -> Result<(), CertificateError> {
        let (chain, key) = parse(chain, key)?;
        self.replace(chain, key)
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(&current))
    }
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

type ChainAndKey = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn parse(chain: &[u8], key: &[u8]) -> Result<ChainAndKey, CertificateError> {
    let chain = CertificateDer::pem_slice_iter(chain)
        .collect::<Result<_, _>>()
        .map_err(CertificateError::Pem)?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(CertificateError::Pem)?;
    Ok((chain, key))
}
