//! The file with what was learned: read once, replaced as a whole.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use swiftwater_select::Selector;
use swiftwater_units::Instant;
use tempfile::NamedTempFile;

/// Largest file that is read, bytes: more than a selector accepts.
const MAX_FILE: u64 = (16 << 20) + 1;

/// A state file.
pub(super) struct StateFile {
    path: PathBuf,
    /// What is there is not the state of a selector.
    refused: AtomicBool,
    /// Why it could not be used.
    pub(super) problem: Option<String>,
}

impl StateFile {
    /// Reads the file into `selector`, whose clock shows `now`. What can't be used is reported.
    pub(super) fn load(
        path: PathBuf,
        selector: &mut Selector,
        now: Instant,
        clock: Duration,
    ) -> Self {
        let refused = match read(&path) {
            Ok(text) => {
                let restored = selector.restore(now, clock, &text);
                restored.map_err(|error| error.to_string())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error.to_string()),
        };
        let problem = refused.err();
        if let Some(problem) = &problem {
            tracing::warn!(
                file = %path.display(),
                "the selection starts anew, because the state file can't be used: {problem}"
            );
        }
        Self {
            path,
            refused: AtomicBool::new(problem.is_some()),
            problem,
        }
    }

    /// Replaces the file. One that could not be used is kept under another name.
    pub(super) fn save(&self, text: &str) -> io::Result<()> {
        if self.refused.load(Ordering::Relaxed) {
            let mut name = OsString::from(&self.path);
            name.push(".refused");
            match fs::rename(&self.path, name) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            self.refused.store(false, Ordering::Relaxed);
        }
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let folder = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        };
        let mut file = NamedTempFile::new_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(&self.path)?;
        Ok(())
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let file = fs::File::open(path)?;
    file.take(MAX_FILE).read_to_string(&mut text)?;
    Ok(text)
}
