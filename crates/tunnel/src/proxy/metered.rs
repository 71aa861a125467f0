//! A stream of a client that waits while its user has passed too much.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::user_budget::{Direction, UserBudget};

/// A stream with a budget.
pub(super) struct Metered<S> {
    stream: S,
    budget: Option<Arc<UserBudget>>,
    before_read: Option<Pin<Box<Sleep>>>,
    before_write: Option<Pin<Box<Sleep>>>,
}

impl<S> Metered<S> {
    /// What is read of `stream` goes to a target, what is written to a client.
    pub(super) fn new(stream: S, budget: Option<Arc<UserBudget>>) -> Self {
        Self {
            stream,
            budget,
            before_read: None,
            before_write: None,
        }
    }

    /// The pause after `len` bytes, if there is one.
    fn pause(&self, direction: Direction, len: usize) -> Option<Pin<Box<Sleep>>> {
        let time = self.budget.as_ref()?.take(direction, len);
        (time > Duration::ZERO).then(|| Box::pin(sleep(time)))
    }
}

/// Waits for a pause to end.
fn poll_end(pause: &mut Option<Pin<Box<Sleep>>>, cx: &mut Context<'_>) -> Poll<()> {
    if let Some(pause) = pause {
        ready!(pause.as_mut().poll(cx));
    }
    *pause = None;
    Poll::Ready(())
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(poll_end(&mut self.before_read, cx));
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        self.before_read = self.pause(Direction::ToTarget, buffer.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        content: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(poll_end(&mut self.before_write, cx));
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, content))?;
        self.before_write = self.pause(Direction::ToClient, written);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
