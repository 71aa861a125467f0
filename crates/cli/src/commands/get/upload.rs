//! The content of a request: text, or a file that is read while it is sent.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::{Frame, SizeHint};
use swiftwater_http::web::body::{Body, BoxError};
use tokio::fs::File;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::watch;

use super::args::Data;
use crate::exit::{Exit, Failure, plain_io_error};

/// Bytes read at once.
const BLOCK: usize = 64 * 1024;

type UploadSource = Pin<Box<dyn AsyncRead + Send>>;

/// Content being sent, once.
pub(super) struct Upload {
    text: Option<Bytes>,
    source: Mutex<Option<UploadSource>>,
    name: PathBuf,
    length: Option<u64>,
    /// Result of reading it.
    failure: Arc<watch::Sender<Option<Failure>>>,
}

impl Upload {
    pub(super) async fn open(data: &Data) -> Result<Self, Failure> {
        let mut upload = Self {
            text: None,
            source: Mutex::new(None),
            name: "standard input".into(),
            length: None,
            failure: Arc::new(watch::Sender::new(None)),
        };
        match data {
            Data::Text(text) => {
                let text = Bytes::copy_from_slice(text.as_bytes());
                upload.length = Some(text.len() as u64);
                upload.text = Some(text);
            }
            Data::Stdin => upload.source = Mutex::new(Some(Box::pin(tokio::io::stdin()))),
            Data::File(path) => {
                let unreadable = |error| unreadable(path, &error);
                let file = File::open(path).await.map_err(unreadable)?;
                let found = file.metadata().await.map_err(unreadable)?;
                if found.is_dir() {
                    return Err(unreadable(io::ErrorKind::IsADirectory.into()));
                }
                // Devices and pipes have no known length.
                upload.length = found.is_file().then_some(found.len());
                upload.name.clone_from(path);
                upload.source = Mutex::new(Some(Box::pin(file)));
            }
        }
        Ok(upload)
    }

    /// Length in bytes, if known.
    pub(super) fn length(&self) -> Option<u64> {
        self.length
    }

    /// The body; only the first one has the content.
    pub(super) fn body(&self) -> Body {
        if let Some(text) = &self.text {
            return Body::full(text.clone());
        }
        let mut source = self.source.lock().unwrap_or_else(PoisonError::into_inner);
        match source.take() {
            Some(source) => Body::new(Reading {
                source,
                name: self.name.clone(),
                left: self.length,
                failure: Arc::clone(&self.failure),
            }),
            None => Body::empty(),
        }
    }

    /// Waits until reading fails, and returns the reason. Pending forever otherwise.
    pub(super) async fn failed(&self) -> Failure {
        let mut failure_known = self.failure.subscribe();
        if let Ok(failure) = failure_known.wait_for(Option::is_some).await
            && let Some(failure) = &*failure
        {
            return failure.clone();
        }
        // The sender is owned by `self`, so the channel is open.
        std::future::pending().await
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let why = plain_io_error(error);
    Failure::new(
        Exit::LocalFile,
        format_args!("cannot read {}: {why}", path.display()),
    )
}

/// A source as a body.
struct Reading {
    source: UploadSource,
    name: PathBuf,
    /// Remaining bytes of the announced length.
    left: Option<u64>,
    failure: Arc<watch::Sender<Option<Failure>>>,
}

impl Reading {
    fn fail(&self, error: &io::Error) -> BoxError {
        let failure = unreadable(&self.name, error);
        self.failure.send_replace(Some(failure.clone()));
        failure.into()
    }
}

impl http_body::Body for Reading {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.left == Some(0) {
            return Poll::Ready(None);
        }
        let mut block = BytesMut::zeroed(BLOCK);
        let mut buffer = ReadBuf::new(&mut block);
        if let Err(error) = ready!(self.source.as_mut().poll_read(cx, &mut buffer)) {
            return Poll::Ready(Some(Err(self.fail(&error))));
        }
        let read = buffer.filled().len();
        if read == 0 {
            return Poll::Ready(self.left.map(|_| {
                let error = io::Error::other("it was truncated while it was sent");
                Err(self.fail(&error))
            }));
        }
        block.truncate(read);
        if let Some(left) = &mut self.left {
            // Bytes appended meanwhile were not announced.
            block.truncate(usize::try_from(*left).unwrap_or(read));
            *left -= block.len() as u64;
        }
        Poll::Ready(Some(Ok(Frame::data(block.freeze()))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.left
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
