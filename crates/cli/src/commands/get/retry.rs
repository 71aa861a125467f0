//! Decides when a URL is requested again: after the connection failed within content that can be
//! continued, and up to `--retry` times.

use std::time::Duration;

use http::Method;

use super::sink::Sink;
use crate::exit::Failure;

/// Continuations of one URL in one run.
const MAX_CONTINUATIONS: u32 = 5;

/// Attempts in one run to reach a server that answered before and became unreachable: a restart may take a
/// minute.
const MAX_RECONNECTIONS: u32 = 8;

/// Wait before the first continuation or repetition; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// The longest wait, by the server's request or by doubling.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Why the content is not complete.
#[derive(Debug)]
pub(super) enum Incomplete {
    /// The existing bytes are of another version or can't be continued: request again from the
    /// beginning at once.
    Afresh,
    /// No connection.
    Unreachable(Failure),
    /// No response.
    Unanswered(Failure),
    /// The content was incomplete.
    Broken(Failure),
    /// The server is temporarily unavailable; with its Retry-After, if any.
    Busy(Failure, Option<Duration>),
    /// A repetition would not help.
    Final(Failure),
}

impl From<Failure> for Incomplete {
    fn from(failure: Failure) -> Self {
        Self::Final(failure)
    }
}

/// Remaining repetitions and continuations.
#[derive(Debug)]
pub(super) struct Retries {
    repetitions: u32,
    continuations: u32,
    reconnections: u32,
    pauses: u32,
}

impl Retries {
    /// The budget for requests with `method` and content that can be sent again.
    pub(super) fn new(retry: u32, method: &Method, repeatable: bool) -> Self {
        Self {
            repetitions: if method.is_idempotent() && repeatable {
                retry
            } else {
                0
            },
            continuations: MAX_CONTINUATIONS,
            reconnections: MAX_RECONNECTIONS,
            pauses: 0,
        }
    }

    /// Repetitions are left.
    pub(super) fn may_repeat(&self) -> bool {
        self.repetitions > 0
    }

    /// How long to wait before the next request. The failure if there is to be none.
    pub(super) fn pause(&mut self, trouble: Incomplete, sink: &Sink) -> Result<Duration, Failure> {
        let (failure, asked) = match trouble {
            Incomplete::Afresh => return Ok(Duration::ZERO),
            Incomplete::Final(failure) => return Err(failure),
            Incomplete::Busy(failure, asked) => (failure, asked),
            // Only a started download is continued without `--retry`.
            Incomplete::Unreachable(failure) | Incomplete::Unanswered(failure)
                if self.continuations == MAX_CONTINUATIONS =>
            {
                return self.repeat(sink).ok_or(failure);
            }
            Incomplete::Unreachable(_) if sink.can_continue() && self.reconnections > 0 => {
                self.reconnections -= 1;
                return Ok(self.next_pause());
            }
            Incomplete::Unreachable(failure) => return self.repeat(sink).ok_or(failure),
            Incomplete::Unanswered(failure) | Incomplete::Broken(failure) => (failure, None),
        };
        if asked.is_none() && sink.can_continue() && self.continuations > 0 {
            self.continuations -= 1;
            return Ok(self.next_pause());
        }
        let pause = self.repeat(sink).ok_or(failure)?;
        Ok(pause.max(asked.unwrap_or_default()).min(LONGEST_PAUSE))
    }

    fn repeat(&mut self, sink: &Sink) -> Option<Duration> {
        if self.repetitions == 0 || !sink.is_clean() {
            return None;
        }
        self.repetitions -= 1;
        Some(self.next_pause())
    }

    fn next_pause(&mut self) -> Duration {
        let pause = FIRST_PAUSE.saturating_mul(1 << self.pauses.min(20));
        self.pauses += 1;
        pause.min(LONGEST_PAUSE)
    }
}
