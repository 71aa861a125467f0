//! SHA-256, of memory and of files.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

/// The SHA-256 of `data`.
pub fn sha256(data: &[u8]) -> [u8; 32] {
    Sha256::digest(data).into()
}

/// The SHA-256 of the file at `path`.
pub fn sha256_file(path: &Path) -> io::Result<[u8; 32]> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finalize().into()),
            n => hasher.update(&buffer[..n]),
        }
    }
}

/// `bytes` in hexadecimal; with `separator` between them if one is given.
pub fn hex(bytes: &[u8], separator: Option<char>) -> String {
    let mut text = String::with_capacity(bytes.len() * 3);
    for (index, byte) in bytes.iter().enumerate() {
        if let Some(separator) = separator.filter(|_| index > 0) {
            text.push(separator);
        }
        // Writing to a string can't fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
