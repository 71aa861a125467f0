//! The content of a response: pieces of text and ranges of one file, read in chunks on blocking threads. At most
//! two chunks are in memory: one that is being sent, one read ahead. Reading ahead starts when the second chunk
//! is polled, so that a client that reads nothing costs one chunk.
//!
//! Each chunk is checked against the headers. A file that got shorter, or whose time changed at the
//! same length, ends the body with an error, so that the client gets an incomplete message instead
//! of a mixture under one entity tag. A file that grew is assumed to be appended to, such as a log:
//! its first bytes are served as announced.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::SystemTime;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use thiserror::Error;
use tokio::task::{JoinHandle, spawn_blocking};

use super::locate::OpenFile;
use super::options::FileOptions;
use super::version::Version;
use crate::web::body::Body as AnyBody;
use crate::web::response_budget::PieceSize;
use crate::web::shared_limit::SharedPermit;

/// A body that is no longer than this is read before its headers are sent, and keeps no open file. It
/// saves a second switch to the blocking threads.
pub(super) const READ_AT_ONCE: u64 = 16 * 1024;

/// How bytes of a file are read: their position and number.
pub(super) type ReadBytes = fn(&Source, u64, usize) -> Option<Bytes>;

/// Why the content of a file could not be sent to its end.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileBodyError {
    /// The file is shorter than announced in the headers.
    #[error("the file was truncated while it was served")]
    Truncated,
    /// The file's modification time differs from that of the entity tag.
    #[error("the file changed while it was served")]
    Changed,
    /// The file system failed.
    #[error("reading failed: {0}")]
    Io(#[from] io::Error),
}

/// The file of a body, as it was when the headers were written.
#[derive(Debug)]
pub(super) struct Source {
    file: File,
    length: u64,
    modified: Option<SystemTime>,
    /// Most bytes read at once.
    chunk: usize,
    /// Size of pieces for which the connection has memory.
    pieces: Option<PieceSize>,
    /// The permit for an open file, returned when the file is closed.
    _permit: Option<SharedPermit>,
}

impl Source {
    /// That of `found`.
    pub(super) fn of(found: OpenFile, options: &FileOptions) -> Self {
        Self {
            length: found.length,
            modified: found.modified,
            file: found.file,
            chunk: options.chunk.clamp(4 * 1024, 1024 * 1024),
            pieces: found.pieces,
            _permit: found.permit,
        }
    }

    /// Bytes to read next, at most.
    fn next_chunk(&self) -> u64 {
        let permitted = self.pieces.as_ref().map_or(self.chunk, PieceSize::bytes);
        self.chunk.min(permitted) as u64
    }

    /// Reads `length` bytes at `start`; waits for the device. `None` if that fails.
    pub(super) fn read_waiting(&self, start: u64, length: usize) -> Option<Bytes> {
        self.read(start, length).ok()
    }

    /// Reads all of the content, if it is of the version `expected` before and after.
    pub(super) fn read_version(&self, expected: Version, read: ReadBytes) -> Option<Bytes> {
        let content = read(self, 0, self.length as usize)?;
        let now = self.file.metadata().ok()?;
        (Version::of(&now) == expected).then_some(content)
    }

    /// Reads `length` bytes at `start`. A body has at most one read in progress, so the position of
    /// the file has one user.
    fn read(&self, start: u64, length: usize) -> Result<Bytes, FileBodyError> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(start))?;
        let mut content = Vec::with_capacity(length);
        file.take(length as u64).read_to_end(&mut content)?;
        self.check(&content, length)?;
        Ok(Bytes::from(content))
    }

    /// Reads `length` bytes at `start` if the kernel has them in memory, without waiting for a device.
    #[cfg(target_os = "linux")]
    pub(super) fn read_cached(&self, start: u64, length: usize) -> Option<Bytes> {
        use rustix::io::{ReadWriteFlags, preadv2};
        let mut content = vec![0; length];
        let mut buffers = [io::IoSliceMut::new(&mut content)];
        let read = preadv2(&self.file, &mut buffers, start, ReadWriteFlags::NOWAIT);
        let complete = read.is_ok_and(|read| read == length);
        (complete && self.check(&content, length).is_ok()).then(|| Bytes::from(content))
    }

    #[cfg(not(target_os = "linux"))]
    /// Other systems have no such call.
    pub(super) fn read_cached(&self, _: u64, _: usize) -> Option<Bytes> {
        None
    }

    /// Fails if the file is not what was announced.
    fn check(&self, content: &[u8], length: usize) -> Result<(), FileBodyError> {
        if content.len() < length {
            return Err(FileBodyError::Truncated);
        }
        let now = self.file.metadata()?;
        if now.len() < self.length {
            return Err(FileBodyError::Truncated);
        }
        if now.len() == self.length && now.modified().ok() != self.modified {
            return Err(FileBodyError::Changed);
        }
        Ok(())
    }
}

