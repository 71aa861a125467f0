//! A body with a minimum rate: it fails if the peer sends too slowly, or not at all.
//!
//! Only the time spent waiting for the sender counts, not the time of a slow reader.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Buf;
use http_body::{Body, Frame, SizeHint};
use thiserror::Error;
use tokio::time::{Instant, Sleep, sleep_until};

use super::body::BoxError;

/// The minimum rate of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// The longest wait for the next piece.
    pub gap: Duration,
    /// Bytes per second, averaged from the start over the time spent waiting; 0 for any.
    pub minimum_rate: u64,
    /// Waiting time before the minimum rate applies.
    pub grace: Duration,
}

impl Pace {
    /// Any rate, as long as no gap is longer than `gap`.
    pub fn gap(gap: Duration) -> Self {
        Self {
            gap,
            minimum_rate: 0,
            grace: Duration::ZERO,
        }
    }
}

/// Why a [`TimedBody`] ended early.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TimedBodyError {
    /// The sender was slower than its [`Pace`] allows.
    #[error("the body came too slowly")]
    TooSlow,
    /// The body itself failed.
    #[error(transparent)]
    Body(BoxError),
}

/// A body that fails with [`TimedBodyError::TooSlow`] when its sender falls behind a [`Pace`].
#[derive(Debug)]
pub struct TimedBody<B> {
    inner: B,
    pace: Pace,
    received: u64,
    /// The time spent waiting, without the current wait.
    waited: Duration,
    /// The current wait: its start and its latest end.
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
    failed: bool,
}

impl<B> TimedBody<B> {
    /// `inner`, with the limits of `pace` from the first read on.
    pub fn new(inner: B, pace: Pace) -> Self {
        Self {
            inner,
            pace,
            received: 0,
            waited: Duration::ZERO,
            waiting: None,
            failed: false,
        }
    }

    /// Longest duration of the next wait.
    fn time_limit(&self) -> Duration {
        if self.pace.minimum_rate == 0 {
            return self.pace.gap;
        }
        let earned = Duration::from_secs_f64(self.received as f64 / self.pace.minimum_rate as f64);
        let left = (self.pace.grace + earned).saturating_sub(self.waited);
        left.min(self.pace.gap)
    }
}

impl<B> Body for TimedBody<B>
where
    B: Body + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = TimedBodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, TimedBodyError>>> {
        if self.failed {
            return Poll::Ready(None);
        }
        if let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(cx) {
            if let Some((since, _)) = self.waiting.take() {
                self.waited += since.elapsed();
            }
            if let Some(Ok(frame)) = &frame {
                let length = frame.data_ref().map_or(0, Buf::remaining);
                self.received += length as u64;
            }
            return Poll::Ready(
                frame.map(|frame| frame.map_err(|error| TimedBodyError::Body(error.into()))),
            );
        }
        if self.waiting.is_none() {
            let now = Instant::now();
            let deadline = now + self.time_limit();
            self.waiting = Some((now, Box::pin(sleep_until(deadline))));
        }
        let expired = self
            .waiting
            .as_mut()
            .is_some_and(|(_, sleep)| sleep.as_mut().poll(cx).is_ready());
        if expired {
            self.failed = true;
            return Poll::Ready(Some(Err(TimedBodyError::TooSlow)));
        }
        Poll::Pending
    }

    fn is_end_stream(&self) -> bool {
        self.failed || self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
