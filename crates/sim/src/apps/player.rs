//! A player as a water tank: it starts when it holds enough, drains at the stream's rate, and stands
//! still when it is dry until it holds enough again.
//!
//! The model is that of the article "XQUIC" on live streaming: the server pours, the player drains;
//! what the viewer notices is the time until the first frame and the pauses.

use std::time::Duration;

use swiftwater_units::{Bandwidth, ByteCount, Instant};

/// What a viewer saw.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Viewing {
    /// When the viewer asked: the start of the handshake.
    pub start: Instant,
    /// When the player started; `None` if it hasn't.
    pub started: Option<Instant>,
    /// Pauses of any length, in order, also one that hasn't ended.
    pub pauses: Vec<Duration>,
    /// Time since the player started, pauses included.
    pub viewed: Duration,
}

impl Viewing {
    /// How long the viewer waited for the first frame.
    pub fn start_time(&self) -> Option<Duration> {
        Some(self.started? - self.start)
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// Not started.
    Filling,
    /// Since then, when so many bytes had been played.
    Playing { since: Instant, played: u64 },
    /// Dry since then, when so many bytes had been played.
    Paused { since: Instant, played: u64 },
}

/// The tank.
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
    /// A player of a stream of `rate` that starts with `first_frame` bytes and goes on after a pause
    /// with `rebuffer` bytes (at least one).
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

    /// By `now`, no earlier than before, `received` bytes have come altogether.
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

    /// What a viewer who asked at `start` has seen by `now`, no earlier than the last
    /// [`Player::receive`].
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

    /// The state at `now` if nothing more has come: the tank may have run dry.
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
