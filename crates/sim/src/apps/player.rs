//! A fluid model of a player: it starts when its buffer is filled to a level, drains at the stream's
//! rate, and pauses when it is empty until it is filled again.
//!
//! The model is that of the article "XQUIC" on live streaming: the server fills the buffer, the
//! player drains it; the results are the time until the first frame and the pauses.

use std::time::Duration;

use swiftwater_units::{Bandwidth, ByteCount, Instant};

/// Playback results.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Viewing {
    /// The viewer's request: the start of the handshake.
    pub start: Instant,
    /// When the player started; `None` if it hasn't.
    pub started: Option<Instant>,
    /// Pauses of any length, in order, including one in progress.
    pub pauses: Vec<Duration>,
    /// Time since the player started, pauses included.
    pub viewed: Duration,
}

impl Viewing {
    /// Start-up delay.
    pub fn start_time(&self) -> Option<Duration> {
        Some(self.started? - self.start)
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// Not started.
    Filling,
    /// Playing since then, with so many bytes played before.
    Playing { since: Instant, played: u64 },
    /// Empty since then, with so many bytes played.
    Paused { since: Instant, played: u64 },
}

/// The player's buffer.
#[derive(Clone, Debug)]
pub struct Player {
    rate: Bandwidth,
    first_frame: ByteCount,
    rebuffer: ByteCount,
    received: u64,
    started: Option<Instant>,
    state: State,
    pauses: Vec<Duration>,
}

impl Player {
    /// A player of a stream of `rate` that starts with `first_frame` bytes and continues after a
    /// pause with `rebuffer` bytes (at least one).
    pub fn new(rate: Bandwidth, first_frame: ByteCount, rebuffer: ByteCount) -> Self {
        Self {
            rate,
            first_frame,
            rebuffer: rebuffer.max(ByteCount::new(1)),
            received: 0,
            started: None,
            state: State::Filling,
            pauses: Vec::new(),
        }
    }

    /// Updates the model: by `now`, not before the previous call, `received` bytes have arrived in
    /// total.
    pub fn receive(&mut self, now: Instant, received: u64) {
        self.state = self.state_at(now);
        self.received = received.max(self.received);
        match self.state {
            State::Filling if self.received >= self.first_frame.get() => {
                self.started = Some(now);
                self.state = State::Playing {
                    since: now,
                    played: 0,
                };
            }
            State::Paused { since, played } if self.received - played >= self.rebuffer.get() => {
                self.pauses.push(now - since);
                self.state = State::Playing { since: now, played };
            }
            _ => {}
        }
    }

    /// Results by `now` for a request at `start`, not before the last [`Player::receive`].
    pub fn viewing(&self, start: Instant, now: Instant) -> Viewing {
        let mut pauses = self.pauses.clone();
        if let State::Paused { since, .. } = self.state_at(now) {
            pauses.push(now.saturating_since(since));
        }
        let viewed = self.started.map(|started| now.saturating_since(started));
        Viewing {
            start,
            started: self.started,
            pauses,
            viewed: viewed.unwrap_or_default(),
        }
    }

    /// The state at `now` if no more data have arrived: the buffer may be empty.
    fn state_at(&self, now: Instant) -> State {
        if let State::Playing { since, played } = self.state {
            let dry = since + self.rate.time_to_send(self.received - played);
            if dry < now {
                return State::Paused {
                    since: dry,
                    played: self.received,
                };
            }
        }
        self.state
    }
}
