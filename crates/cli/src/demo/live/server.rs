//! The server of a showing: produces the frames in real time and writes them to the stream that the
//! viewer opened.

use std::time::{Duration, Instant};

use swiftwater::Connection;
use tokio::time::{sleep_until, timeout};

use super::schedule::{Schedule, header};
use crate::exit::{Exit, Failure};

/// The viewer's request for the stream.
pub(super) const REQUEST: &[u8] = b"live\n";

/// Bytes of payload generated at once.
const PIECE: usize = 16 << 10;

/// Time limit for the last acknowledgements.
const LAST_ACKS: Duration = Duration::from_secs(1);

/// Waits for a viewer's request and sends it the stream; `begun` gets the start time of the stream,
/// no later than its first byte is sent.
pub(super) async fn serve(
    connection: &Connection,
    schedule: &Schedule,
    begun: impl FnOnce(Instant),
) -> Result<(), Failure> {
    let lost = |error: &dyn std::fmt::Display| {
        Failure::new(Exit::Connection, format_args!("the server's end: {error}"))
    };
    let (mut send, mut recv) = connection.accept_bi().await.map_err(|error| lost(&error))?;
    let request = recv.read_to_end(REQUEST.len()).await;
    if request.map_err(|error| lost(&error))? != REQUEST {
        return Err(lost(&"an unknown request"));
    }
    let start = Instant::now();
    begun(start);
    let mut piece = vec![0; PIECE];
    for frame in schedule.frames() {
        sleep_until((start + frame.at).into()).await;
        let written = send.write_all(&header(frame)).await;
        written.map_err(|error| lost(&error))?;
        let mut payload = schedule.payload(frame);
        let mut left = frame.size as usize;
        while left > 0 {
            let size = left.min(PIECE);
            payload.fill(&mut piece[..size]);
            let written = send.write_all(&piece[..size]).await;
            written.map_err(|error| lost(&error))?;
            left -= size;
        }
    }
    send.finish().map_err(|error| lost(&error))?;
    // The viewer reports whether everything arrived; this is only for the statistics.
    let _ = timeout(LAST_ACKS, send.stopped()).await;
    Ok(())
}
