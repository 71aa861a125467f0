//! Errors of TLS configurations.

use thiserror::Error;

/// Why a TLS configuration or a development certificate could not be created.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// rustls rejected the certificate, the key or the combination of settings.
    #[error("TLS configuration: {0}")]
    Rustls(#[from] rustls::Error),
    /// A certificate verifier could not be made from the given roots.
    #[error("trust anchors: {0}")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
    /// A PEM text holds no usable certificate or key.
    #[error("PEM: {0}")]
    Pem(rustls_pki_types::pem::Error),
    /// A server needs at least one certificate.
    #[error("no certificate was given")]
    NoCertificate,
    /// The list of cipher suites is empty.
    #[error("no cipher suite was given")]
    NoCipherSuite,
    /// The configuration was made by [`from_rustls`](crate::ClientTls::from_rustls); its cipher
    /// suites are chosen there.
    #[error("cipher suites of a rustls configuration can't be changed afterwards")]
    FixedCipherSuites,
    /// The configuration was made by [`from_rustls`](crate::ServerTls::from_rustls); whether it asks for
    /// certificates of clients is decided there.
    #[error("a rustls configuration can't ask for certificates of clients afterwards")]
    FixedClientCertificates,
    /// A certificate could not be generated, most often because a name is neither a DNS name nor an
    /// IP address.
    #[error("certificate generation: {0}")]
    Generation(#[from] rcgen::Error),
    /// The secret of an endpoint is shorter than 32 bytes.
    #[error("an endpoint's secret needs at least 32 bytes")]
    ShortSecret,
}
