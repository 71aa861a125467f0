//! A file being downloaded that can be continued: `.NAME.part`, and next to it `.NAME.part.json` with the
//! server's validator of this version.
//!
//! The record exists before the first byte of content and is written atomically, so that a killed process
//! leaves bytes of exactly the version that the record names, or bytes without a record, which are ignored.
//! (In a power failure the system may lose synced bytes; continuing is then only as reliable as the file
//! system.)

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tempfile::{NamedTempFile, TempPath};

use crate::digest::{hex, sha256};
use crate::exit::{Exit, Failure};
use crate::files::read_limited;
use crate::part_file::{PartFileError, directory_of, failed, sync_directory};

/// Longest part of the final name in the part's name: names are limited to 255 bytes, including
/// `..part.json`.
const NAME_EXCERPT: usize = 200;

/// The largest record that is read, bytes.
const MAX_RECORD: u64 = 1 << 20;

/// How often another process may take the file's name first.
const ATTEMPTS: u32 = 3;

/// The version that a part belongs to.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Record {
    /// The URL as given by the user.
    pub(super) url: String,
    /// For `If-Range`: a strong entity tag, or a date that counts as one.
    pub(super) validator: String,
    /// Bytes of the whole file, if announced by the server.
    pub(super) length: Option<u64>,
}

/// A file being downloaded. If dropped, it is kept if it can be continued, otherwise removed.
#[derive(Debug)]
pub(super) struct Part {
    /// The final name.
    path: PathBuf,
    present: PathBuf,
    note: PathBuf,
    file: File,
    overwrite: bool,
    record: Option<Record>,
    written: u64,
    /// Nothing was changed yet; existing files stay.
    as_found: bool,
    /// Bytes of the same file that could be continued and will not be.
    ignored: Option<u64>,
    done: bool,
}

impl Part {
    /// The part of what will be `path`, locked against other processes. With `resume`, existing bytes
    /// of the file at `url` are used. Fails if the name is taken, unless `overwrite`.
    pub(super) fn open(
        path: &Path,
        url: &str,
        overwrite: bool,
        resume: bool,
    ) -> Result<Self, Failure> {
        if !overwrite && path.symlink_metadata().is_ok() {
            return Err(PartFileError::Exists(path.to_owned()).into());
        }
        let (part, note) = names(path);
        let mut file = locked(path, &part)?;
        let size = file
            .seek(SeekFrom::End(0))
            .map_err(|error| failed(path, error))?;
        let found = read_record(&note).filter(|record| record.url == url);
        let ignored = (!resume && found.is_some() && size > 0).then_some(size);
        let record = found.filter(|_| resume);
        Ok(Self {
            path: path.to_owned(),
            present: part,
            note,
            file,
            overwrite,
            written: if record.is_some() { size } else { 0 },
            record,
            as_found: size > 0,
            ignored,
            done: false,
        })
    }

    /// Existing bytes, and their version; `None` if there is nothing to continue.
    pub(super) fn standing(&self) -> Option<(u64, &Record)> {
        let record = self.record.as_ref()?;
        (self.written > 0).then_some((self.written, record))
    }

    /// Bytes of an earlier download of the same URL that could be continued but will be overwritten,
    /// because continuation was not requested.
    pub(super) fn ignored(&self) -> Option<u64> {
        self.ignored
    }

    /// The version of the content is known now.
    pub(super) fn has_version(&self) -> bool {
        self.record.is_some()
    }

    /// Starts again with the version that `record` names; without one, the part can't be continued.
    pub(super) fn begin(&mut self, record: Option<Record>) -> Result<(), Failure> {
        let wrong = |path: &Path, error| Failure::from(failed(path, error));
        // The existing bytes belong to no version during this change.
        self.as_found = false;
        self.record = None;
        self.written = 0;
        remove(&self.note).map_err(|error| wrong(&self.path, error))?;
        let emptied = self.file.set_len(0).and_then(|()| self.file.rewind());
        emptied.map_err(|error| wrong(&self.path, error))?;
        if let Some(record) = record {
            write_record(&self.note, &record).map_err(|error| wrong(&self.path, error))?;
            self.record = Some(record);
        }
        Ok(())
    }

