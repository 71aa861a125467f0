//! Logs as files of a directory. This module does I/O and reads the wall clock; no other of the crate
//! does.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use swiftwater_quic::observe::{Observer, ObserverFactory};
use swiftwater_units::Side;
use time::OffsetDateTime;

use crate::header::{TraceInfo, side_name};
use crate::log::Limits;
use crate::observer::QlogObserver;

/// Names tried for one log. Other programs that write to the same directory in the same second may
/// take some.
const ATTEMPTS: usize = 1_000;

/// Creates a file for each connection, `20261121T101530Z-client-0000.sqlog`: start time (UTC), the
/// writing end, and a number. No file is ever overwritten.
///
/// A connection whose file can't be created is not logged; the first such failure is a warning.
/// Files stay open as long as their connections: consider the system's limit on a busy server.
#[derive(Debug)]
pub struct DirectoryFactory {
    directory: PathBuf,
    limits: Limits,
    wall_clock: bool,
    next: AtomicU64,
    warned: AtomicBool,
}

impl DirectoryFactory {
    /// Writes into `directory`, which is created if missing. Fails if it can't be created or is not
    /// a directory.
    pub fn new(directory: impl Into<PathBuf>) -> io::Result<Self> {
        let directory = directory.into();
        fs::create_dir_all(&directory).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => io::Error::from(io::ErrorKind::NotADirectory),
            _ => error,
        })?;
        Ok(Self {
            directory,
            limits: Limits::default(),
            wall_clock: true,
            next: AtomicU64::new(0),
            warned: AtomicBool::new(false),
        })
    }

    /// Sets the limits of the logs.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Leaves calendar time out of names and logs, `client-0000.sqlog`: for virtual time, where the
    /// same run produces the same files.
    #[must_use]
    pub fn without_wall_clock(mut self) -> Self {
        self.wall_clock = false;
        self
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Creates the file of a connection of `side`.
    fn create(&self, side: Side) -> io::Result<(TraceInfo, File)> {
        let began = self.wall_clock.then(OffsetDateTime::now_utc);
        for _ in 0..ATTEMPTS {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let mut name = format!("{}-{number:04}", side_name(side));
            if let Some(began) = began {
                name.insert_str(0, &format!("{}-", compact(began)));
            }
            let path = self.directory.join(format!("{name}.sqlog"));
            match OpenOptions::new().write(true).create_new(true).open(path) {
                Ok(file) => {
                    let info = TraceInfo {
                        side,
                        group_id: name,
                        wall_clock: began.map(rfc3339),
                    };
                    return Ok((info, file));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

impl ObserverFactory for DirectoryFactory {
    fn observer(&self, side: Side) -> Option<Box<dyn Observer>> {
        match self.create(side) {
            Ok((info, file)) => Some(Box::new(QlogObserver::new(file, &info, self.limits))),
            Err(error) => {
                if !self.warned.swap(true, Ordering::Relaxed) {
                    let directory = self.directory.display();
                    tracing::warn!(%directory, %error, "qlog file can't be created; connections continue without");
                }
                None
            }
        }
    }
}

/// `20261121T101530Z`, fit for file names everywhere.
fn compact(at: OffsetDateTime) -> String {
    let (year, month, day) = at.to_calendar_date();
    let (hour, minute, second) = at.to_hms();
    let month = u8::from(month);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// `2026-11-21T10:15:30.123Z` (RFC 3339).
fn rfc3339(at: OffsetDateTime) -> String {
    let (year, month, day) = at.to_calendar_date();
    let (hour, minute, second, milli) = at.to_hms_milli();
    let month = u8::from(month);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}
