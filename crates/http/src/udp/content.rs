//! Sending a body as the content of a message, no faster than the peer takes it.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http_body::Body as _;
use thiserror::Error;
use tokio::time::timeout;

use super::exchange::Exchange;
use crate::h3::{Code, SendError};
use crate::web::body::{Body, BoxError};

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
    while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
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
    // Each piece that the peer takes starts its time anew.
    loop {
        let before = data.len();
        let written = std::future::poll_fn(|cx| exchange.poll_write(cx, &mut data, last));
        match timeout(patience, written).await {
            Ok(written) => return Ok(written?),
            Err(_) if data.len() < before => {}
            Err(_) => return Err(ContentError::Stalled(patience)),
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
