//! What to do about a socket that fails to receive: go on, but not in a busy loop.
//!
//! Some systems report ICMP answers this way, or that the network is down. Peers and timers decide
//! what that means, never the socket; yet one that fails at every call must not take a processor.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Instant;

/// Errors in a row after which a reader pauses.
const ERRORS_BEFORE_PAUSE: u32 = 8;

/// How long a socket that keeps failing is left alone.
pub(crate) const PAUSE: Duration = Duration::from_millis(10);

/// Counts errors in a row.
#[derive(Debug, Default)]
pub(crate) struct ReceiveErrors {
    in_a_row: u32,
    /// When a reader that waits with [`ReceiveErrors::receive`] goes on.
    resume: Option<Instant>,
}

impl ReceiveErrors {
    /// Receiving worked.
    pub(crate) fn succeeded(&mut self) {
        self.in_a_row = 0;
    }

    /// Receiving failed.
    pub(crate) fn failed(&mut self) {
        self.in_a_row += 1;
    }

    /// True if the reader should pause before it tries again.
    pub(crate) fn needs_pause(&self) -> bool {
        self.in_a_row > ERRORS_BEFORE_PAUSE
    }

    /// The pause is over, or something else gave reason to look at the socket.
    pub(crate) fn go_on(&mut self) {
        if self.needs_pause() {
            self.in_a_row = 0;
        }
    }

    /// Lets `attempt` receive once, after a pause if that is due. Errors are only logged. May be
    /// dropped and called again at any time: what is left of a pause remains.
    pub(crate) async fn receive(
        &mut self,
        attempt: impl FnMut(&mut Context<'_>) -> Poll<io::Result<()>>,
    ) {
        if let Some(resume) = self.resume {
            tokio::time::sleep_until(resume).await;
            self.resume = None;
            self.go_on();
        }
        match poll_fn(attempt).await {
            Ok(()) => self.succeeded(),
            Err(error) => {
                tracing::debug!(%error, "receiving failed");
                self.failed();
                self.resume = self.needs_pause().then(|| Instant::now() + PAUSE);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken() -> io::Result<()> {
        Err(io::ErrorKind::NetworkDown.into())
    }

    /// Receives for a second of virtual time, with the outcome of the n-th attempt from `outcome`;
    /// returns the number of attempts.
    async fn attempts_in_a_second(mut outcome: impl FnMut(u32) -> Poll<io::Result<()>>) -> u32 {
        let mut attempts = 0;
        let mut errors = ReceiveErrors::default();
        let reading = async {
            loop {
                let attempt = |_: &mut Context<'_>| {
                    attempts += 1;
                    assert!(attempts < 10_000, "a busy loop");
                    outcome(attempts)
                };
                errors.receive(attempt).await;
            }
        };
        let _ = tokio::time::timeout(Duration::from_secs(1), reading).await;
        attempts
    }

    #[tokio::test(start_paused = true)]
    async fn a_socket_that_keeps_failing_is_left_alone_now_and_then() {
        let attempts = attempts_in_a_second(|_| Poll::Ready(broken())).await;
        // Nine and then a pause, for as long as it lasts, and no less: it may recover.
        assert!((500..=1000).contains(&attempts), "{attempts} attempts");
    }

    #[tokio::test(start_paused = true)]
    async fn single_errors_cost_no_time() {
        let started = Instant::now();
        let mut last = started;
        attempts_in_a_second(|n| {
            if n >= 1000 {
                return Poll::Pending;
            }
            last = Instant::now();
            Poll::Ready(if n % 9 == 0 { Ok(()) } else { broken() })
        })
        .await;
        assert_eq!(last, started);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_outlives_the_future_that_began_it() {
        let mut errors = ReceiveErrors::default();
        let mut attempts = 0;
        for _ in 0..20 {
            let attempt = |_: &mut Context<'_>| {
                attempts += 1;
                Poll::Ready(broken())
            };
            // Cancelled whenever it waits, as by a `select!` with other work.
            tokio::select! {
                biased;
                () = errors.receive(attempt) => {}
                () = std::future::ready(()) => {}
            }
        }
        assert_eq!(attempts, ERRORS_BEFORE_PAUSE + 1);
    }
}
