//! TLS settings for rustls: certificates from PEM files, ALPN, and the choice of cipher suite.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CipherSuite, ClientConfig, DigitallySignedStruct, KeyLogFile, RootCertStore, ServerConfig,
    SignatureScheme,
};
use thiserror::Error;

use crate::arguments::Suite;

/// Why TLS can't be set up.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A certificate or key can't be read.
    #[error("certificate or key: {0}")]
    Pem(#[from] pem::Error),
    /// A certificate or key can't be used.
    #[error(transparent)]
    Rustls(#[from] rustls::Error),
    /// QUIC needs AES-128-GCM for its Initial packets.
    #[error("AES-128-GCM has no QUIC keys")]
    Initial,
}

/// The library's provider, its TLS 1.3 suites reduced to `suite`.
fn provider(suite: Suite) -> Arc<CryptoProvider> {
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites.retain(|candidate| match suite {
        Suite::Any => candidate.tls13().is_some(),
        Suite::Aes128 => candidate.suite() == CipherSuite::TLS13_AES_128_GCM_SHA256,
        Suite::Aes256 => candidate.suite() == CipherSuite::TLS13_AES_256_GCM_SHA384,
        Suite::Chacha20 => candidate.suite() == CipherSuite::TLS13_CHACHA20_POLY1305_SHA256,
    });
    Arc::new(provider)
}

/// The suite of Initial packets, which is AES-128-GCM whatever is negotiated.
pub fn initial_suite() -> Result<rustls::quic::Suite, TlsError> {
    aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256
        .tls13()
        .and_then(rustls::Tls13CipherSuite::quic_suite)
        .ok_or(TlsError::Initial)
}

/// A server's certificate chain and key, from PEM files.
pub fn read_identity(
    certificate: &Path,
    key: &Path,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
    let chain = CertificateDer::pem_file_iter(certificate)?.collect::<Result<_, _>>()?;
    Ok((chain, PrivateKeyDer::from_pem_file(key)?))
}

/// The TLS settings of a server. 0-RTT data are accepted if `early`.
pub fn server(
    identity: (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>),
    alpn: &[u8],
    suite: Suite,
    early: bool,
) -> Result<ServerConfig, TlsError> {
    let mut config = ServerConfig::builder_with_provider(provider(suite))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(identity.0, identity.1)?;
    config.alpn_protocols = vec![alpn.to_vec()];
    config.key_log = Arc::new(KeyLogFile::new());
    // The only other value that QUIC allows (RFC 9001, section 4.6.1).
    config.max_early_data_size = if early { u32::MAX } else { 0 };
    Ok(config)
}

/// The TLS settings of a client that trusts the certificates of `ca`, or any if `None`.
pub fn client(
    ca: Option<&Path>,
    alpn: &[u8],
    suite: Suite,
    early: bool,
) -> Result<ClientConfig, TlsError> {
    let provider = provider(suite);
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])?;
    let mut config = if let Some(ca) = ca {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(ca)? {
            roots.add(certificate?)?;
        }
        builder.with_root_certificates(roots).with_no_client_auth()
    } else {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anybody(provider)))
            .with_no_client_auth()
    };
    config.alpn_protocols = vec![alpn.to_vec()];
    config.key_log = Arc::new(KeyLogFile::new());
    config.enable_early_data = early;
    Ok(config)
}

/// Accepts every certificate: the speed comparison talks to itself on one machine.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("QUIC uses TLS 1.3".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
