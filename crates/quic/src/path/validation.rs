//! Path validation: PATH_CHALLENGE frames sent on one path, and the PATH_RESPONSE frames that answer
//! them (RFC 9000, section 8.2).

use std::time::Duration;

use swiftwater_units::Instant;

/// Challenges per probe timeout while an answer may come at any time: as many datagrams as an Initial
/// packet without answer costs in that time (RFC 9000, section 8.2.1; RFC 9002, section 6.2.4).
const CHALLENGES_PER_PTO: u32 = 2;
/// Probe timeouts until a validation fails (RFC 9000, section 8.2.4).
const EXPIRY_PTOS: u32 = 3;
/// Challenges at even distances. They fill the time of a validation that follows no failure; the
/// distances between later ones double.
const EVEN_CHALLENGES: u32 = CHALLENGES_PER_PTO * EXPIRY_PTOS;
/// Challenges whose answers count, those of the validation before included: with the path's round-trip
/// time unknown, an answer may come after the time that was given to it.
const OUTSTANDING_CHALLENGES: usize = 8;
/// Failures in a row that lengthen the next validation; it takes no longer after more.
const MAX_BACKOFF: u32 = 6;

/// A challenge that was sent.
#[derive(Clone, Copy, Debug, Default)]
struct Challenge {
    data: [u8; 8],
    sent_at: Instant,
    /// Its datagram had 1200 bytes.
    expanded: bool,
}

/// A validation that is running or failed.
#[derive(Clone, Debug)]
struct Attempt {
    /// The probe timeout that everything is timed by.
    pto: Duration,
    /// From the first challenge to failure.
    lifetime: Duration,
    /// False once it failed.
    running: bool,
    /// Validations that failed since a challenge was answered, this one included.
    failures: u32,
    to_send: bool,
    /// The latest challenges, in a ring. Each datagram has its own data (section 8.2.1).
    challenges: [Challenge; OUTSTANDING_CHALLENGES],
    /// Challenges that were put into the ring.
    recorded: usize,
    /// Challenges since the validation started.
    sent: u32,
    /// When the next challenge goes out.
    resend_at: Option<Instant>,
    /// When the validation fails.
    expires_at: Option<Instant>,
}

impl Attempt {
    fn new(pto: Duration) -> Self {
        Self {
            pto,
            lifetime: pto.saturating_mul(EXPIRY_PTOS),
            running: true,
            failures: 0,
            to_send: true,
            challenges: [Challenge::default(); OUTSTANDING_CHALLENGES],
            recorded: 0,
            sent: 0,
            resend_at: None,
            expires_at: None,
        }
    }

    /// The same once more, for longer after each failure; answers to what was sent before count still.
    fn again(&self, pto: Duration) -> Self {
        Self {
            lifetime: pto.saturating_mul(EXPIRY_PTOS << self.failures.min(MAX_BACKOFF)),
            failures: self.failures,
            challenges: self.challenges,
            recorded: self.recorded,
            ..Self::new(pto)
        }
    }

    /// Time from the challenge that was sent last to the next one.
    fn interval(&self) -> Duration {
        let doublings = self.sent.saturating_sub(EVEN_CHALLENGES).min(MAX_BACKOFF);
        self.pto.saturating_mul(1 << doublings) / CHALLENGES_PER_PTO
    }

    fn find(&self, data: [u8; 8]) -> Option<Challenge> {
        let known = self.recorded.min(OUTSTANDING_CHALLENGES);
        let mut sent = self.challenges[..known].iter();
        sent.find(|challenge| challenge.data == data).copied()
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
}

impl Validation {
    /// Starts, or starts again. `pto` is the larger of the present probe timeout and that of a new path
    /// (RFC 9000, section 8.2.4). After a failure the validation may take twice as long, after another
    /// four times: the path may be slower than either.
    pub(crate) fn start(&mut self, pto: Duration) {
        match &mut self.attempt {
            Some(attempt) => **attempt = attempt.again(pto),
            None => self.attempt = Some(Box::new(Attempt::new(pto))),
        }
    }

    /// Validations that failed since a challenge was answered.
    pub(crate) fn failures(&self) -> u32 {
        (self.attempt.as_ref()).map_or(0, |attempt| attempt.failures)
    }

    fn running(&self) -> Option<&Attempt> {
        self.attempt.as_deref().filter(|attempt| attempt.running)
    }

    fn running_mut(&mut self) -> Option<&mut Attempt> {
        self.attempt
            .as_deref_mut()
            .filter(|attempt| attempt.running)
    }

    /// True while it is not decided.
    pub(crate) fn is_running(&self) -> bool {
        self.running().is_some()
    }

    /// True if a challenge is to be sent now.
    pub(crate) fn needs_challenge(&self) -> bool {
        self.running().is_some_and(|attempt| attempt.to_send)
    }

    /// A challenge with the unpredictable `data` was sent, `expanded` to 1200 bytes or not.
    pub(crate) fn on_sent(&mut self, now: Instant, data: [u8; 8], expanded: bool) {
        let Some(attempt) = self.running_mut() else {
            return;
        };
        attempt.to_send = false;
        attempt.challenges[attempt.recorded % OUTSTANDING_CHALLENGES] = Challenge {
            data,
            sent_at: now,
            expanded,
        };
        attempt.recorded += 1;
        attempt.sent += 1;
        let expiry = *attempt.expires_at.get_or_insert(now + attempt.lifetime);
        let next = now + attempt.interval();
        attempt.resend_at = (next < expiry).then_some(next);
    }

    /// When something is to be done.
    pub(crate) fn timeout(&self) -> Option<Instant> {
        let attempt = self.running()?;
        attempt
            .expires_at
            .min(attempt.resend_at.or(attempt.expires_at))
    }

    /// Time passed; true if the validation failed.
    pub(crate) fn on_timeout(&mut self, now: Instant) -> bool {
        let Some(attempt) = self.running_mut() else {
            return false;
        };
        if attempt.expires_at.is_some_and(|at| at <= now) {
            attempt.running = false;
            attempt.failures += 1;
            return true;
        }
        if attempt.resend_at.is_some_and(|at| at <= now) {
            attempt.to_send = true;
            attempt.resend_at = None;
        }
        false
    }

    /// True if one of the latest challenges has this data, and the validation is running.
    pub(crate) fn is_challenged_with(&self, data: [u8; 8]) -> bool {
        self.running()
            .is_some_and(|attempt| attempt.find(data).is_some())
    }

    /// A response arrived, on whichever path (section 8.2.3); `None` unless a validation is running and
    /// one of the latest challenges has this data.
    pub(crate) fn on_response(&mut self, now: Instant, data: [u8; 8]) -> Option<Answered> {
        let attempt = self.running_mut()?;
        let challenge = attempt.find(data)?;
        if challenge.expanded {
            *self = Self::default();
        } else {
            *attempt = Attempt::new(attempt.pto);
        }
        Some(Answered {
            rtt: now.saturating_since(challenge.sent_at),
            complete: challenge.expanded,
        })
    }
}
