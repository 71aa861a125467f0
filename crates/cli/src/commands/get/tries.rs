//! When an address is asked once more: after the connection broke within content that can be
//! continued, and as often as `--retry` says.

use std::time::Duration;

use http::Method;

use super::sink::Sink;
use crate::exit::Failure;

/// Continuations of one address in one run.
const MAX_CONTINUATIONS: u32 = 5;

/// Times in one run that a server is looked for which was there and is gone: restarting may take it a minute.
const MAX_RECONNECTIONS: u32 = 8;

/// Before the first continuation or repetition; each further one waits twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// The longest wait that a server can ask for, and that doubling leads to.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Why there is no complete content.
#[derive(Debug)]
pub(super) enum Trouble {
    /// What is there is of another version or can't be continued: at once from the beginning.
    Afresh,
    /// There is no connection.
    Unreachable(Failure),
    /// There is no response.
    Unanswered(Failure),
    /// The content broke off.
    Broken(Failure),
    /// The server can't answer now; when it asks to be asked again.
    Busy(Failure, Option<Duration>),
    /// Another try would change nothing.
    Final(Failure),
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Final(failure)
    }
}

/// What is left of patience.
#[derive(Debug)]
pub(super) struct Tries {
    repetitions: u32,
    continuations: u32,
    reconnections: u32,
    pauses: u32,
}

impl Tries {
    /// So many repetitions may be made of requests with `method` and content that can be sent again.
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

    /// How long to wait before asking again. The failure if that is not to be done.
    pub(super) fn pause(&mut self, trouble: Trouble, sink: &Sink) -> Result<Duration, Failure> {
        let (failure, asked) = match trouble {
            Trouble::Afresh => return Ok(Duration::ZERO),
            Trouble::Final(failure) => return Err(failure),
            Trouble::Busy(failure, asked) => (failure, asked),
            // Only what was begun is continued without being asked to.
            Trouble::Unreachable(failure) | Trouble::Unanswered(failure)
                if self.continuations == MAX_CONTINUATIONS =>
            {
                return self.repeat(sink).ok_or(failure);
            }
            Trouble::Unreachable(_) if sink.can_continue() && self.reconnections > 0 => {
                self.reconnections -= 1;
                return Ok(self.next_pause());
            }
            Trouble::Unreachable(failure) => return self.repeat(sink).ok_or(failure),
            Trouble::Unanswered(failure) | Trouble::Broken(failure) => (failure, None),
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
