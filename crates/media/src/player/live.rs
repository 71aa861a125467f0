//! Live streaming: a player with a play-out buffer.

use std::time::Duration;

use swiftwater_units::Instant;

use super::freezes::Freezes;
use crate::frame::Frame;

/// How long the first frame is shown, as long as there is no second one: 25 frames per second.
const ASSUMED_INTERVAL: Duration = Duration::from_millis(40);

/// When a player starts and goes on.
///
/// Buffered play time is the time from the frame to be shown next to the newest one, by their times
/// in the stream: how much later than now frames may come without a freeze. How long the newest one
/// itself is shown isn't counted, since its successor's time isn't known yet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LiveConfig {
    /// Play time to be buffered before the first frame is shown; zero starts with the first frame.
    /// Default 500 ms.
    pub start_buffer: Duration,
    /// Play time to be buffered before play goes on after a freeze; zero goes on with the next frame.
    /// Default 500 ms.
    pub rebuffer: Duration,
}

impl Default for LiveConfig {
    /// Half a second of each: a low-latency live player, a choice of ours. It rides out a loss and
    /// the loss of its first retransmission (two detection times of about 1.6 RTT) up to round-trip
    /// times of about 150 ms, so that freezes tell of repeated losses, and of nothing milder.
    fn default() -> Self {
        Self {
            start_buffer: Duration::from_millis(500),
            rebuffer: Duration::from_millis(500),
        }
    }
}

/// What a player is doing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PlayerState {
    /// Nothing has been shown yet.
    Starting,
    /// Frames are shown.
    Playing,
    /// The picture stands still.
    Frozen,
    /// The stream is over, and all of it was shown.
    Finished,
}

/// What a viewer saw.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LiveReport {
    /// From asking for the stream to the first frame shown; `None` if there is none yet.
    pub start_time: Option<Duration>,
    /// Freezes, also one that hasn't ended. The wait for the first frame is none.
    pub freezes: Freezes,
    /// Play time shown.
    pub played: Duration,
    /// Time since the first frame was shown, freezes included, up to the end of the stream.
    pub watched: Duration,
    /// How far behind the encoder the picture is (in a freeze, it falls back further); `None` before
    /// the first frame.
    pub latency: Option<Duration>,
    /// The same on average over the play time shown; `None` if there is none.
    pub mean_latency: Option<Duration>,
}

impl LiveReport {
    /// Freezes per 100 s watched.
    pub fn freezes_per_100_s(&self) -> f64 {
        self.freezes.per_100_s(self.watched)
    }

    /// Time frozen per 100 s watched.
    pub fn frozen_per_100_s(&self) -> Duration {
        Duration::from_secs_f64(100.0 * self.frozen_share())
    }

    /// Time frozen over time watched, 0 to 1.
    pub fn frozen_share(&self) -> f64 {
        self.freezes.share(self.watched)
    }
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Nothing shown; the time of the first frame, if it's here.
    Starting { first: Option<Duration> },
    /// The frame with the time `from` was shown at `since`, later ones in their time.
    Playing { since: Instant, from: Duration },
    /// Since then the frame with the time `at` is missing, or the buffer is not filled again.
    Frozen { since: Instant, at: Duration },
}

/// A player that shows every frame of a stream, each in its time, and has no way to catch up.
///
/// It is told of frames when they are complete and all before them were (a reliable stream in order).
/// The picture freezes when the next frame isn't there in its time; what follows then plays later by
/// as much as the freeze took. Before the missing frame comes, its time is taken to be as far from
/// the last one's as that was from its predecessor's; when it comes, its own time counts.
#[derive(Clone, Debug)]
pub struct LivePlayer {
    config: LiveConfig,
    asked: Instant,
    epoch: Instant,
    state: State,
    newest: Option<Frame>,
    /// Between the last two frames, or assumed.
    interval: Duration,
    ended: bool,
    started: Option<Instant>,
    freezes: Freezes,
    played: Duration,
    /// Latency in seconds times play time in seconds, of what is in `played`.
    latency: f64,
}

impl LivePlayer {
    /// A player whose viewer asked for the stream at `asked`. The stream's own time began (its frames
    /// count from) at `epoch`.
    pub fn new(config: LiveConfig, asked: Instant, epoch: Instant) -> Self {
        Self {
            config,
            asked,
            epoch,
            state: State::Starting { first: None },
            newest: None,
            interval: ASSUMED_INTERVAL,
            ended: false,
            started: None,
            freezes: Freezes::default(),
            played: Duration::ZERO,
            latency: 0.0,
        }
    }

    /// At `now`, no earlier than before, a frame is there and so are all that it needs. A frame that
    /// is not after the newest one is ignored; one may be missing in between, whose predecessor is
    /// then shown for longer.
    pub fn on_frame(&mut self, now: Instant, frame: &Frame) {
        if let Some(newest) = &self.newest {
            if frame.index <= newest.index || frame.at < newest.at {
                return;
            }
            self.interval = frame.at.saturating_sub(newest.at);
        }
        self.newest = Some(*frame);
        if let State::Playing { since, from } = self.state {
            let due = since + frame.at.saturating_sub(from);
            if due < now {
                self.count_played(since, from, frame.at);
                self.state = State::Frozen {
                    since: due,
                    at: frame.at,
                };
            }
        }
        self.play_if_filled(now, frame.at);
    }

