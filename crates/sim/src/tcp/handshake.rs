//! The three-way handshake: repetition of SYN and SYN-ACK, and when to give up.

use std::time::Duration;

use swiftwater_units::Instant;

use super::config::Config;
use super::rto::{INITIAL_TIMEOUT, MAX_TIMEOUT};
use super::ticks::Ticks;

/// One side's SYN until it is acknowledged.
#[derive(Clone, Debug)]
pub struct Handshake {
    /// When the SYN was first sent.
    began: Instant,
    sent_at: Instant,
    timeout: Duration,
    /// Repetitions so far, and the most.
    repetitions: u32,
    most: u32,
    /// Answers to repetitions of the peer's SYN.
    answers: u32,
    /// Timeouts that are not doubled.
    linear: u32,
    is_due: bool,
    ticks: Ticks,
}

/// What an expiry of the timer means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SynTimeout {
    /// The SYN is sent again.
    Repeat,
    /// The handshake failed.
    GiveUp,
}

impl Handshake {
    /// A client's SYN, to be sent now.
    pub fn client(now: Instant, config: &Config) -> Self {
        let linear = config.syn_linear_timeouts;
        Self::begin(now, config, config.syn_retries + linear, linear)
    }

    /// A server's SYN-ACK, to be sent now.
    pub fn server(now: Instant, config: &Config) -> Self {
        Self::begin(now, config, config.syn_ack_retries, 0)
    }

    fn begin(now: Instant, config: &Config, most: u32, linear: u32) -> Self {
        Self {
            began: now,
            sent_at: now,
            timeout: INITIAL_TIMEOUT,
            repetitions: 0,
            most,
            answers: 0,
            linear,
            is_due: true,
            ticks: Ticks::new(config.tick),
        }
    }

    /// When the timer expires.
    pub fn next_timer(&self) -> Instant {
        let due = self.sent_at + self.timeout;
        self.ticks.expiry(self.sent_at, due)
    }

    /// The timer expired.
    pub fn on_timer(&mut self, now: Instant) -> SynTimeout {
        if self.repetitions >= self.most {
            return SynTimeout::GiveUp;
        }
        self.repetitions += 1;
        if self.repetitions > self.linear {
            self.timeout = (self.timeout * 2).min(MAX_TIMEOUT);
        }
        self.sent_at = now;
        self.is_due = true;
        SynTimeout::Repeat
    }

    /// The peer repeated its SYN: the answer is sent again, and its timer starts anew.
    pub fn repeat(&mut self, now: Instant) {
        self.answers += 1;
        self.sent_at = now;
        self.is_due = true;
    }

    /// Whether the SYN has to be sent now; asked once for each transmission.
    pub fn take_due(&mut self) -> bool {
        std::mem::take(&mut self.is_due)
    }

    /// The round trip when the acknowledgement arrives at `now`, which returns the timestamp `echo`.
    pub fn rtt(&self, now: Instant, echo: Option<Instant>) -> Option<Duration> {
        if self.repetitions + self.answers == 0 {
            return Some(now.saturating_since(self.began));
        }
        echo.map(|echo| now.saturating_since(echo))
    }

    /// Whether it was sent again more than once, not only in answer to the peer: that counts as
    /// congestion.
    pub fn is_congested(&self) -> bool {
        self.repetitions > 0 && self.repetitions + self.answers > 1
    }
}
