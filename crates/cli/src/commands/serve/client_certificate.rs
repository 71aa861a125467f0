//! The certificate with which this server proves to upstreams over TLS who it is.

use std::path::Path;
use std::sync::Arc;

use rustls::client::ResolvesClientCert;
use rustls::crypto::aws_lc_rs;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use swiftwater::tls::pki_types::PrivateKeyDer;
use swiftwater::tls::pki_types::pem::PemObject;

use crate::exit::{Exit, Failure};
use crate::identity::{Identity, read_certificates};

/// Reads the chain `cert` and its key, PEM.
pub(super) fn read(cert: &Path, key: &Path) -> Result<Arc<dyn ResolvesClientCert>, Failure> {
    // Also compares the two.
    let identity = Identity::from_files(cert, key)?;
    let chain = read_certificates(cert)?;
    let unusable = |error: &dyn std::fmt::Display| {
        let text = format_args!("{}: no usable private key: {error}", key.display());
        Failure::new(Exit::LocalFile, text)
    };
    let private = PrivateKeyDer::from_pem_slice(&identity.key).map_err(|error| unusable(&error))?;
    let loaded = aws_lc_rs::default_provider()
        .key_provider
        .load_private_key(private);
    let signing = loaded.map_err(|error| unusable(&error))?;
    Ok(Arc::new(SingleCertAndKey::from(CertifiedKey::new(
        chain, signing,
    ))))
}
