//! The rustls settings in the form required by quinn and noq.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use swiftwater_interop_program::arguments::Suite;
use swiftwater_interop_program::tls::{self, TlsError};
use thiserror::Error;

use crate::quic::crypto::rustls::{NoInitialCipherSuite, QuicClientConfig, QuicServerConfig};

/// Why TLS can't be set up.
#[derive(Debug, Error)]
pub(crate) enum SetupError {
    /// rustls can't.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The suite of Initial packets is missing.
    #[error(transparent)]
    Initial(#[from] NoInitialCipherSuite),
}

/// Settings of a server.
pub(crate) fn server(
    identity: (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>),
    alpn: &[u8],
    suite: Suite,
    early: bool,
) -> Result<Arc<QuicServerConfig>, SetupError> {
    let config = tls::server(identity, alpn, suite, early)?;
    let initial = tls::initial_suite()?;
    let config = QuicServerConfig::with_initial(Arc::new(config), initial)?;
    Ok(Arc::new(config))
}

/// Settings of a client that trusts the certificates of `ca`, or any if `None`.
pub(crate) fn client(
    ca: Option<&Path>,
    alpn: &[u8],
    suite: Suite,
    early: bool,
) -> Result<Arc<QuicClientConfig>, SetupError> {
    let config = tls::client(ca, alpn, suite, early)?;
    let initial = tls::initial_suite()?;
    let config = QuicClientConfig::with_initial(Arc::new(config), initial)?;
    Ok(Arc::new(config))
}
