//! The cipher suites of TLS 1.3 that QUIC uses, and the rustls provider made of them.

use std::sync::Arc;

use rustls::SupportedCipherSuite;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{self, cipher_suite};

use crate::config_error::ConfigError;

/// A cipher suite of TLS 1.3 (RFC 8446, section B.4).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum CipherSuite {
    /// `TLS_AES_128_GCM_SHA256`: the fastest with hardware support for AES.
    Aes128Gcm,
    /// `TLS_AES_256_GCM_SHA384`.
    Aes256Gcm,
    /// `TLS_CHACHA20_POLY1305_SHA256`: the fastest without it.
    ChaCha20Poly1305,
}

impl CipherSuite {
    /// All suites, in order of preference.
    pub const ALL: [Self; 3] = [Self::Aes128Gcm, Self::Aes256Gcm, Self::ChaCha20Poly1305];

    const fn to_rustls(self) -> SupportedCipherSuite {
        match self {
            Self::Aes128Gcm => cipher_suite::TLS13_AES_128_GCM_SHA256,
            Self::Aes256Gcm => cipher_suite::TLS13_AES_256_GCM_SHA384,
            Self::ChaCha20Poly1305 => cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
        }
    }

    /// The TLS 1.2 suites with the same cipher and hash, and ephemeral keys.
    const fn to_rustls_tls12(self) -> [SupportedCipherSuite; 2] {
        match self {
            Self::Aes128Gcm => [
                cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
                cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
            ],
            Self::Aes256Gcm => [
                cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
                cipher_suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
            ],
            Self::ChaCha20Poly1305 => [
                cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
                cipher_suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
            ],
        }
    }

    /// The suite for rustls's `suite`; `None` if it isn't one of TLS 1.3's three.
    pub(crate) fn from_rustls(suite: SupportedCipherSuite) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|ours| ours.to_rustls().suite() == suite.suite())
    }
}

/// A provider that offers `suites`, in that order, followed by the corresponding ones of TLS 1.2.
pub(crate) fn provider_over_tcp(
    suites: &[CipherSuite],
) -> Result<Arc<CryptoProvider>, ConfigError> {
    let mut both = CryptoProvider::clone(&*provider(suites)?);
    let older = suites.iter().flat_map(|suite| suite.to_rustls_tls12());
    both.cipher_suites.extend(older);
    Ok(Arc::new(both))
}

/// A provider that offers exactly `suites`, in that order.
pub(crate) fn provider(suites: &[CipherSuite]) -> Result<Arc<CryptoProvider>, ConfigError> {
    if suites.is_empty() {
        return Err(ConfigError::NoCipherSuite);
    }
    Ok(Arc::new(CryptoProvider {
        cipher_suites: suites.iter().map(|suite| suite.to_rustls()).collect(),
        ..aws_lc_rs::default_provider()
    }))
}
