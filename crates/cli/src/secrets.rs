//! The secret of a server's address validation tokens and stateless reset tokens, stored in a file: after
//! a restart, clients with a connection to the previous process get a stateless reset within a round trip
//! (RFC 9000, section 10.3), and tokens stay valid (section 8.1).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use rustls::crypto::aws_lc_rs::default_provider;
use swiftwater::tls::EndpointSecrets;

use crate::digest::hex;
use crate::exit::{Exit, Failure, plain_io_error};
use crate::files::{read_limited, replace};

/// Bytes of a generated secret.
const LENGTH: usize = 32;

/// The largest file that is read, bytes.
const MAX_FILE: u64 = 64 * 1024;

/// The secrets in `file`, which is created if missing, readable by its owner only. Its content is at
/// least 32 arbitrary bytes; servers that share an address may have the same.
pub fn from_file(file: &Path) -> Result<EndpointSecrets, Failure> {
    let failed = |why: &dyn std::fmt::Display| {
        Failure::new(
            Exit::LocalFile,
            format_args!("secrets {}: {why}", file.display()),
        )
    };
    let content = match read_limited(file, MAX_FILE) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let text = format!("{}\n", hex(&random()?, None));
            let directory = file
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty());
            let directory = directory.unwrap_or_else(|| Path::new("."));
            replace(directory, file, &text, 0o600)
                .map_err(|error| failed(&plain_io_error(&error)))?;
            text.into_bytes()
        }
        read => read.map_err(|error| failed(&plain_io_error(&error)))?,
    };
    EndpointSecrets::new(&content).map_err(|_| failed(&"it has less than 32 bytes"))
}

/// The file in `state_dir` for the secrets of a server that listens on `address`. Each address has its own:
/// a server with the same secrets could be used to reset another server's connections (RFC 9000, section
/// 21.11).
pub fn default_file(state_dir: &Path, address: SocketAddr) -> PathBuf {
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => ip.to_string().replace(':', "_"),
    };
    state_dir.join(format!("secrets-{ip}-{}", address.port()))
}

fn random() -> Result<[u8; LENGTH], Failure> {
    let mut secret = [0; LENGTH];
    default_provider()
        .secure_random
        .fill(&mut secret)
        .map_err(|_| Failure::new(Exit::Failure, "the system has no random numbers"))?;
    Ok(secret)
}
