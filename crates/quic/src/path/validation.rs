//! Path validation by challenge and response (RFC 9000, section 8.2).

use std::time::Duration;

use swiftwater_units::Instant;

/// Challenges that are sent before validation fails by time alone.
const MAX_ATTEMPTS: u32 = 8;
/// Failures in a row after which the next validation is given no more time than the last.
const MAX_PATIENCE: u32 = 6;

/// A running validation.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    data: [u8; 8],
    /// A probe timeout: the least that an answer is given.
    period: Duration,
    to_send: bool,
    sent: u32,
    /// When the challenge is repeated.
    resend_at: Option<Instant>,
    /// When the validation fails.
    expires_at: Option<Instant>,
}

/// Validation of a path's current address.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Validation {
    attempt: Option<Attempt>,
    /// Validations that failed since one succeeded.
    failures: u32,
}

impl Validation {
    /// Starts with the unpredictable `data`. `pto` is the larger of the present probe timeout and
    /// that of a new path (RFC 9000, section 8.2.4). After a failure it counts twice, after another
    /// four times: the path may be slower than anybody knows.
    pub(crate) fn start(&mut self, data: [u8; 8], pto: Duration) {
        self.attempt = Some(Attempt {
            data,
            period: pto.saturating_mul(1 << self.failures.min(MAX_PATIENCE)),
            to_send: true,
            sent: 0,
            resend_at: None,
            expires_at: None,
        });
    }

    /// Gives up.
    pub(crate) fn abandon(&mut self) {
        self.attempt = None;
    }

    /// The challenge to send now.
    pub(crate) fn challenge_to_send(&self) -> Option<[u8; 8]> {
        self.attempt
            .filter(|attempt| attempt.to_send)
            .map(|attempt| attempt.data)
    }

    /// The challenge was sent.
    pub(crate) fn on_sent(&mut self, now: Instant) {
        if let Some(attempt) = &mut self.attempt {
            let pto = attempt.period;
            attempt.to_send = false;
            attempt.sent += 1;
            attempt.resend_at =
                (attempt.sent < MAX_ATTEMPTS).then(|| now + pto * 2_u32.pow(attempt.sent - 1));
            attempt.expires_at.get_or_insert(now + pto * 3);
        }
    }

    /// When something is to be done.
    pub(crate) fn timeout(&self) -> Option<Instant> {
        let attempt = self.attempt?;
        attempt
            .expires_at
            .min(attempt.resend_at.or(attempt.expires_at))
    }

    /// Time passed; true if the validation failed.
    pub(crate) fn on_timeout(&mut self, now: Instant) -> bool {
        let Some(attempt) = &mut self.attempt else {
            return false;
        };
        if attempt.expires_at.is_some_and(|at| at <= now) {
            self.attempt = None;
            self.failures += 1;
            return true;
        }
        if attempt.resend_at.is_some_and(|at| at <= now) {
            attempt.to_send = true;
            attempt.resend_at = None;
        }
        false
    }

    /// A response arrived; true if it answers the running challenge.
    pub(crate) fn on_response(&mut self, _now: Instant, data: [u8; 8]) -> bool {
        let answered = self.attempt.is_some_and(|attempt| attempt.data == data);
        if answered {
            *self = Self::default();
        }
        answered
    }
}
