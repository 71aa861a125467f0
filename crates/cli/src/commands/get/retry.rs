//! Decides when a URL is requested again: after the connection failed within content that can be
//! continued, and up to `--retry` times; and for how long, while nothing more of it arrives.

use std::time::{Duration, Instant};

use http::Method;

use super::sink::Sink;
use crate::exit::{Exit, Failure};

/// Continuations of one URL in one run.
const MAX_CONTINUATIONS: u32 = 5;

/// Attempts in one run to reach a server that answered before and became unreachable: a restart may take a
/// minute.
const MAX_RECONNECTIONS: u32 = 8;

/// Wait before the first continuation or repetition; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// The longest wait, by the server's request or by doubling.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// For how long a URL is requested again while nothing more of it arrives, without `--retry` and `--retry-max-time`.
const PATIENCE: Duration = Duration::from_secs(60);

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
    /// No response by [`Retries::until`].
    Late,
    /// A repetition would not help.
    Final(Failure),
}

impl Incomplete {
    fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Afresh | Self::Late => None,
            Self::Unreachable(failure)
            | Self::Unanswered(failure)
            | Self::Broken(failure)
            | Self::Busy(failure, _)
            | Self::Final(failure) => Some(failure),
        }
    }
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
    patience: Patience,
    /// What the last attempt failed of.
    last: Option<Failure>,
}

/// How long nothing more may arrive.
#[derive(Debug)]
struct Patience {
    limit: Option<Duration>,
    /// The first failure since something arrived, and what had arrived then, bytes.
    since: Option<(Instant, u64)>,
}

impl Patience {
    /// An attempt failed at `now`, when `received` bytes had arrived in all.
    fn on_failure(&mut self, now: Instant, received: u64) {
        if self.since.is_none_or(|(_, before)| received > before) {
            self.since = Some((now, received));
        }
    }

    /// When it is over; `None` before a failure, and without a limit.
    fn until(&self) -> Option<Instant> {
        let (since, _) = self.since?;
        since.checked_add(self.limit?)
    }
}

impl Retries {
    /// The budget for requests with `method` and content that can be sent again: `retry` times, and for `max_time` while
    /// nothing more arrives.
    pub(super) fn new(
        retry: u32,
        max_time: Option<Duration>,
        method: &Method,
        repeatable: bool,
    ) -> Self {
        // Who asks for repetitions says how many; how long a server wants to be left alone is its business.
        let limit = max_time.or((retry == 0).then_some(PATIENCE));
        Self {
            repetitions: if method.is_idempotent() && repeatable {
                retry
            } else {
                0
            },
            continuations: MAX_CONTINUATIONS,
            reconnections: MAX_RECONNECTIONS,
            pauses: 0,
            patience: Patience { limit, since: None },
            last: None,
        }
    }

    /// Repetitions are left.
    pub(super) fn may_repeat(&self) -> bool {
        self.repetitions > 0
    }

    /// By when the next request must have its response; `None` without a limit.
    pub(super) fn until(&self) -> Option<Instant> {
        self.patience.until()
    }

    /// How long to wait before the next request. The failure if there is to be none: attempts are used up, or at `now`, when
    /// `received` bytes have arrived in all, nothing more has for too long.
    pub(super) fn pause(
        &mut self,
        trouble: Incomplete,
        sink: &Sink,
        (now, received): (Instant, u64),
    ) -> Result<Duration, Failure> {
        if matches!(trouble, Incomplete::Afresh) {
            return Ok(Duration::ZERO);
        }
        self.patience.on_failure(now, received);
        let failure = trouble.failure().cloned();
        self.last = failure.or(self.last.take());
        let pause = self.next(trouble, sink)?;
        match self.until() {
            Some(until) if until < now + pause => Err(self.given_up()),
            _ => Ok(pause),
        }
    }

    /// Nothing more has arrived for too long.
    fn given_up(&mut self) -> Failure {
        let limit = self.patience.limit.unwrap_or_default();
        let last = self.last.take();
        let exit = last.as_ref().map_or(Exit::Connection, |last| last.exit);
        let why = last.map_or_else(String::new, |last| format!("{last}; "));
        let text = format_args!("{why}it was tried again for {limit:?} (--retry-max-time)");
        Failure::new(exit, text)
    }

    fn next(&mut self, trouble: Incomplete, sink: &Sink) -> Result<Duration, Failure> {
        let (failure, asked) = match trouble {
            Incomplete::Afresh => return Ok(Duration::ZERO),
            Incomplete::Late => return Err(self.given_up()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_begins_anew_when_something_arrives() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let limit = Some(Duration::from_secs(60));
        let mut patience = Patience { limit, since: None };
        assert_eq!(patience.until(), None, "nothing has failed");
        patience.on_failure(at(0), 1000);
        for seconds in [10, 30, 59] {
            patience.on_failure(at(seconds), 1000);
            assert_eq!(patience.until(), Some(at(60)));
        }
        patience.on_failure(at(59), 1001);
        assert_eq!(patience.until(), Some(at(119)));
        patience.limit = None;
        assert_eq!(patience.until(), None);
    }

    #[test]
    fn who_says_how_often_has_no_limit_of_time_by_default() {
        let tries = |retry, max_time| {
            let mut tries = Retries::new(retry, max_time, &Method::GET, true);
            tries.patience.on_failure(Instant::now(), 0);
            tries.until().is_some()
        };
        assert!(tries(0, None));
        assert!(!tries(3, None));
        assert!(tries(3, Some(Duration::from_secs(5))));
    }

    #[test]
    fn what_is_given_up_says_the_last_failure_and_the_limit() {
        let max_time = Some(Duration::from_secs(5));
        let mut tries = Retries::new(1, max_time, &Method::GET, true);
        let now = Instant::now();
        let lost = || Incomplete::Unreachable(Failure::new(Exit::Connection, "no answer"));
        // The repetition after 200 ms is within the limit, and has no response by its end.
        tries.pause(lost(), &Sink::Nothing, (now, 0)).unwrap();
        let late = now + Duration::from_secs(5);
        let failure = tries.pause(Incomplete::Late, &Sink::Nothing, (late, 0));
        let failure = failure.unwrap_err();
        assert_eq!(failure.exit, Exit::Connection);
        let text = failure.to_string();
        assert!(
            text.contains("no answer") && text.contains("for 5s"),
            "{text}"
        );
        // A pause that would end after the limit is not begun.
        let mut tries = Retries::new(1, Some(Duration::from_millis(100)), &Method::GET, true);
        let failure = tries.pause(lost(), &Sink::Nothing, (now, 0)).unwrap_err();
        assert!(failure.to_string().contains("100ms"), "{failure}");
    }
}
