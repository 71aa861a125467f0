//! The server's side of `hq-interop`: answers every request of a connection with a file.
//!
//! **Memory.** Beyond the transport's send buffer (`TransportConfig::send_window`) a request holds at
//! most one block of [`BLOCK`](super::blocks::BLOCK) bytes, and the next is read when the transport
//! has taken the last. A connection is served [`MAX_REQUESTS`] requests at a time, so it holds at most
//! 3.3 MB; its further requests wait within the transport's receive windows. A server's total is that
//! and the windows, times its connections.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use swiftwater::{Connection, ConnectionError, RecvStream, SendStream};
use tokio::sync::watch;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;

use super::blocks::Blocks;
use super::{MAX_REQUEST, Refusal, parse_request};
use crate::exit::plain_io_error;
use crate::site::{Site, SiteError, site_error};

/// Requests of one connection that are served at the same time; as many as clients may usually have
/// streams open.
pub const MAX_REQUESTS: usize = 100;

/// A client that sends no complete request for this long is given up.
const REQUEST_TIME: Duration = Duration::from_secs(30);

/// What became of a request.
#[derive(Debug)]
pub struct Served {
    /// The requested path as the client wrote it; empty if the request wasn't understood.
    pub path: String,
    /// File bytes that were handed to the transport.
    pub bytes: u64,
    /// From the request to the client's last acknowledgement.
    pub elapsed: Duration,
    /// How it ended.
    pub outcome: Result<(), ServeError>,
}

/// Why a request wasn't answered to its end.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Refused, with the reason for the log.
    #[error("refused ({}): {reason}", .refusal.code())]
    Refused {
        /// What the client was told.
        refusal: Refusal,
        /// What only the log says.
        reason: String,
    },
    /// The client stopped reading or the connection is gone.
    #[error("not finished: {0}")]
    Lost(String),
}

impl ServeError {
    fn refused(refusal: Refusal, reason: &impl ToString) -> Self {
        Self::Refused {
            refusal,
            reason: reason.to_string(),
        }
    }
}

impl From<SiteError> for ServeError {
    fn from(error: SiteError) -> Self {
        Self::refused(error.into(), &error)
    }
}

/// Answers the requests of `connection` until it is closed, telling `log` about each.
///
/// When `draining` becomes true, new requests are refused; once those in progress are answered, the
/// connection is closed.
pub async fn serve_connection<F>(
    connection: Connection,
    site: Arc<Site>,
    mut draining: watch::Receiver<bool>,
    log: F,
) where
    F: Fn(Served) + Clone + Send + 'static,
{
    let mut requests = JoinSet::new();
    loop {
        tokio::select! {
            accepted = connection.accept_bi(), if requests.len() < MAX_REQUESTS => {
                let Ok((mut send, recv)) = accepted else { break };
                if *draining.borrow() {
                    // Failing means that the client has lost interest already.
                    let _ = send.reset(Refusal::Unavailable.code());
                    continue;
                }
                let (site, log) = (Arc::clone(&site), log.clone());
                requests.spawn(async move {
                    let served = answer(send, recv, &site).await;
                    log(served);
                });
            }
            Some(_) = requests.join_next() => {}
            () = drain_begins(&mut draining), if !*draining.borrow() => {}
        }
        if *draining.borrow() && requests.is_empty() {
            connection.close(0, b"server is shutting down");
            break;
        }
    }
    while requests.join_next().await.is_some() {}
    let client = connection.remote_address();
    let key_updates = connection.stats().key_updates;
    tracing::info!(%client, key_updates, "all requests of a client ended");
}

/// Waits until `draining` is true; for ever if nobody can set it any more.
async fn drain_begins(draining: &mut watch::Receiver<bool>) {
    if draining.wait_for(|draining| *draining).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Answers one request and waits until the client has everything.
async fn answer(mut send: SendStream, mut recv: RecvStream, site: &Site) -> Served {
    let mut served = Served {
        path: String::new(),
        bytes: 0,
        elapsed: Duration::ZERO,
        outcome: Ok(()),
    };
    let start = Instant::now();
    served.outcome = match try_answer(&mut send, &mut recv, site, &mut served).await {
        Err(ServeError::Refused { refusal, reason }) => {
            let _ = send.reset(refusal.code());
            Err(ServeError::Refused { refusal, reason })
        }
        other => other,
    };
    served.elapsed = start.elapsed();
    // Its end may come later than the line. Clients need not cope with being told to stop.
    let _ = timeout(Duration::from_secs(1), recv.read_to_end(MAX_REQUEST)).await;
    served
}

async fn try_answer(
    send: &mut SendStream,
    recv: &mut RecvStream,
    site: &Site,
    served: &mut Served,
) -> Result<(), ServeError> {
    served.path = timeout(REQUEST_TIME, read_request(recv))
        .await
        .map_err(|_| ServeError::refused(Refusal::BadRequest, &"no request within 30 s"))??;
    let mut blocks = open(site, &served.path).await?;
    while !blocks.ended() {
        let block;
        (blocks, block) = off_thread(move || {
            let block = blocks.read_block();
            (blocks, block)
        })
        .await?;
        let block = block.map_err(|error| unreadable(blocks.path(), &error))?;
        served.bytes += block.len() as u64;
        send.write_chunk(block)
            .await
            .map_err(|error| lost(&error))?;
    }
    send.finish().map_err(|error| lost(&error))?;
    match send.stopped().await {
        // Clients that have what they want hang up, often before the last acknowledgement.
        Ok(None) | Err(ConnectionError::PeerApplication { code: 0, .. }) => Ok(()),
        Ok(Some(code)) => Err(lost(&format_args!(
            "the client stopped reading with code {code}"
        ))),
        Err(error) => Err(lost(&error)),
    }
}

async fn read_request(recv: &mut RecvStream) -> Result<String, ServeError> {
    let mut line = Vec::new();
    loop {
        let chunk = recv
            .read_chunk(MAX_REQUEST)
            .await
            .map_err(|error| lost(&error))?;
        let finished = chunk.is_none();
        line.extend_from_slice(&chunk.unwrap_or_default());
        match parse_request(&line, finished) {
            Ok(Some(path)) => return Ok(path.to_owned()),
            Ok(None) => {}
            Err(error) => return Err(ServeError::refused(error.into(), &error)),
        }
    }
}

/// Finds and opens the file that is asked for.
async fn open(site: &Site, request: &str) -> Result<Blocks, ServeError> {
    let (site, request) = (site.clone(), request.to_owned());
    let opened = off_thread(move || {
        let path = site.resolve(&request)?;
        Blocks::open(path).map_err(|error| site_error(&error))
    });
    Ok(opened.await??)
}

/// Asks the file system without holding up the runtime's threads.
async fn off_thread<T: Send + 'static>(
    ask: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ServeError> {
    let answer = spawn_blocking(ask).await;
    answer.map_err(|error| ServeError::refused(Refusal::Internal, &error))
}

fn unreadable(path: &Path, error: &io::Error) -> ServeError {
    let reason = format!("{}: {}", path.display(), plain_io_error(error));
    ServeError::refused(Refusal::Internal, &reason)
}

fn lost(error: &impl ToString) -> ServeError {
    ServeError::Lost(error.to_string())
}
