//! The client of a showing: requests the stream and checks every byte. The model of the viewer is in
//! `viewer.rs`.

use swiftwater::{Connection, RecvStream};
use swiftwater_media::Frame;

use super::schedule::{HEADER, Schedule, read_header};
use super::server::REQUEST;
use crate::exit::{Exit, Failure};

/// Bytes read at a time, at most.
const PIECE: usize = 64 << 10;

/// Reads the whole stream and calls `on_frame` for each complete video frame, with whether its payload
/// is correct. Fails if the connection does, or if a frame header is invalid.
pub(super) async fn watch(
    connection: &Connection,
    schedule: &Schedule,
    mut on_frame: impl FnMut(&Frame, bool),
) -> Result<(), Failure> {
    let lost = |error: &dyn std::fmt::Display| {
        Failure::new(Exit::Connection, format_args!("the client's end: {error}"))
    };
    let (mut send, mut recv) = connection.open_bi().await.map_err(|error| lost(&error))?;
    send.write_all(REQUEST)
        .await
        .map_err(|error| lost(&error))?;
    send.finish().map_err(|error| lost(&error))?;
    for expected in schedule.frames() {
        let mut bytes = [0; HEADER];
        let read = recv.read_exact(&mut bytes).await;
        read.map_err(|error| lost(&error))?;
        // After a wrong header the frame boundaries are unknown.
        let frame = read_header(&bytes).filter(|frame| frame == expected);
        let frame = frame.ok_or_else(|| {
            let index = expected.index;
            Failure::new(
                Exit::Differs,
                format_args!("frame {index} is not the one that was sent"),
            )
        })?;
        let mut payload = schedule.payload(&frame);
        let intact = read_payload(&mut recv, frame.size as usize, |piece| {
            payload.matches(piece)
        });
        let intact = intact.await.map_err(|error| lost(&error))?;
        on_frame(&frame, intact);
    }
    let rest = recv.read_chunk(1).await.map_err(|error| lost(&error))?;
    match rest {
        None => Ok(()),
        Some(_) => Err(Failure::new(Exit::Differs, "more arrived than was sent")),
    }
}

/// Reads `size` bytes; true if `check` accepted all of them.
async fn read_payload(
    recv: &mut RecvStream,
    size: usize,
    mut check: impl FnMut(&[u8]) -> bool,
) -> Result<bool, String> {
    let mut left = size;
    let mut intact = true;
    while left > 0 {
        let chunk = recv.read_chunk(left.min(PIECE)).await;
        let chunk = chunk.map_err(|error| error.to_string())?;
        let chunk = chunk.ok_or("the stream ended in the middle of a frame")?;
        intact &= check(&chunk);
        left -= chunk.len();
    }
    Ok(intact)
}