#[derive(Debug)]
enum Piece {
    Text(Bytes),
    Range(Range<u64>),
}

type Reading = JoinHandle<Result<Bytes, FileBodyError>>;

/// The body of a response of [`FileService`](super::FileService).
#[derive(Debug, Default)]
pub struct FileBody {
    source: Option<Arc<Source>>,
    /// All of the file, if it is in memory.
    content: Option<Bytes>,
    pieces: VecDeque<Piece>,
    remaining: u64,
    reading: Option<Reading>,
    /// A chunk was handed out already.
    begun: bool,
}

impl FileBody {
    /// No content.
    pub(super) fn empty() -> Self {
        Self::default()
    }

    /// Content that is not from a file.
    pub(super) fn text(text: impl Into<Bytes>) -> Self {
        let mut body = Self::default();
        body.push_text(text.into());
        body
    }

    /// A body of `source`, without pieces so far.
    pub(super) fn of(source: Source) -> Self {
        Self {
            source: Some(Arc::new(source)),
            ..Self::default()
        }
    }

    /// A body of a file whose `content` is in memory, without pieces so far.
    pub(super) fn of_content(content: Bytes) -> Self {
        Self {
            content: Some(content),
            ..Self::default()
        }
    }

    /// Appends `text`.
    pub(super) fn push_text(&mut self, text: Bytes) {
        if !text.is_empty() {
            self.remaining += text.len() as u64;
            self.pieces.push_back(Piece::Text(text));
        }
    }

    /// Appends a range of the file.
    pub(super) fn push_range(&mut self, range: Range<u64>) {
        if let Some(content) = &self.content {
            let part = content.slice(range.start as usize..range.end as usize);
            self.push_text(part);
        } else if !range.is_empty() {
            self.remaining += range.end - range.start;
            self.pieces.push_back(Piece::Range(range));
        }
    }

    /// Remaining bytes.
    pub(super) fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Reads the content now if it is a single small piece, and closes the file. A failure recurs when the content is
    /// sent, and ends the response there.
    pub(super) fn read_if_small(&mut self, read: ReadBytes) {
        if self.pieces.len() > 1 || self.remaining > READ_AT_ONCE {
            return;
        }
        if let (Some(source), Some(Piece::Range(range))) = (&self.source, self.pieces.front()) {
            let length = (range.end - range.start) as usize;
            let Some(content) = read(source, range.start, length) else {
                return;
            };
            self.pieces = VecDeque::from([Piece::Text(content)]);
        }
        self.source = None;
    }

    /// Starts to read the next chunk, if the next piece is of the file.
    fn read_ahead(&mut self) {
        let (Some(source), Some(Piece::Range(range))) = (&self.source, self.pieces.front_mut())
        else {
            return;
        };
        let start = range.start;
        let length = (range.end - start).min(source.next_chunk());
        range.start += length;
        if range.is_empty() {
            self.pieces.pop_front();
        }
        let source = Arc::clone(source);
        self.reading = Some(spawn_blocking(move || source.read(start, length as usize)));
    }

    fn fail(&mut self, error: FileBodyError) -> Poll<Option<Result<Frame<Bytes>, FileBodyError>>> {
        self.pieces.clear();
        self.reading = None;
        self.source = None;
        self.remaining = 0;
        Poll::Ready(Some(Err(error)))
    }
}

impl From<FileBody> for AnyBody {
    /// Content that is in memory already needs no allocation.
    fn from(mut body: FileBody) -> Self {
        if body.pieces.is_empty() && body.reading.is_none() {
            return Self::empty();
        }
        if let [Piece::Text(text)] = body.pieces.make_contiguous() {
            return Self::full(std::mem::take(text));
        }
        Self::new(body)
    }
}

impl Body for FileBody {
    type Data = Bytes;
    type Error = FileBodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, FileBodyError>>> {
        let this = &mut *self;
        if this.reading.is_none() {
            if matches!(this.pieces.front(), Some(Piece::Range(_))) {
                this.read_ahead();
            } else if let Some(Piece::Text(text)) = this.pieces.pop_front() {
                this.remaining -= text.len() as u64;
                return Poll::Ready(Some(Ok(Frame::data(text))));
            }
        }
        let Some(reading) = &mut this.reading else {
            return Poll::Ready(None);
        };
        let chunk = match ready!(Pin::new(reading).poll(cx)) {
            Ok(Ok(chunk)) => chunk,
            Ok(Err(error)) => return this.fail(error),
            // The runtime is shutting down.
            Err(error) => return this.fail(FileBodyError::Io(io::Error::other(error))),
        };
        this.reading = None;
        this.remaining -= chunk.len() as u64;
        if std::mem::replace(&mut this.begun, true) {
            this.read_ahead();
        }
        Poll::Ready(Some(Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.remaining == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.remaining)
    }
}
