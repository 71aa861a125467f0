//! Reads, writes and creates files and directories named by the user, with limits on their size.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use tempfile::NamedTempFile;

/// The largest trace that is read, bytes: weeks of one packet per millisecond.
pub const MAX_TRACE: u64 = 256 << 20;

/// The largest file of certificates or keys that is read, bytes.
pub const MAX_PEM: u64 = 16 << 20;

/// Reads a whole file, unless it is larger than `most` bytes, as endless devices are.
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

/// Creates a directory and its missing parents. If a file has its name, the error states so.
pub fn make_directory(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => io::Error::from(io::ErrorKind::NotADirectory),
        _ => error,
    })
}

/// Creates a directory and its missing parents, accessible to this user only.
pub fn make_private_directory(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => io::Error::from(io::ErrorKind::NotADirectory),
            _ => error,
        })
    }
    #[cfg(not(unix))]
    make_directory(path)
}

/// Writes a file atomically, with permissions `mode`, in `directory`, which is created for this user only
/// if it is missing.
pub fn replace(directory: &Path, path: &Path, text: &str, mode: u32) -> io::Result<()> {
    make_private_directory(directory)?;
    let mut file = NamedTempFile::new_in(directory)?;
    file.write_all(text.as_bytes())?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        file.as_file()
            .set_permissions(fs::Permissions::from_mode(mode))?;
    }
    #[cfg(not(unix))]
    let _ = mode;
    file.persist(path)?;
    Ok(())
}
