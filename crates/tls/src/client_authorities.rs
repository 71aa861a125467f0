//! The certificates of clients that a server accepts (RFC 8446, section 4.3.2): those of certain authorities, less those
//! that were revoked. Clients without a certificate are let in; what they may do is decided above TLS.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};

use crate::cipher_suite::{self, CipherSuite};
use crate::config_error::ConfigError;

/// Authorities whose certificates a server accepts of its clients, for TLS configurations of QUIC and TCP. They can be
/// replaced at any time: later handshakes use the new ones, open connections are not affected.
///
/// A client that presents a certificate of another authority, an expired or a revoked one, or one that is not meant for
/// clients (extended key usage) fails its handshake. One that presents none passes. The names of the authorities are not sent.
#[derive(Debug)]
pub struct ClientAuthorities {
    current: RwLock<Arc<dyn ClientCertVerifier>>,
}

impl ClientAuthorities {
    /// Accepts what `authorities`, at least one, signed. With `revocation_lists`, every certificate of a client and of
    /// authorities between must be covered by a list that has not expired (RFC 5280, section 5); without any nothing is revoked.
    pub fn new(
        authorities: impl IntoIterator<Item = CertificateDer<'static>>,
        revocation_lists: impl IntoIterator<Item = CertificateRevocationListDer<'static>>,
    ) -> Result<Self, ConfigError> {
        let mut roots = RootCertStore::empty();
        for authority in authorities {
            roots.add(authority)?;
        }
        let provider = cipher_suite::provider(&CipherSuite::ALL)?;
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .with_crls(revocation_lists)
            .enforce_revocation_expiration()
            .allow_unauthenticated()
            .build()?;
        Ok(Self {
            current: RwLock::new(verifier),
        })
    }

    /// Takes over the authorities and the revocation lists of `other`.
    pub fn replace_with(&self, other: &Self) {
        let next = other.get();
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = next;
    }

    fn get(&self) -> Arc<dyn ClientCertVerifier> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ClientCertVerifier for ClientAuthorities {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    /// None: they could be replaced while they are borrowed.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.get()
            .verify_client_cert(end_entity, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.get()
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.get()
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.get().supported_verify_schemes()
    }
}
