//! The server's side of `hq-interop`: answers every request of a connection with a file.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use swiftwater::{Connection, ConnectionError, RecvStream, SendStream};
use tokio::fs::File;
use tokio::io::AsyncReadExt;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{MAX_REQUEST, Refusal, parse_request};
use crate::exit::plain_io_error;
use crate::site::{Site, SiteError, site_error};

/// Bytes read from a file at once.
const BLOCK: usize = 256 * 1024;

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
            accepted = connection.accept_bi() => {
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
    let path = resolve(site, &served.path).await?;
    let mut file = File::open(&path)
        .await
        .map_err(|error| site_error(&error))?;
    let mut block = BytesMut::new();
    loop {
        block.reserve(BLOCK);
        let read = file
            .read_buf(&mut block)
            .await
            .map_err(|error| unreadable(&path, &error))?;
        if read == 0 {
            break;
        }
        served.bytes += read as u64;
        send.write_chunk(block.split().freeze())
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

/// [`Site::resolve`] off the runtime's threads: it asks the file system.
async fn resolve(site: &Site, request: &str) -> Result<PathBuf, ServeError> {
    let (site, request) = (site.clone(), request.to_owned());
    let resolved = tokio::task::spawn_blocking(move || site.resolve(&request)).await;
    Ok(resolved.map_err(|error| ServeError::refused(Refusal::Internal, &error))??)
}

fn unreadable(path: &Path, error: &io::Error) -> ServeError {
    let reason = format!("{}: {}", path.display(), plain_io_error(error));
    ServeError::refused(Refusal::Internal, &reason)
}

fn lost(error: &impl ToString) -> ServeError {
    ServeError::Lost(error.to_string())
}
