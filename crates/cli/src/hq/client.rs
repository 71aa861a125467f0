//! The client's side of `hq-interop`: one request, whose response is written to a file.

use std::time::{Duration, Instant};

use swiftwater::{Connection, ReadError, SendStream, WriteError};
use tokio::task;

use super::{Refusal, request};
use crate::exit::{Exit, Failure};
use crate::part_file::{PartFile, PartFileError};
use crate::transport::connection_failure;

/// Bytes read from the stream at once.
const BLOCK: usize = 256 * 1024;

/// A completed download.
#[derive(Clone, Copy, Debug)]
pub struct Fetched {
    /// Bytes of the file.
    pub bytes: u64,
    /// When its first byte was received; for an empty file, its end.
    pub first_byte: Instant,
    /// When the end was received.
    pub last_byte: Instant,
    /// From the request to the renaming of the file.
    pub elapsed: Duration,
}

/// Requests `path` (percent-encoded) and writes the answer to `part`, which gets its name only when
/// the file is complete. `progress` is called with the number of bytes of each step.
pub async fn fetch(
    connection: &Connection,
    path: &str,
    mut part: PartFile,
    mut progress: impl FnMut(u64),
) -> Result<Fetched, Failure> {
    let start = Instant::now();
    // Other tasks create their files meanwhile, so that requests are sent together.
    task::yield_now().await;
    let (mut send, mut recv) = connection
        .open_bi()
        .await
        .map_err(|error| connection_failure(&error, "the server"))?;
    ask(&mut send, path).await?;
    let mut buffer = vec![0; BLOCK];
    let mut bytes = 0;
    let mut first_byte = None;
    while let Some(read) = recv
        .read(&mut buffer)
        .await
        .map_err(|error| read_failure(&error))?
    {
        first_byte.get_or_insert_with(Instant::now);
        // Blocks are small and go to the page cache, so a hand-over to another thread would cost
        // more than a short stall of the other downloads of this thread.
        part.write_all(&buffer[..read])?;
        bytes += read as u64;
        progress(read as u64);
    }
    let last_byte = Instant::now();
    let first_byte = first_byte.unwrap_or(last_byte);
    complete(part).await?;
    Ok(Fetched {
        bytes,
        first_byte,
        last_byte,
        elapsed: start.elapsed(),
    })
}

/// Sends the request. The server may stop reading before its end.
async fn ask(send: &mut SendStream, path: &str) -> Result<(), Failure> {
    let sent = match send.write_all(&request(path)).await {
        Ok(()) => send.finish(),
        Err(error) => Err(error),
    };
    match sent {
        Ok(()) | Err(WriteError::Stopped(_)) => Ok(()),
        Err(WriteError::ConnectionLost(error)) => Err(connection_failure(&error, "the server")),
        Err(error) => Err(Failure::new(
            Exit::Connection,
            format_args!("cannot send the request: {error}"),
        )),
    }
}

/// Flushing to disk may take long.
async fn complete(part: PartFile) -> Result<(), Failure> {
    let done: Result<Result<_, PartFileError>, _> =
        task::spawn_blocking(move || part.complete()).await;
    done.map_err(|error| Failure::new(Exit::Failure, error))??;
    Ok(())
}

fn read_failure(error: &ReadError) -> Failure {
    match error {
        ReadError::Reset(code) => match Refusal::from_code(*code) {
            Some(refusal) => Failure::new(Exit::Refused, refusal.describe()),
            None => Failure::new(
                Exit::Refused,
                format_args!("the server reset the request with code {code}"),
            ),
        },
        ReadError::ConnectionLost(error) => connection_failure(error, "the server"),
        other => Failure::new(Exit::Connection, other),
    }
}
