//! Reading and making what the user names: files of a sane size, and directories.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// The largest trace that is read, bytes: weeks of one packet per millisecond.
pub const MAX_TRACE: u64 = 256 << 20;

/// The largest file of certificates or keys that is read, bytes.
pub const MAX_PEM: u64 = 16 << 20;

/// Reads a whole file, unless it is larger than `most` bytes; devices that never end are.
pub fn read_limited(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)?
        .take(most.saturating_add(1))
        .read_to_end(&mut content)?;
    if content.len() as u64 > most {
        let text = format!("larger than {} MiB", most >> 20);
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok(content)
}

/// Makes a directory and those above it, where missing. If something else has its name, the error
/// says so.
pub fn make_directory(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => io::Error::from(io::ErrorKind::NotADirectory),
        _ => error,
    })
}
