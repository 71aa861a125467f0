//! The secrets that the next process at this address shares.

use swiftwater::tls::EndpointSecrets;

use super::config::Config;
use crate::exit::Failure;
use crate::identity::default_state_dir;
use crate::secrets::{default_file, from_file};

/// The secrets in the configured file, else those of this address in the state directory. `None` without a
/// file or directory, or with an OS-chosen port: the process then generates its own.
pub(super) fn kept(config: &Config) -> Result<Option<EndpointSecrets>, Failure> {
    if let Some(file) = &config.transport.secrets {
        return from_file(file).map(Some);
    }
    if config.listen.port() == 0 {
        return Ok(None);
    }
    let state_dir = match &config.tls.state_dir {
        Some(directory) => Ok(directory.clone()),
        None => default_state_dir(),
    };
    let kept = state_dir.and_then(|directory| from_file(&default_file(&directory, config.listen)));
    Ok(kept
        .inspect_err(|failure| {
            tracing::warn!(%failure, "clients will not detect a restart at once");
        })
        .ok())
}

/// Whether the configured file can be used, if it exists.
pub(super) fn check(config: &Config) -> Result<(), Failure> {
    match &config.transport.secrets {
        Some(file) if file.exists() => from_file(file).map(drop),
        _ => Ok(()),
    }
}
