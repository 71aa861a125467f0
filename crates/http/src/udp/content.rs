//! Sending a body as the content of a message, no faster than the peer takes it.

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body::Body as _;
use thiserror::Error;
use tokio::time::timeout;

use super::exchange::Exchange;
use crate::h3::{Code, SendError};
use crate::web::body::{Body, BoxError};

/// Bytes per second and request under way that a peer must take of a connection, for responses that wait for
/// others to be excused: what senders of content must reach, too.
pub(super) const LEAST_RATE: f64 = 500.0;

/// Content could not be sent to its end.
#[derive(Debug, Error)]
pub(super) enum ContentError {
    /// The peer wants no more, or is gone.
    #[error(transparent)]
    Send(#[from] SendError),
    /// Where it comes from failed.
    #[error("the content's source failed: {0}")]
    Source(BoxError),
    /// The peer took nothing for so long.
    #[error("the peer took nothing of it for {0:?}")]
    Stalled(Duration),
}

impl ContentError {
    /// The code that the peer is told (RFC 9114, section 8.1).
    fn code(&self) -> Code {
        match self {
            Self::Send(_) | Self::Stalled(_) => Code::REQUEST_CANCELLED,
            Self::Source(_) => Code::INTERNAL_ERROR,
        }
    }
}

/// Sends `body` and the end. A message that can't be completed is reset.
pub(super) async fn send(
    exchange: &Exchange,
    body: Body,
    patience: Option<Duration>,
) -> Result<(), ContentError> {
    // If this future is dropped midway, the peer must not take what it has for the whole.
    let mut unfinished = Unfinished(Some(exchange));
    let sent = send_all(exchange, body, patience).await;
    unfinished.0 = None;
    if let Err(error) = &sent {
        exchange.reset(error.code());
    }
    sent
}

async fn send_all(
    exchange: &Exchange,
    mut body: Body,
    patience: Option<Duration>,
) -> Result<(), ContentError> {
    let mut begun = false;
    loop {
        if std::mem::replace(&mut begun, true) {
            // A piece that can't go yet would only take memory.
            let room = std::future::poll_fn(|cx| exchange.poll_room(cx));
            match patience {
                Some(patience) => in_time(exchange, patience, room, || false).await?,
                None => room.await?,
            }
        }
        let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await
        else {
            break;
        };
        let frame = frame.map_err(ContentError::Source)?;
        match frame.into_data() {
            Ok(data) => {
                // With the end at once there is one packet less, and one turn of the worker.
                let last = body.is_end_stream();
                write(exchange, data, last, patience).await?;
                if last {
                    return Ok(());
                }
            }
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    exchange.write_trailers(&trailers)?;
                    break;
                }
            }
        }
    }
    exchange.finish()?;
    Ok(())
}

/// Sends a piece of content.
pub(super) async fn write(
    exchange: &Exchange,
    mut data: Bytes,
    last: bool,
    patience: Option<Duration>,
) -> Result<(), ContentError> {
    let Some(patience) = patience else {
        return Ok(std::future::poll_fn(|cx| exchange.poll_write(cx, &mut data, last)).await?);
    };
    let mut before = data.len();
    let left = AtomicUsize::new(before);
    let written = std::future::poll_fn(|cx| {
        let written = exchange.poll_write(cx, &mut data, last);
        left.store(data.len(), Ordering::Relaxed);
        written
    });
    in_time(exchange, patience, written, || {
        let left = left.load(Ordering::Relaxed);
        left < std::mem::replace(&mut before, left)
    })
    .await
}

/// What `sending` comes to, unless the peer takes nothing of the response for `patience`, and half of that
/// again at most; `progressed` tells whether it took something since it was last asked.
///
/// A response that waits for others of its connection, while the peer takes those at some pace and would take
/// this one, is not counted as stalled: a page of many files on a slow path comes one file after another.
async fn in_time(
    exchange: &Exchange,
    patience: Duration,
    sending: impl Future<Output = Result<(), SendError>>,
    mut progressed: impl FnMut() -> bool,
) -> Result<(), ContentError> {
    let mut sending = pin!(sending);
    let step = patience / 2;
    let mut quiet_steps = 0;
    let mut acknowledged = None;
    loop {
        if let Ok(sent) = timeout(step, sending.as_mut()).await {
            return Ok(sent?);
        }
        let intake = exchange.intake();
        let before = acknowledged.replace(intake.acknowledged);
        let taken = before.map_or(0, |before| intake.acknowledged.saturating_sub(before));
        let least = intake.requests as f64 * step.as_secs_f64() * LEAST_RATE;
        let waits_its_turn = !intake.is_held_back && taken as f64 >= least;
        // In the first step it is not measured.
        quiet_steps = if progressed() || waits_its_turn {
            0
        } else {
            quiet_steps + 1
        };
        if quiet_steps >= 2 {
            return Err(ContentError::Stalled(patience));
        }
    }
}

/// A message whose sending has begun.
struct Unfinished<'a>(Option<&'a Exchange>);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(exchange) = self.0 {
            exchange.reset(Code::REQUEST_CANCELLED);
        }
    }
}
