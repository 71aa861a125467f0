//! One process per folder.

use std::fs::File;
use std::path::Path;

use super::{StoreError, names};

/// Held while a folder is written to. The system releases it when the process ends.
#[derive(Debug)]
pub(super) struct Lock {
    /// The lock lives as long as the open file.
    _file: File,
}

impl Lock {
    /// Takes the lock of `folder`, or fails at once. The file itself is never removed: otherwise
    /// two processes could hold locks on two files of the same name.
    pub(super) fn take(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join(names::LOCK);
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(StoreError::io(&path))?;
        match fs4::FileExt::try_lock(&file) {
            Ok(()) => Ok(Self { _file: file }),
            Err(fs4::TryLockError::WouldBlock) => Err(StoreError::InUse(folder.to_owned())),
            Err(fs4::TryLockError::Error(error)) => Err(StoreError::io(&path)(error)),
        }
    }
}
