//! The bytes of an accepted upgrade, between the client and the upstream: a task moves the client's, the body of the
//! response the upstream's. Each waits where the other side does not read, independently of the other.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::io::{AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::web::body::{Body, BoxError};
use crate::web::upgrade::ChunkReader;

/// How long an upstream may be silent after the client's end.
const CLOSING_TIME: Duration = Duration::from_secs(10);

/// Why a tunnel ended early.
#[derive(Debug, Error)]
pub(super) enum TunnelError {
    #[error("the upstream broke off a tunnel: {0}")]
    Upstream(#[source] io::Error),
    #[error("the client is gone")]
    Client,
    #[error("nothing was sent either way for too long")]
    Idle,
}

/// When a byte was last moved, either way.
#[derive(Clone, Debug)]
struct LastByte(Arc<Mutex<Instant>>);

impl LastByte {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }

    fn get(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

/// The bytes from the upstream. Dropped, the tunnel ends.
#[derive(Debug)]
pub(super) struct Tunnel {
    chunks: ChunkReader<ReadHalf<TokioIo<Upgraded>>>,
    last: LastByte,
    /// Longest time without a byte either way.
    time_limit: Duration,
    timer: Pin<Box<Sleep>>,
    /// `None` once the client has ended.
    uploading: Option<Uploading>,
    is_over: bool,
}

/// The task that moves the client's bytes, until it is dropped.
#[derive(Debug)]
struct Uploading(JoinHandle<Result<(), BoxError>>);

impl Drop for Uploading {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Tunnel {
    /// Moves bytes between `upstream` and a client that sends `incoming`.
    pub(super) fn new(upstream: Upgraded, incoming: Body, time_limit: Duration) -> Self {
        let (reader, writer) = tokio::io::split(TokioIo::new(upstream));
        let last = LastByte::new();
        let uploading = tokio::spawn(upload(incoming, writer, last.clone()));
        Self {
            chunks: ChunkReader::new(reader),
            timer: Box::pin(sleep_until(last.get() + time_limit)),
            last,
            time_limit,
            uploading: Some(Uploading(uploading)),
            is_over: false,
        }
    }

    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, TunnelError>>> {
        match self.chunks.poll_chunk(cx) {
            Poll::Ready(Ok(Some(bytes))) => {
                self.last.set();
                return Poll::Ready(Some(Ok(bytes)));
            }
            Poll::Ready(Ok(None)) => return Poll::Ready(None),
            Poll::Ready(Err(error)) => {
                return Poll::Ready(Some(Err(TunnelError::Upstream(error))));
            }
            Poll::Pending => {}
        }
        if let Some(uploading) = &mut self.uploading
            && let Poll::Ready(uploaded) = Pin::new(&mut uploading.0).poll(cx)
        {
            self.uploading = None;
            if !matches!(uploaded, Ok(Ok(()))) {
                return Poll::Ready(Some(Err(TunnelError::Client)));
            }
            self.time_limit = self.time_limit.min(CLOSING_TIME);
            self.timer.as_mut().reset(Instant::now() + self.time_limit);
        }
        while self.timer.as_mut().poll(cx).is_ready() {
            let deadline = self.last.get() + self.time_limit;
            if deadline <= Instant::now() {
                return Poll::Ready(Some(Err(TunnelError::Idle)));
            }
            self.timer.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}

/// Moves the client's bytes to the upstream, and their end. Fails if the client does; an upstream that accepts no more
/// may still have something to say.
async fn upload(
    mut incoming: Body,
    mut writer: WriteHalf<TokioIo<Upgraded>>,
    last: LastByte,
) -> Result<(), BoxError> {
    loop {
        let next = std::future::poll_fn(|cx| Pin::new(&mut incoming).poll_frame(cx)).await;
        let Some(frame) = next else { break };
        let Ok(bytes) = frame?.into_data() else {
            continue;
        };
        last.set();
        let written = async {
            writer.write_all(&bytes).await?;
            writer.flush().await
        };
        if written.await.is_err() {
            return Ok(());
        }
        last.set();
    }
    // An upstream that is gone has its end already.
    let _ = writer.shutdown().await;
    Ok(())
}

impl HttpBody for Tunnel {
    type Data = Bytes;
    type Error = TunnelError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, TunnelError>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let polled = self.poll_bytes(cx);
        if let Poll::Ready(None | Some(Err(_))) = &polled {
            self.is_over = true;
        }
        polled.map(|next| next.map(|bytes| bytes.map(Frame::data)))
    }
}