    /// Appends `data`.
    pub(super) fn write_all(&mut self, data: &[u8]) -> Result<(), Failure> {
        self.as_found = false;
        let wrote = self.file.write_all(data);
        wrote.map_err(|error| failed(&self.path, error))?;
        self.written += data.len() as u64;
        Ok(())
    }

    /// Flushes everything to disk and renames the file atomically. If that fails, the part is kept as
    /// when it is dropped.
    pub(super) fn complete(mut self) -> Result<(), Failure> {
        let wrong = |path: &Path, error| Failure::from(failed(path, error));
        let synced = self.file.sync_all();
        synced.map_err(|error| wrong(&self.path, error))?;
        let part =
            TempPath::try_from_path(&self.present).map_err(|error| wrong(&self.path, error))?;
        let named = if self.overwrite {
            part.persist(&self.path)
        } else {
            part.persist_noclobber(&self.path)
        };
        if let Err(error) = named {
            // Whether it is kept is decided elsewhere.
            let mut part = error.path;
            part.disable_cleanup(true);
            return Err(wrong(&self.path, error.error));
        }
        self.done = true;
        // A record without its part has no meaning.
        let _ = remove(&self.note);
        sync_directory(directory_of(&self.path));
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.done || self.as_found || self.standing().is_some() {
            return;
        }
        // A failure here has no remedy.
        let _ = remove(&self.note);
        let _ = remove(&self.present);
    }
}

/// The names of the part and of its record.
fn names(path: &Path) -> (PathBuf, PathBuf) {
    let whole = path.file_name().unwrap_or_default();
    let mut name = OsString::from(".");
    if whole.len() <= NAME_EXCERPT {
        name.push(whole);
    } else {
        let text = whole.to_string_lossy();
        let mut end = NAME_EXCERPT.min(text.len()) - 17;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let digest = hex(&sha256(whole.as_encoded_bytes()), None);
        name.push(format!("{}-{}", &text[..end], &digest[..16]));
    }
    name.push(".part");
    let directory = directory_of(path);
    let part = directory.join(&name);
    name.push(".json");
    (part, directory.join(name))
}

/// Opens the part, made if missing, and locks it. Links are not followed: in a directory that others
/// may write to, they could point anywhere.
fn locked(path: &Path, part: &Path) -> Result<File, Failure> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    }
    for _ in 0..ATTEMPTS {
        let file = options.open(part).map_err(|error| failed(path, error))?;
        match fs4::FileExt::try_lock(&file) {
            Ok(()) => {}
            Err(fs4::TryLockError::WouldBlock) => break,
            Err(fs4::TryLockError::Error(error)) => return Err(failed(path, error).into()),
        }
        let found = file.metadata().map_err(|error| failed(path, error))?;
        if !found.is_file() {
            let error = io::Error::other(format!("{} is not a file", part.display()));
            return Err(failed(path, error).into());
        }
        if has_other_names(&found) {
            let text = "has another name (a hard link), and writing would change that file too";
            let error = io::Error::other(format!("{} {text}", part.display()));
            return Err(failed(path, error).into());
        }
        // The process that had the lock may have renamed the file meanwhile.
        if is_still(part, &found) {
            return Ok(file);
        }
    }
    Err(Failure::new(
        Exit::LocalFile,
        format_args!("{}: another download is writing it", path.display()),
    ))
}

#[cfg(unix)]
fn has_other_names(found: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    found.nlink() > 1
}

#[cfg(not(unix))]
fn has_other_names(_: &fs::Metadata) -> bool {
    false
}

#[cfg(unix)]
fn is_still(part: &Path, found: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    part.symlink_metadata()
        .is_ok_and(|now| (now.dev(), now.ino()) == (found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn is_still(part: &Path, _: &fs::Metadata) -> bool {
    part.symlink_metadata().is_ok()
}

/// A malformed record counts as none.
fn read_record(note: &Path) -> Option<Record> {
    let is_file = note.symlink_metadata().is_ok_and(|found| found.is_file());
    let text = is_file.then(|| read_limited(note, MAX_RECORD).ok())??;
    serde_json::from_slice(&text).ok()
}

fn write_record(note: &Path, record: &Record) -> io::Result<()> {
    let text = serde_json::to_vec(record)?;
    let mut file = NamedTempFile::new_in(directory_of(note))?;
    file.write_all(&text)?;
    file.persist(note)?;
    Ok(())
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
