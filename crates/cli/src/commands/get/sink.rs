//! The destination of the content of a response.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;

use tokio::fs::OpenOptions;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::task;

use super::part::{Part, Record};
use super::plan::Place;
use crate::exit::{Exit, Failure, plain_io_error};

/// An open destination.
pub(super) enum Sink {
    File(Part),
    /// A destination that can't be rewound.
    Stream {
        to: Pin<Box<dyn AsyncWrite + Send>>,
        name: PathBuf,
        written: u64,
    },
    Nothing,
}

impl Sink {
    /// Opens `place` for the content of `url`.
    pub(super) async fn open(
        place: &Place,
        url: &str,
        overwrite: bool,
        resume: bool,
    ) -> Result<Self, Failure> {
        let (to, name): (Pin<Box<dyn AsyncWrite + Send>>, _) = match place {
            Place::File(path) => {
                let part = Part::open(path, url, overwrite, resume)?;
                return Ok(Self::File(part));
            }
            Place::Nowhere => return Ok(Self::Nothing),
            Place::Stdout => (Box::pin(tokio::io::stdout()), "standard output".into()),
            Place::Device(path) => {
                let opened = OpenOptions::new().write(true).open(path).await;
                let device = opened.map_err(|error| unwritable(path, &error))?;
                (Box::pin(device), path.clone())
            }
        };
        Ok(Self::Stream {
            to,
            name,
            written: 0,
        })
    }

    /// Existing bytes of a version that can be continued.
    pub(super) fn standing(&self) -> Option<(u64, &Record)> {
        match self {
            Self::File(part) => part.standing(),
            Self::Stream { .. } | Self::Nothing => None,
        }
    }

    /// Bytes of an earlier download that exist and will be overwritten.
    pub(super) fn ignored(&self) -> Option<u64> {
        match self {
            Self::File(part) => part.ignored(),
            Self::Stream { .. } | Self::Nothing => None,
        }
    }

    /// Whether the rest can be fetched later, even if all of it is missing.
    pub(super) fn can_continue(&self) -> bool {
        match self {
            Self::File(part) => part.has_version(),
            Self::Stream { .. } | Self::Nothing => false,
        }
    }

    /// Whether the content can be sent again from its beginning.
    pub(super) fn is_clean(&self) -> bool {
        match self {
            Self::File(_) | Self::Nothing => true,
            Self::Stream { written, .. } => *written == 0,
        }
    }

    /// Starts from the beginning, with a version if it can be continued.
    pub(super) fn begin(&mut self, record: Option<Record>) -> Result<(), Failure> {
        match self {
            Self::File(part) => part.begin(record),
            Self::Stream { .. } | Self::Nothing => Ok(()),
        }
    }

    /// Writes `data`. Files are written at once: small blocks go to the page cache, and a hand-over to
    /// another thread would cost more.
    pub(super) async fn write(&mut self, data: &[u8]) -> Result<(), Failure> {
        match self {
            Self::File(part) => part.write_all(data),
            Self::Stream { to, name, written } => {
                *written += data.len() as u64;
                let wrote = to.write_all(data).await;
                wrote.map_err(|error| unwritable(name, &error))
            }
            Self::Nothing => Ok(()),
        }
    }

    /// After the last byte. Flushing to disk may take long.
    pub(super) async fn complete(self) -> Result<(), Failure> {
        match self {
            Self::File(part) => {
                let done = task::spawn_blocking(move || part.complete()).await;
                done.map_err(|error| Failure::new(Exit::Failure, error))?
            }
            Self::Stream { mut to, name, .. } => {
                let flushed = to.flush().await;
                flushed.map_err(|error| unwritable(&name, &error))
            }
            Self::Nothing => Ok(()),
        }
    }
}

fn unwritable(name: &Path, error: &io::Error) -> Failure {
    // A closed pipe ends the output without an error message.
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Failure::reported(Exit::Success);
    }
    let why = plain_io_error(error);
    Failure::new(
        Exit::LocalFile,
        format_args!("cannot write to {}: {why}", name.display()),
    )
}
