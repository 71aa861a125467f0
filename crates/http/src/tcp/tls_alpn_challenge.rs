//! Validation of names over TLS (TLS-ALPN-01, RFC 8737): a certificate authority gets a certificate of its own, in
//! handshakes that offer the protocol `acme-tls/1` and nothing else.
//!
//! Certificates are made elsewhere; here they are kept for as long as they are needed.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::certificates::CertificateError;

/// The ALPN name of validations (RFC 8737, section 6.2). Their connections end after the handshake.
pub const ALPN_ACME_TLS: &[u8] = b"acme-tls/1";

type ByName = BTreeMap<String, Arc<CertifiedKey>>;

/// The certificates with which pending validations are answered, by name. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct TlsAlpnChallenges {
    pending: Arc<RwLock<ByName>>,
}

impl TlsAlpnChallenges {
    /// Answers validations of `name` with `certificate`, until [`remove`](Self::remove).
    ///
    /// # Errors
    ///
    /// If the key is of an unsupported type. Whether certificate and key belong together is not checked.
    pub fn set(
        &self,
        name: &str,
        certificate: CertificateDer<'static>,
        key: PrivateKeyDer<'static>,
    ) -> Result<(), CertificateError> {
        // The certificate has a critical extension that verifiers don't know: they couldn't compare it with the key.
        let provider = aws_lc_rs::default_provider();
        let key = provider.key_provider.load_private_key(key)?;
        let certificate = Arc::new(CertifiedKey::new(vec![certificate], key));
        let mut pending = self.pending.write().unwrap_or_else(PoisonError::into_inner);
        pending.insert(name.to_ascii_lowercase(), certificate);
        Ok(())
    }

    /// Ends the validation of `name`.
    pub fn remove(&self, name: &str) {
        let mut pending = self.pending.write().unwrap_or_else(PoisonError::into_inner);
        pending.remove(&name.to_ascii_lowercase());
    }

    /// Lets connections with `config` answer validations. All others get certificates as before.
    pub fn apply(&self, config: &mut ServerConfig) {
        // Last, so that it is chosen only if a client offers nothing else.
        config.alpn_protocols.push(ALPN_ACME_TLS.to_vec());
        config.cert_resolver = Arc::new(Resolver {
            challenges: self.clone(),
            others: Arc::clone(&config.cert_resolver),
        });
    }

    fn get(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let pending = self.pending.read().unwrap_or_else(PoisonError::into_inner);
        pending.get(&name.to_ascii_lowercase()).cloned()
    }
}

#[derive(Debug)]
struct Resolver {
    challenges: TlsAlpnChallenges,
    others: Arc<dyn ResolvesServerCert>,
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let is_validation = hello
            .alpn()
            .is_some_and(|mut names| names.next() == Some(ALPN_ACME_TLS) && names.next().is_none());
        if is_validation {
            return self.challenges.get(hello.server_name()?);
        }
        self.others.resolve(hello)
    }
}
