//! The files that the demo transfers: a short video included in the program and a generated random
//! file.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::random_numbers::RandomNumbers;
use crate::digest::sha256;
use crate::exit::{Exit, Failure, plain_io_error};
use crate::table;

/// See `assets/README.md`.
const VIDEO: &[u8] = include_bytes!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../assets/fractal.mp4"
));

/// Bytes of the random file.
const RANDOM_SIZE: usize = 20_000_000;

/// Bytes of the random file with `--quick`.
const QUICK_SIZE: usize = 2_000_000;

/// A file to transfer.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its name, in the served directory and in reports.
    pub name: &'static str,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its content, to verify what arrives.
    pub sha256: [u8; 32],
}

/// The files and a temporary directory for them and their copies; removed when dropped.
#[derive(Debug)]
pub struct Files {
    directory: TempDir,
    sources: [Source; 2],
}

impl Files {
    /// Writes the files.
    pub fn prepare(quick: bool, seed: u64) -> Result<Self, Failure> {
        let failed = |error: io::Error| {
            let why = plain_io_error(&error);
            Failure::new(
                Exit::LocalFile,
                format_args!(
                    "cannot write temporary files below {}: {why} (TMPDIR names another directory)",
                    env::temp_dir().display()
                ),
            )
        };
        let directory = tempfile::Builder::new()
            .prefix("swiftwater-demo-")
            .tempdir();
        let directory = directory.map_err(failed)?;
        let site = directory.path().join("site");
        fs::create_dir(&site).map_err(failed)?;
        let random = RandomNumbers::new(seed).bytes(if quick { QUICK_SIZE } else { RANDOM_SIZE });
        let write = |name: &'static str, data: &[u8]| {
            fs::write(site.join(name), data).map_err(failed)?;
            Ok::<_, Failure>(Source {
                name,
                bytes: data.len() as u64,
                sha256: sha256(data),
            })
        };
        let sources = [write("fractal.mp4", VIDEO)?, write("random.bin", &random)?];
        Ok(Self { directory, sources })
    }

    /// The directory that servers serve.
    pub fn site(&self) -> PathBuf {
        self.directory.path().join("site")
    }

    /// A directory for received files; created if missing.
    pub fn arrivals(&self, name: &str) -> io::Result<PathBuf> {
        let path = Path::join(self.directory.path(), name);
        fs::create_dir_all(&path)?;
        Ok(path)
    }

    /// The files.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// A description of the files.
    pub fn describe(&self) -> String {
        let [video, random] = self
            .sources
            .each_ref()
            .map(|source| table::bytes(source.bytes));
        format!("a video ({video}) and a random file ({random})")
    }
}
