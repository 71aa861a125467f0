//! Loads the certificates of the configuration.

use swiftwater_http::tcp::Certificates;

use super::config::Config;
use crate::exit::{Exit, Failure};
use crate::identity::{Identity, default_state_dir};

/// Reads them; the first is the default. At least one.
pub(super) fn identities(config: &Config) -> Result<Vec<Identity>, Failure> {
    let files = config.certificates.iter();
    let identities = files
        .map(|files| Identity::from_files(&files.cert, &files.key))
        .collect::<Result<Vec<_>, _>>()?;
    if !identities.is_empty() {
        return Ok(identities);
    }
    let state_dir = match &config.tls.state_dir {
        Some(directory) => directory.clone(),
        None => default_state_dir()?,
    };
    Ok(vec![Identity::development(&state_dir, &config.tls.names)?])
}

/// The certificates for handshakes.
pub(super) fn certificates(identities: &[Identity]) -> Result<Certificates, Failure> {
    let pairs = identities.iter();
    let pairs = pairs.map(|identity| (identity.chain.as_slice(), identity.key.as_slice()));
    Certificates::from_pems(pairs).map_err(|error| Failure::new(Exit::Certificate, error))
}
