//! Path validation by challenge and response (RFC 9000, section 8.2).

use std::time::Duration;

use swiftwater_units::Instant;

/// Challenges that are sent before validation fails by time alone.
const MAX_ATTEMPTS: usize = 8;
/// Failures in a row after which the next validation is given no more time than the last.
const MAX_PATIENCE: u32 = 6;

/// A challenge that was sent.
#[derive(Clone, Copy, Debug, Default)]
struct Challenge {
    data: [u8; 8],
    sent_at: Instant,
    /// Its datagram had 1200 bytes.
    expanded: bool,
}

/// A running validation.
#[derive(Clone, Debug)]
struct Attempt {
    /// A probe timeout: the least that an answer is given.
    period: Duration,
    to_send: bool,
    /// Each datagram has its own data (section 8.2.1).
    challenges: [Challenge; MAX_ATTEMPTS],
    sent: usize,
    /// When the next challenge goes out.
    resend_at: Option<Instant>,
    /// When the validation fails.
    expires_at: Option<Instant>,
}

impl Attempt {
    fn new(period: Duration) -> Self {
        Self {
            period,
            to_send: true,
            challenges: [Challenge::default(); MAX_ATTEMPTS],
            sent: 0,
            resend_at: None,
            expires_at: None,
        }
    }
}

/// A challenge was answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Answered {
    /// Time between challenge and response.
    pub(crate) rtt: Duration,
    /// The path is known to carry 1200 bytes. Otherwise only the address is good, and another
    /// challenge follows in a full datagram (section 8.2.1).
    pub(crate) complete: bool,
}

/// Validation of a path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Validation {
    attempt: Option<Box<Attempt>>,
    /// Validations that failed since a challenge was answered.
    failures: u32,
}

impl Validation {
    /// Starts. `pto` is the larger of the present probe timeout and that of a new path (RFC 9000,
    /// section 8.2.4). After a failure it counts twice, after another four times: the path may be
    /// slower than anybody knows.
    pub(crate) fn start(&mut self, pto: Duration) {
        let period = pto.saturating_mul(1 << self.failures.min(MAX_PATIENCE));
        self.attempt = Some(Box::new(Attempt::new(period)));
    }

    /// Validations that failed since a challenge was answered.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    /// True while it is not decided.
    pub(crate) fn is_running(&self) -> bool {
        self.attempt.is_some()
    }

    /// True if a challenge is to be sent now.
    pub(crate) fn wants_challenge(&self) -> bool {
        (self.attempt.as_ref()).is_some_and(|attempt| attempt.to_send)
    }

    /// A challenge with the unpredictable `data` was sent, `expanded` to 1200 bytes or not.
    pub(crate) fn on_sent(&mut self, now: Instant, data: [u8; 8], expanded: bool) {
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        attempt.to_send = false;
        if let Some(place) = attempt.challenges.get_mut(attempt.sent) {
            *place = Challenge {
                data,
                sent_at: now,
                expanded,
            };
            attempt.sent += 1;
        }
        let wait = attempt.period * (1_u32 << (attempt.sent - 1));
        attempt.resend_at = (attempt.sent < MAX_ATTEMPTS).then(|| now + wait);
        attempt.expires_at.get_or_insert(now + attempt.period * 3);
    }

    /// When something is to be done.
    pub(crate) fn timeout(&self) -> Option<Instant> {
        let attempt = self.attempt.as_ref()?;
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

    /// A response arrived, on whichever path (section 8.2.3); `None` unless it answers a challenge of
    /// the running validation.
    pub(crate) fn on_response(&mut self, now: Instant, data: [u8; 8]) -> Option<Answered> {
        let attempt = self.attempt.as_mut()?;
        let mut sent = attempt.challenges[..attempt.sent].iter();
        let challenge = *sent.find(|challenge| challenge.data == data)?;
        if challenge.expanded {
            *self = Self::default();
        } else {
            **attempt = Attempt::new(attempt.period);
            self.failures = 0;
        }
        Some(Answered {
            rtt: now.saturating_since(challenge.sent_at),
            complete: challenge.expanded,
        })
    }
}
