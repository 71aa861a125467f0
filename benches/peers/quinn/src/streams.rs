//! Moves bytes over streams. Also part of noq's program, whose interface is the same.

use bytes::Bytes;
use job::{Failure, Outgoing};

use crate::quic::{RecvStream, SendStream, read_chunks};

/// Most received chunks read from a stream at once.
const CHUNKS: usize = 64;

/// Sends everything, without a copy.
pub(crate) async fn supply(send: &mut SendStream, mut outgoing: Outgoing) -> Result<(), Failure> {
    while outgoing.left() > 0 {
        let piece = outgoing.next_bytes();
        let len = piece.len();
        send.write_chunk(piece).await?;
        outgoing.advance(len);
    }
    if outgoing.finishes() {
        send.finish()?;
    }
    Ok(())
}

/// Passes the next received data to `take`, without a copy; false at the stream's end.
pub(crate) async fn take(
    receive: &mut RecvStream,
    mut take: impl FnMut(&[u8]),
) -> Result<bool, Failure> {
    let mut chunks: [Bytes; CHUNKS] = std::array::from_fn(|_| Bytes::new());
    let Some(count) = read_chunks(receive, &mut chunks).await? else {
        return Ok(false);
    };
    for chunk in &chunks[..count] {
        take(chunk);
    }
    Ok(true)
}
