//! Verification of a server certificate that is itself one of the trusted certificates.
//!
//! RFC 5280 requires that a server's own certificate is not an authority's (webpki's `CaUsedAsEndEntity`)
//! and that a path leads from it to a trust anchor. The usual self-signed certificate, as `openssl req
//! -x509` makes it, is an authority's, and one signed by another key has no path if only the certificate
//! itself is trusted. OpenSSL accepts both if exactly this certificate was given as trusted; so does this
//! verifier.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

/// Verifies as `inner` does, except that a certificate which is byte for byte one of `trusted` needs no
/// issuer and may be an authority's. Its validity and its names are checked as usual, and the server
/// proves possession of the key. The extended key usage is ignored if it is an authority's.
#[derive(Debug)]
pub(crate) struct TrustedLeaf {
    inner: Arc<dyn ServerCertVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl TrustedLeaf {
    pub(crate) fn new(
        inner: Arc<dyn ServerCertVerifier>,
        trusted: Vec<CertificateDer<'static>>,
    ) -> Self {
        Self { inner, trusted }
    }

    /// Whether `error` is irrelevant for a certificate that is trusted itself. webpki checks the
    /// validity of a certificate before either, so both imply that it is valid now.
    fn is_about_the_path(error: &Error) -> bool {
        match error {
            Error::InvalidCertificate(CertificateError::UnknownIssuer) => true,
            Error::InvalidCertificate(CertificateError::Other(other)) => {
                let cause = other.0.downcast_ref::<webpki::Error>();
                matches!(cause, Some(webpki::Error::CaUsedAsEndEntity))
            }
            _ => false,
        }
    }
}

impl ServerCertVerifier for TrustedLeaf {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.inner.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        let Err(error) = verified else {
            return verified;
        };
        let is_trusted = self.trusted.iter().any(|trusted| trusted == end_entity);
        if !is_trusted || !Self::is_about_the_path(&error) {
            return Err(error);
        }
        verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
