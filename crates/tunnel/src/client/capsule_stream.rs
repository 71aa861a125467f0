//! HTTP datagrams in capsules on a stream over TCP (RFC 9297, section 3.5), at the client.
//!
//! What can't be sent soon is dropped, as on a full socket: old datagrams are of no use, and a reliable queue in front
//! of a slow connection would only delay those that follow.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use swiftwater_http::h3::capsule::Capsule;
use swiftwater_http::web::upgrade::ChunkReader;
use tokio::io::{AsyncWrite, AsyncWriteExt, ReadHalf};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{Instant, timeout};

use super::error::TunnelError;
use super::tcp_link::UpgradedStream;
use crate::tecc::MAX_QUEUE_DELAY;

/// Bytes of datagrams that wait for the connection, at most.
const WAITING: usize = 128 << 10;

/// Bytes of a datagram's type and length, at most.
const OVERHEAD: usize = 16;

/// How long the connection may take none of a datagram before it is given up.
const STALLED: Duration = Duration::from_secs(10);

/// The capsules of the proxy, until the stream ends or fails in either direction.
pub(super) struct CapsuleReceiver {
    chunks: ChunkReader<ReadHalf<UpgradedStream>>,
    /// Why nothing more can be sent; `None` once it is known that this is no failure.
    failed: Option<oneshot::Receiver<io::Error>>,
}

/// A capsule that waits, and its part of the queue.
#[derive(Debug)]
struct Waiting {
    capsule: Vec<u8>,
    /// Until when it is of use; `None` if it is not a datagram, and never dropped.
    until: Option<Instant>,
    _room: OwnedSemaphorePermit,
}

/// Sends datagrams. Clones share the queue.
#[derive(Clone, Debug)]
pub(super) struct CapsuleSender {
    queue: UnboundedSender<Waiting>,
    room: Arc<Semaphore>,
}

/// Datagrams that wait for the stream.
#[derive(Debug)]
pub(super) struct CapsuleQueue(UnboundedReceiver<Waiting>);

/// A queue for a stream that may not exist yet.
pub(super) fn queue() -> (CapsuleSender, CapsuleQueue) {
    let (queue, waiting) = mpsc::unbounded_channel();
    let room = Arc::new(Semaphore::new(WAITING));
    (CapsuleSender { queue, room }, CapsuleQueue(waiting))
}

impl CapsuleReceiver {
    /// The next bytes; `None` at the end. Dropping the future loses nothing.
    pub(super) async fn chunk(&mut self) -> io::Result<Option<Bytes>> {
        let Some(failed) = &mut self.failed else {
            return self.chunks.chunk().await;
        };
        tokio::select! {
            biased;
            chunk = self.chunks.chunk() => chunk,
            failure = failed => {
                self.failed = None;
                match failure {
                    Ok(error) => Err(error),
                    // All senders are gone.
                    Err(_) => self.chunks.chunk().await,
                }
            }
        }
    }
}

impl CapsuleSender {
    /// Queues a datagram, or fails at once if there is no room.
    pub(super) fn try_send(&self, datagram: Vec<u8>) -> Result<(), TunnelError> {
        let until = Instant::now() + MAX_QUEUE_DELAY;
        self.queue(&Capsule::datagram(Bytes::from(datagram)), Some(until))
    }

    /// Queues a capsule that is sent however long it waits, or fails at once if there is no room.
    pub(super) fn try_send_reliably(&self, capsule: &Capsule) -> Result<(), TunnelError> {
        self.queue(capsule, None)
    }

    fn queue(&self, capsule: &Capsule, until: Option<Instant>) -> Result<(), TunnelError> {
        let len = capsule.value.len();
        let size = u32::try_from(len + OVERHEAD).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room).try_acquire_many_owned(size);
        let room = room.map_err(|_| TunnelError::Full)?;
        let mut encoded = Vec::with_capacity(len + OVERHEAD);
        capsule.encode(&mut encoded);
        let waiting = Waiting {
            capsule: encoded,
            until,
            _room: room,
        };
        self.queue.send(waiting).map_err(|_| TunnelError::Ended)
    }
}

impl CapsuleQueue {
    /// Begins to send on `stream`, until all senders are dropped or it fails; returns the capsules of the proxy.
    pub(super) fn begin(self, stream: UpgradedStream) -> CapsuleReceiver {
        let (reader, writer) = tokio::io::split(stream);
        let (failure, failed) = oneshot::channel();
        tokio::spawn(async move {
            if let Err(error) = self.send_all(writer).await {
                tracing::debug!(%error, "no more datagrams to the proxy");
                // Nobody may read any more.
                let _ = failure.send(error);
            }
        });
        CapsuleReceiver {
            chunks: ChunkReader::new(reader),
            failed: Some(failed),
        }
    }

    async fn send_all(mut self, mut writer: impl AsyncWrite + Unpin) -> io::Result<()> {
        while let Some(waiting) = self.0.recv().await {
            if waiting.until.is_some_and(|until| Instant::now() > until) {
                continue;
            }
            timeout(STALLED, writer.write_all(&waiting.capsule)).await??;
            if self.0.is_empty() {
                timeout(STALLED, writer.flush()).await??;
            }
        }
        timeout(STALLED, writer.shutdown()).await?
    }
}
