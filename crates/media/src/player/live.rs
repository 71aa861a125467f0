//! Model of live streaming: a player with a play-out buffer.

use std::time::Duration;

use swiftwater_units::Instant;

use super::freezes::Freezes;
use crate::frame::Frame;

/// Assumed duration of the first frame, until there is a second one: 25 frames per second.
const ASSUMED_INTERVAL: Duration = Duration::from_millis(40);

/// Buffering thresholds of a player.
///
/// Buffered playback time is the time from the frame to be shown next to the newest one, by their
/// times in the stream: the delay that later frames may have without a freeze. The duration of the
/// newest one isn't included, because its successor's time is unknown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LiveConfig {
    /// Playback time to be buffered before the first frame is shown; zero starts with the first
    /// frame. Default 500 ms.
    pub start_buffer: Duration,
    /// Playback time to be buffered before playback continues after a freeze; zero continues with the
    /// next frame. Default 500 ms.
    pub rebuffer: Duration,
}

impl Default for LiveConfig {
    /// Half a second of each: a low-latency live player (a choice of this project). It tolerates a
    /// loss and the loss of its first retransmission (two detection times of about 1.6 RTT) up to
    /// round-trip times of about 150 ms, so that freezes indicate repeated losses only.
    fn default() -> Self {
        Self {
            start_buffer: Duration::from_millis(500),
            rebuffer: Duration::from_millis(500),
        }
    }
}

/// State of a player.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PlayerState {
    /// No frame was shown yet.
    Starting,
    /// Frames are shown.
    Playing,
    /// The picture is frozen.
    Frozen,
    /// The stream has ended and was shown completely.
    Finished,
}

/// Playback results.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LiveReport {
    /// From the request to the first frame shown; `None` if there is none yet.
    pub start_time: Option<Duration>,
    /// Freezes, including one in progress. The start-up delay is not a freeze.
    pub freezes: Freezes,
    /// Playback time shown.
    pub played: Duration,
    /// Time since the first frame was shown, freezes included, up to the end of the stream.
    pub watched: Duration,
    /// Delay of the picture after its encoding (it grows during a freeze); `None` before the first
    /// frame.
    pub latency: Option<Duration>,
    /// Its mean over the playback time shown; `None` if there is none.
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
    /// No frame shown; the time of the first frame, if it was received.
    Starting { first: Option<Duration> },
    /// The frame with the time `from` was shown at `since`, later ones at their times.
    Playing { since: Instant, from: Duration },
    /// Since then the frame with the time `at` is missing, or the buffer is being refilled.
    Frozen { since: Instant, at: Duration },
}

/// A player that shows every frame of a stream for its duration, and can't catch up.
///
/// Frames are passed when they are complete and all earlier ones were (a reliable ordered stream).
/// The picture freezes when the next frame isn't available at its time; later frames are delayed by
/// the duration of the freeze. Before the missing frame arrives, its time is extrapolated from the
/// last two; when it arrives, its own time is used.
#[derive(Clone, Debug)]
pub struct LivePlayer {
    config: LiveConfig,
    asked: Instant,
    epoch: Instant,
    state: State,
    newest: Option<Frame>,
    /// Interval of the last two frames, or assumed.
    interval: Duration,
    ended: bool,
    started: Option<Instant>,
    freezes: Freezes,
    played: Duration,
    /// Integral of latency over playback time of `played`, s².
    latency: f64,
}

impl LivePlayer {
    /// A player whose viewer requested the stream at `asked`. Frame times count from `epoch`.
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

    /// A frame and its reference frames are complete at `now`, not before the previous call. A frame
    /// that is not after the newest one is ignored; a frame in between may be missing, then its
    /// predecessor is shown for longer.
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

    /// The stream ends at `now`: no frame is missing any more. The buffer is played; a picture that
    /// froze for lack of a frame after the end is not a freeze.
    pub fn on_end(&mut self, now: Instant) {
        self.ended = true;
        if let Some(newest) = self.newest {
            self.play_if_filled(now, newest.at);
        }
    }

    /// State at `now`, not before the last update.
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

    /// When the picture freezes (or the stream ends) if no further frame arrives; `None` unless it
    /// is playing.
    pub fn dry_at(&self) -> Option<Instant> {
        match self.state {
            State::Playing { since, from } => Some(self.dry(since, from)),
            _ => None,
        }
    }

    /// Playback time in the buffer at `now`: usable by a sender to determine the urgency of its
    /// data.
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

    /// Results by `now`, not before the last update.
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

    /// Starts, or continues after a freeze, if enough is buffered up to the frame with the time
    /// `newest`.
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

    /// Freezes if the buffer is empty at `now` and the stream continues.
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

    /// When all received frames have been shown.
    fn dry(&self, since: Instant, from: Duration) -> Instant {
        let newest = self.newest.map_or(from, |newest| newest.at);
        since + newest.saturating_sub(from) + self.interval
    }

    /// Delay after encoding of showing the frame with the time `at` at `shown`.
    fn latency_of(&self, shown: Instant, at: Duration) -> Duration {
        shown.saturating_since(self.epoch + at)
    }

    /// Adds the playback time from `from` to `to`, shown from `since` on.
    fn count_played(&mut self, since: Instant, from: Duration, to: Duration) {
        let played = to.saturating_sub(from);
        self.played += played;
        self.latency += self.latency_of(since, from).as_secs_f64() * played.as_secs_f64();
    }
}
