//! Moves bytes over streams.

use job::{Failure, Outgoing};
use swiftwater::{RecvStream, SendStream};

/// Most read at first, bytes.
const SHORT: usize = 64 * 1024;

/// Longest message that is written and finished at once, bytes.
const MESSAGE: u64 = 16 * 1024;

/// Sends everything, without a copy unless it is short.
pub(crate) async fn supply(send: &mut SendStream, mut outgoing: Outgoing) -> Result<(), Failure> {
    let piece = outgoing.next();
    if outgoing.finishes() && outgoing.left() <= MESSAGE && piece.len() as u64 == outgoing.left() {
        return Ok(send.write_last(piece).await?);
    }
    while outgoing.left() > 0 {
        let piece = outgoing.next_bytes();
        outgoing.advance(piece.len());
        send.write_chunk(piece).await?;
    }
    if outgoing.finishes() {
        send.finish()?;
    }
    Ok(())
}

/// Reads a stream piece by piece: the first pieces are copied out, later ones are accessed in place.
pub(crate) struct Reader {
    stream: RecvStream,
    read: usize,
}

impl Reader {
    pub(crate) fn new(stream: RecvStream) -> Self {
        Self { stream, read: 0 }
    }

    /// Waits for data and passes them to `take`; false at the stream's end.
    pub(crate) async fn next(&mut self, take: impl FnOnce(&[u8])) -> Result<bool, Failure> {
        if self.read < SHORT {
            let Some(chunk) = self.stream.read_chunk(SHORT).await? else {
                return Ok(false);
            };
            self.read += chunk.len();
            take(&chunk);
        } else {
            let read = self.stream.read_with(|data| {
                take(data);
                data.len()
            });
            if read.await?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
