//! Sends a body as the content of a message, at the rate at which the peer accepts it.

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use thiserror::Error;
use tokio::time::timeout;

use super::exchange::Exchange;
use crate::h3::{Code, SendError};
use crate::web::body::{BoxError, MalformedMessage};

/// Least rate in bytes per second and request in progress at which a peer must read a connection so that
/// responses waiting for others don't count as stalled; the same rate as required of senders of content.
pub(super) const LEAST_RATE: f64 = 500.0;

/// Why content could not be sent to its end.
#[derive(Debug, Error)]
pub(super) enum ContentError {
    /// The peer sent STOP_SENDING, or the connection ended.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The body failed.
    #[error("the content's source failed: {0}")]
    Source(BoxError),
    /// The peer did not read anything for so long.
    #[error("the peer did not read any of it for {0:?}")]
    Stalled(Duration),
}

impl ContentError {
    /// The error code sent to the peer (RFC 9114, section 8.1).
    fn code(&self) -> Code {
        match self {
            Self::Send(_) | Self::Stalled(_) => Code::REQUEST_CANCELLED,
            Self::Source(error) if error.is::<MalformedMessage>() => Code::MESSAGE_ERROR,
            Self::Source(_) => Code::INTERNAL_ERROR,
        }
    }
}

/// What a body has at once, to be sent together with the head of the message.
pub(super) struct Beginning {
    /// The first piece, or what is left of it. Empty if it has to be waited for.
    pub(super) data: Bytes,
    /// The content ends with this piece.
    pub(super) is_last: bool,
    /// There was a piece.
    begun: bool,
    /// What the body has at once instead of a piece: its end, trailers, or an error.
    other: Poll<Option<Result<Frame<Bytes>, BoxError>>>,
}

impl Default for Beginning {
    /// Nothing.
    fn default() -> Self {
        Self {
            data: Bytes::new(),
            is_last: false,
            begun: false,
            other: Poll::Pending,
        }
    }
}

impl Beginning {
    /// Polls `body` once.
    pub(super) async fn of<B>(mut body: Pin<&mut B>) -> Self
    where
        B: Body<Data = Bytes, Error: Into<BoxError>>,
    {
        let polled = std::future::poll_fn(|cx| Poll::Ready(body.as_mut().poll_frame(cx))).await;
        let mut beginning = Self::default();
        match polled {
            Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) => {
                    beginning.is_last = body.is_end_stream();
                    beginning.begun = !data.is_empty();
                    beginning.data = data;
                }
                Err(frame) => beginning.other = Poll::Ready(Some(Ok(frame))),
            },
            Poll::Ready(Some(Err(error))) => beginning.other = Poll::Ready(Some(Err(error.into()))),
            Poll::Ready(None) => beginning.other = Poll::Ready(None),
            Poll::Pending => {}
        }
        beginning
    }

    /// True once the whole message was accepted with the head.
    pub(super) fn is_sent(&self) -> bool {
        self.is_last && self.data.is_empty()
    }
}

/// Sends the rest of what began with `beginning`, and the end of the stream. A message that can't be completed is
/// reset.
pub(super) async fn send<B>(
    exchange: &Exchange,
    beginning: Beginning,
    body: Pin<&mut B>,
    time_limit: Option<Duration>,
) -> Result<(), ContentError>
where
    B: Body<Data = Bytes, Error: Into<BoxError>>,
{
    // If this future is dropped midway, the stream is reset, so that the peer does not treat the
    // message as complete.
    let mut unfinished = Unfinished(Some(exchange));
    let sent = send_all(exchange, beginning, body, time_limit).await;
    unfinished.0 = None;
    if let Err(error) = &sent {
        exchange.reset(error.code());
    }
    sent
}

async fn send_all<B>(
    exchange: &Exchange,
    beginning: Beginning,
    mut body: Pin<&mut B>,
    time_limit: Option<Duration>,
) -> Result<(), ContentError>
where
    B: Body<Data = Bytes, Error: Into<BoxError>>,
{
    let Beginning {
        data,
        is_last,
        mut begun,
        mut other,
    } = beginning;
    if !data.is_empty() {
        write(exchange, data, is_last, time_limit).await?;
        if is_last {
            return Ok(());
        }
    }
    loop {
        if std::mem::replace(&mut begun, true) {
            // A piece that can't be sent yet would only take memory.
            let room = std::future::poll_fn(|cx| exchange.poll_room(cx));
            match time_limit {
                Some(time_limit) => in_time(exchange, time_limit, room, || false).await?,
                None => room.await?,
            }
        }
        let frame = if let Poll::Ready(frame) = std::mem::replace(&mut other, Poll::Pending) {
            frame
        } else {
            let frame = std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await;
            frame.map(|frame| frame.map_err(Into::into))
        };
        let Some(frame) = frame else {
            break;
        };
        let frame = frame.map_err(ContentError::Source)?;
        match frame.into_data() {
            Ok(data) => {
                // Sending the end with the last piece saves one packet and one wake-up of the
                // worker.
                let last = body.is_end_stream();
                write(exchange, data, last, time_limit).await?;
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
    time_limit: Option<Duration>,
) -> Result<(), ContentError> {
    let Some(time_limit) = time_limit else {
        return Ok(std::future::poll_fn(|cx| exchange.poll_write(cx, &mut data, last)).await?);
    };
    let mut before = data.len();
    let left = AtomicUsize::new(before);
    let written = std::future::poll_fn(|cx| {
        let written = exchange.poll_write(cx, &mut data, last);
        left.store(data.len(), Ordering::Relaxed);
        written
    });
    in_time(exchange, time_limit, written, || {
        let left = left.load(Ordering::Relaxed);
        left < std::mem::replace(&mut before, left)
    })
    .await
}

/// The result of `sending`, unless the peer reads nothing of the response for `time_limit` (at most 1.5
/// times that); `progressed` returns whether it has read something since the previous call.
///
/// A response that waits for others of its connection, while the peer reads those at a sufficient rate, does
/// not count as stalled: on a slow path the files of a page are sent one after another.
async fn in_time(
    exchange: &Exchange,
    time_limit: Duration,
    sending: impl Future<Output = Result<(), SendError>>,
    mut progressed: impl FnMut() -> bool,
) -> Result<(), ContentError> {
    let mut sending = pin!(sending);
    let step = time_limit / 2;
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
        // The rate is not measured in the first step.
        quiet_steps = if progressed() || waits_its_turn {
            0
        } else {
            quiet_steps + 1
        };
        if quiet_steps >= 2 {
            return Err(ContentError::Stalled(time_limit));
        }
    }
}

/// A message being sent.
struct Unfinished<'a>(Option<&'a Exchange>);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(exchange) = self.0 {
            exchange.reset(Code::REQUEST_CANCELLED);
        }
    }
}
