//! Settings for libraries that use rustls: AES-128-GCM only, certificates verified, no resumption if tuned.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::NoServerSessionStorage;
use rustls::{CipherSuite, ClientConfig, RootCertStore, ServerConfig, quic};
use thiserror::Error;

use crate::{ClientArguments, ServerArguments};

/// Why TLS can't be set up.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file is missing or has the wrong content.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What's wrong.
        source: pem::Error,
    },
    /// rustls says no.
    #[error(transparent)]
    Rustls(#[from] rustls::Error),
}

impl From<TlsError> for io::Error {
    fn from(error: TlsError) -> Self {
        Self::other(error)
    }
}

/// A server's settings.
pub fn server(arguments: &ServerArguments) -> Result<ServerConfig, TlsError> {
    let key = PrivateKeyDer::from_pem_file(&arguments.key)
        .map_err(|source| file(&arguments.key, source))?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(certificates(&arguments.cert)?, key)?;
    config.alpn_protocols = vec![arguments.settings.alpn().to_vec()];
    if arguments.settings.tuned {
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    Ok(config)
}

/// A client's settings.
pub fn client(arguments: &ClientArguments) -> Result<ClientConfig, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(&arguments.ca)? {
        roots.add(certificate)?;
    }
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![arguments.settings.alpn().to_vec()];
    // Every handshake is to be a full one, whatever the server offers.
    config.resumption = Resumption::disabled();
    Ok(config)
}

/// The suite of Initial packets (RFC 9001, section 5.2), which libraries request separately.
///
/// # Panics
///
/// Never: aws-lc has it.
pub fn initial_suite() -> quic::Suite {
    provider()
        .cipher_suites
        .iter()
        .find_map(|suite| suite.tls13()?.quic_suite())
        .expect("aws-lc has AES-128-GCM")
}

/// The certificates in a file.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|source| file(path, source))
}

fn file(path: &Path, source: pem::Error) -> TlsError {
    TlsError::File {
        path: path.to_owned(),
        source,
    }
}

/// aws-lc with AES-128-GCM alone.
fn provider() -> Arc<CryptoProvider> {
    let mut provider = aws_lc_rs::default_provider();
    provider
        .cipher_suites
        .retain(|suite| suite.suite() == CipherSuite::TLS13_AES_128_GCM_SHA256);
    Arc::new(provider)
}
