//! The version of a file: what distinguishes one state of its content from another. No I/O.

use std::fs::Metadata;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A change within this time after the last one may leave the times as they are: file systems count in steps of up to
/// 2 s (FAT).
const TIMES_TELL_AFTER: Duration = Duration::from_secs(3);

/// One state of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Version {
    length: u64,
    modified: Option<SystemTime>,
    /// Device and inode: a file that was renamed over another differs.
    #[cfg(unix)]
    file: (u64, u64),
    /// Time of the last change, which no program can set: seconds and nanoseconds since 1970.
    #[cfg(unix)]
    changed: (i64, i64),
}

impl Version {
    /// The version that `metadata` describes.
    pub(super) fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt;
        Self {
            length: metadata.len(),
            modified: metadata.modified().ok(),
            #[cfg(unix)]
            file: (metadata.dev(), metadata.ino()),
            #[cfg(unix)]
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Whether every change from `now` on leads to another version: the last one was long enough ago.
    pub(super) fn is_settled(&self, now: SystemTime) -> bool {
        let Some(latest) = now.checked_sub(TIMES_TELL_AFTER) else {
            return false;
        };
        #[cfg(unix)]
        let changed = {
            let (seconds, _) = self.changed;
            // Rounded up.
            let seconds = u64::try_from(seconds).unwrap_or(0).saturating_add(1);
            UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
        };
        #[cfg(not(unix))]
        let changed = Some(UNIX_EPOCH);
        let before = |time: Option<SystemTime>| time.is_some_and(|time| time <= latest);
        before(self.modified) && before(changed)
    }
}
