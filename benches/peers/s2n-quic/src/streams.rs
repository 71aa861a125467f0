//! Moves bytes over streams.

use bytes::Bytes;
use job::{Failure, Outgoing};
use s2n_quic::stream::BidirectionalStream;

/// Most received chunks read from a stream at once.
const CHUNKS: usize = 64;

/// Sends everything, without a copy.
pub(crate) async fn supply(
    stream: &mut BidirectionalStream,
    mut outgoing: Outgoing,
) -> Result<(), Failure> {
    while outgoing.left() > 0 {
        let piece = outgoing.next_bytes();
        let len = piece.len();
        stream.send(piece).await?;
        outgoing.advance(len);
    }
    if outgoing.finishes() {
        stream.finish()?;
    }
    Ok(())
}

/// Passes the next received data to `take`, without a copy; false at the stream's end.
pub(crate) async fn take(
    stream: &mut BidirectionalStream,
    mut take: impl FnMut(&[u8]),
) -> Result<bool, Failure> {
    let mut chunks: [Bytes; CHUNKS] = std::array::from_fn(|_| Bytes::new());
    let (count, open) = stream.receive_vectored(&mut chunks).await?;
    for chunk in &chunks[..count] {
        take(chunk);
    }
    Ok(open)
}