    /// At `now`, the stream is over: no frame is missing any more. What is in the buffer is played; a
    /// picture that stood still for want of a frame that was never to come is no freeze.
    pub fn on_end(&mut self, now: Instant) {
        self.ended = true;
        if let Some(newest) = self.newest {
            self.play_if_filled(now, newest.at);
        }
    }

    /// What the player is doing at `now`, no earlier than it was told anything.
    pub fn state(&self, now: Instant) -> PlayerState {
        match self.state {
            State::Starting { .. } => PlayerState::Starting,
            State::Frozen { .. } => PlayerState::Frozen,
            State::Playing { since, from } => match (now > self.dry(since, from), self.ended) {
                (false, _) => PlayerState::Playing,
                (true, false) => PlayerState::Frozen,
                (true, true) => PlayerState::Finished,
            },
        }
    }

    /// When the picture freezes (or the stream is over) if no further frame comes; `None` unless it
    /// is playing.
    pub fn dry_at(&self) -> Option<Instant> {
        match self.state {
            State::Playing { since, from } => Some(self.dry(since, from)),
            _ => None,
        }
    }

    /// Play time in the buffer at `now`: what a sender may be told so that it knows how urgent its
    /// data is.
    pub fn buffered(&self, now: Instant) -> Duration {
        let Some(newest) = self.newest else {
            return Duration::ZERO;
        };
        match self.state {
            State::Starting { first } => newest.at.saturating_sub(first.unwrap_or(newest.at)),
            State::Playing { since, from } => {
                (since + newest.at.saturating_sub(from)).saturating_since(now)
            }
            State::Frozen { at, .. } => newest.at.saturating_sub(at),
        }
    }

    /// What the viewer has seen by `now`, no earlier than the player was told anything.
    pub fn report(&self, now: Instant) -> LiveReport {
        let mut seen = self.clone();
        seen.freeze_by(now);
        let mut end = now;
        let mut latency = None;
        match seen.state {
            State::Starting { .. } => {}
            State::Playing { since, from } => {
                end = now.min(seen.dry(since, from));
                seen.count_played(since, from, from + end.saturating_since(since));
                latency = Some(seen.latency_of(since, from));
            }
            State::Frozen { since, at } => {
                seen.freezes.add(now.saturating_since(since));
                latency = Some(seen.latency_of(now, at));
            }
        }
        let watched = self.started.map(|started| end.saturating_since(started));
        let played = seen.played.as_secs_f64();
        LiveReport {
            start_time: self.started.map(|started| started - self.asked),
            freezes: seen.freezes,
            played: seen.played,
            watched: watched.unwrap_or_default(),
            latency,
            mean_latency: (played > 0.0).then(|| Duration::from_secs_f64(seen.latency / played)),
        }
    }

    /// Starts, or goes on after a freeze, if there is enough up to the frame with the time `newest`.
    fn play_if_filled(&mut self, now: Instant, newest: Duration) {
        let (from, wanted) = match self.state {
            State::Starting { first } => (first.unwrap_or(newest), self.config.start_buffer),
            State::Frozen { at, .. } => (at, self.config.rebuffer),
            State::Playing { .. } => return,
        };
        if newest.saturating_sub(from) >= wanted || self.ended {
            if let State::Frozen { since, .. } = self.state {
                self.freezes.add(now.saturating_since(since));
            }
            self.started.get_or_insert(now);
            self.state = State::Playing { since: now, from };
        } else if let State::Starting { first } = &mut self.state {
            *first = Some(from);
        }
    }

    /// Freezes if the buffer is dry at `now` and the stream goes on.
    fn freeze_by(&mut self, now: Instant) {
        if let State::Playing { since, from } = self.state {
            let dry = self.dry(since, from);
            if now > dry && !self.ended {
                let at = from + (dry - since);
                self.count_played(since, from, at);
                self.state = State::Frozen { since: dry, at };
            }
        }
    }

    /// When all that is here has been shown.
    fn dry(&self, since: Instant, from: Duration) -> Instant {
        let newest = self.newest.map_or(from, |newest| newest.at);
        since + newest.saturating_sub(from) + self.interval
    }

    /// How far behind the encoder it is to show the frame with the time `at` at `shown`.
    fn latency_of(&self, shown: Instant, at: Duration) -> Duration {
        shown.saturating_since(self.epoch + at)
    }

    /// Counts the play time from `from` to `to` as shown, beginning at `since`.
    fn count_played(&mut self, since: Instant, from: Duration, to: Duration) {
        let played = to.saturating_sub(from);
        self.played += played;
        self.latency += self.latency_of(since, from).as_secs_f64() * played.as_secs_f64();
    }
}
