//! The secrets that the next process at this address has, too.

use swiftwater::tls::EndpointSecrets;

use super::config::Config;
use crate::exit::Failure;
use crate::identity::default_state_dir;
use crate::secrets::{default_file, from_file};

/// Those of the file that the configuration names, else those of this address in the state directory. None
/// if there is neither a file nor a directory for one, or if the port is any: the process then has its own.
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
            tracing::warn!(%failure, "clients will not notice a restart at once");
        })
        .ok())
}

/// Whether the file that the configuration names can be used, if it is there already.
pub(super) fn check(config: &Config) -> Result<(), Failure> {
    match &config.transport.secrets {
        Some(file) if file.exists() => from_file(file).map(drop),
        _ => Ok(()),
    }
}
