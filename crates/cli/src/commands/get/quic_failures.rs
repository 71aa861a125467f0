//! Persistent record of QUIC failures: servers to which QUIC failed where TCP worked, so that the next run
//! doesn't wait for it.
//!
//! One file of the state directory, with hosts, ports, and the addresses of this host in its networks. An
//! unreadable or malformed file counts as none.

use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::Uri;
use serde::{Deserialize, Serialize};
use swiftwater_http::client::{KnownFailure, Network, Origin};
use tempfile::NamedTempFile;

use crate::files::{make_directory, read_limited};

const NAME: &str = "quic-failures.json";

/// The largest file that is read, bytes.
const MAX_SIZE: u64 = 1 << 20;

/// One of the file's entries.
#[derive(Debug, Deserialize, Serialize)]
struct FailureEntry {
    /// `https://host:port`.
    origin: String,
    /// The IPv4 address of this host, and the upper half of its IPv6 address.
    v4: Option<Ipv4Addr>,
    v6: Option<u64>,
    failures: u32,
    /// Seconds since 1970.
    until: u64,
}

impl FailureEntry {
    fn of(known: &KnownFailure) -> Self {
        Self {
            origin: known.origin.to_string(),
            v4: known.network.v4,
            v6: known.network.v6,
            failures: known.failures,
            until: seconds(known.until),
        }
    }

    fn failure(self) -> Option<KnownFailure> {
        let uri: Uri = self.origin.parse().ok()?;
        Some(KnownFailure {
            network: Network {
                v4: self.v4,
                v6: self.v6,
            },
            origin: Origin::of(&uri).ok()?,
            failures: self.failures,
            until: UNIX_EPOCH.checked_add(Duration::from_secs(self.until))?,
        })
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}

fn path(directory: &Path) -> PathBuf {
    directory.join(NAME)
}

/// The record in `directory`, without entries that expired `long` ago.
pub(super) fn read(directory: &Path, long: Duration) -> Vec<KnownFailure> {
    let text = read_limited(&path(directory), MAX_SIZE).unwrap_or_default();
    let entries: Vec<FailureEntry> = serde_json::from_slice(&text).unwrap_or_default();
    let forgotten = SystemTime::now() - long;
    let known = entries.into_iter().filter_map(FailureEntry::failure);
    known.filter(|known| known.until > forgotten).collect()
}

/// True if there is something to write.
pub(super) fn differ(now: &[KnownFailure], before: &[KnownFailure]) -> bool {
    let key = |known: &KnownFailure| (known.network, known.origin.clone(), known.failures);
    now.len() != before.len()
        || now
            .iter()
            .any(|one| !before.iter().any(|other| key(one) == key(other)))
}

/// Writes `known` to `directory`, which is created if missing. The file is replaced atomically, and only its
/// owner can read it.
pub(super) fn write(directory: &Path, known: &[KnownFailure]) -> io::Result<()> {
    make_directory(directory)?;
    let entries: Vec<FailureEntry> = known.iter().map(FailureEntry::of).collect();
    let mut file = NamedTempFile::new_in(directory)?;
    file.write_all(&serde_json::to_vec(&entries)?)?;
    file.persist(path(directory))?;
    Ok(())
}
