//! Whether an upstream is worth a request, by what became of the last ones.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long an upstream is left out after a failure; twice as long after each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
/// Longest time.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
struct State {
    failures: u32,
    /// Left out until then.
    until: Option<Instant>,
}

/// What is known of an upstream.
#[derive(Debug, Default)]
pub(super) struct Health(Mutex<State>);

impl Health {
    /// True if requests may go there: always, unless it failed a short time ago.
    pub(super) fn is_good(&self, now: Instant) -> bool {
        self.with(|state| state.until.is_none_or(|until| until <= now))
    }

    /// It answered.
    pub(super) fn on_answer(&self) {
        self.with(|state| *state = State::default());
    }

    /// It could not be reached, did not answer, or answered wrongly.
    pub(super) fn on_failure(&self, now: Instant) {
        self.with(|state| {
            let pause = FIRST_PAUSE.saturating_mul(1 << state.failures.min(16));
            state.failures = state.failures.saturating_add(1);
            state.until = Some(now + pause.min(LONGEST_PAUSE));
        });
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_leave_an_upstream_out_for_longer_and_longer() {
        let (health, mut now) = (Health::default(), Instant::now());
        assert!(health.is_good(now));
        for seconds in [2, 4, 8, 16, 32, 60, 60] {
            health.on_failure(now);
            let before_end = now + Duration::from_secs(seconds) - Duration::from_millis(1);
            assert!(!health.is_good(before_end), "{seconds}");
            now += Duration::from_secs(seconds);
            assert!(health.is_good(now), "{seconds}");
        }
        health.on_answer();
        health.on_failure(now);
        assert!(health.is_good(now + Duration::from_secs(2)));
    }
}
