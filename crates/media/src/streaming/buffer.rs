//! The play-out buffer of a player that downloads ahead.

use std::collections::VecDeque;
use std::time::Duration;

use swiftwater_units::Instant;

use crate::player::{Freezes, PlayerState};

/// Thresholds of a play-out buffer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BufferConfig {
    /// Buffered play time from which on nothing is requested; zero: there is room only while nothing
    /// is buffered. Default 30 s.
    pub maximum: Duration,
    /// Buffered play time at which playback starts; zero starts with whatever arrives first. Values
    /// above `maximum` mean `maximum`. Default zero.
    pub start: Duration,
    /// Buffered play time at which playback continues after a stall, as `start`. Default zero.
    pub resume: Duration,
}

impl Default for BufferConfig {
    /// The virtual player of Chorus' evaluation (MobiCom 2024): requests below 30 s, no thresholds.
    fn default() -> Self {
        Self {
            maximum: Duration::from_secs(30),
            start: Duration::ZERO,
            resume: Duration::ZERO,
        }
    }
}

/// Playback results of a buffer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PlaybackReport {
    /// From the viewer's request to the first picture; `None` if there is none yet.
    pub start_time: Option<Duration>,
    /// Stalls, including one in progress. The start-up delay is not a stall.
    pub stalls: Freezes,
    /// Play time that arrived.
    pub arrived: Duration,
    /// Play time that was played; `arrived` less this is buffered.
    pub played: Duration,
}

/// Part of the video in the buffer.
#[derive(Clone, Copy, Debug)]
struct Content {
    duration: Duration,
    bytes: u64,
}

/// Buffered play time that drains in real time while playback runs.
///
/// Play time is added as it arrives, in order and complete. Playback stalls when the buffer is
/// empty before the video has ended, and continues when enough has arrived. All times passed are
/// non-decreasing; an earlier one counts as the latest.
#[derive(Clone, Debug)]
pub struct PlayBuffer {
    config: BufferConfig,
    asked: Instant,
    updated: Instant,
    state: PlayerState,
    /// Since when playback is stalled, in the state `Frozen`.
    stalled_since: Instant,
    content: VecDeque<Content>,
    /// Played part of the first content.
    front_played: Duration,
    buffered: Duration,
    arrived: Duration,
    bytes_arrived: u64,
    bytes_left: u64,
    ended: bool,
    started: Option<Instant>,
    stalls: Freezes,
    changes: VecDeque<(Instant, PlayerState)>,
}

impl PlayBuffer {
    /// An empty buffer, of a viewer who requested the video at `asked`.
    pub fn new(config: BufferConfig, asked: Instant) -> Self {
        let maximum = config.maximum.max(Duration::from_nanos(1));
        Self {
            config: BufferConfig { maximum, ..config },
            asked,
            updated: asked,
            state: PlayerState::Starting,
            stalled_since: asked,
            content: VecDeque::new(),
            front_played: Duration::ZERO,
            buffered: Duration::ZERO,
            arrived: Duration::ZERO,
            bytes_arrived: 0,
            bytes_left: 0,
            ended: false,
            started: None,
            stalls: Freezes::default(),
            changes: VecDeque::new(),
        }
    }

    /// Plays until `now`.
    pub fn advance(&mut self, now: Instant) {
        let now = now.max(self.updated);
        let elapsed = now.saturating_since(self.updated);
        if self.state == PlayerState::Playing {
            let empty_at = self.updated + self.buffered;
            if elapsed > self.buffered && !self.ended {
                self.play(self.buffered);
                self.stalled_since = empty_at;
                self.change(empty_at, PlayerState::Frozen);
            } else {
                self.play(elapsed.min(self.buffered));
                self.finish_if_over(empty_at.min(now));
            }
        }
        self.updated = now;
    }

    /// The next `duration` of the video, of `bytes`, is complete at `now`. Nothing is added after the
    /// end.
    pub fn add(&mut self, now: Instant, duration: Duration, bytes: u64) {
        self.advance(now);
        if self.ended {
            return;
        }
        self.content.push_back(Content { duration, bytes });
        self.buffered = self.buffered.saturating_add(duration);
        self.arrived = self.arrived.saturating_add(duration);
        self.bytes_arrived = self.bytes_arrived.saturating_add(bytes);
        self.bytes_left = self.bytes_left.saturating_add(bytes);
        self.play_if_filled();
    }

    /// The video has ended at `now`: nothing is missing any more. What is buffered is played.
    pub fn end(&mut self, now: Instant) {
        self.advance(now);
        self.ended = true;
        self.play_if_filled();
        self.finish_if_over(self.updated);
    }

    /// The state at the last update.
    pub const fn state(&self) -> PlayerState {
        self.state
    }

    /// Buffered play time at the last update.
    pub const fn buffered(&self) -> Duration {
        self.buffered
    }

    /// Bytes buffered and not yet played at the last update: of the content that is being played
    /// the part that its play time is to be played, rounded up.
    pub fn buffered_bytes(&self) -> u64 {
        let Some(front) = self.content.front() else {
            return 0;
        };
        let played = front.bytes as f64 * self.front_played.as_secs_f64();
        // The content's duration isn't zero, or it wouldn't be kept in front.
        let played = played / front.duration.as_secs_f64().max(1e-9);
        self.bytes_left
            .saturating_sub((played as u64).min(front.bytes))
    }

    /// Play time that was played by the last update.
    pub fn played(&self) -> Duration {
        self.arrived.saturating_sub(self.buffered)
    }

    /// Bytes that arrived.
    pub const fn bytes_arrived(&self) -> u64 {
        self.bytes_arrived
    }

    /// Whether something may be requested: less than the maximum is buffered, and the video has not
    /// ended.
    pub fn has_room(&self) -> bool {
        !self.ended && self.buffered < self.config.maximum
    }

    /// When less than the maximum will be buffered, if nothing arrives: the last update if that is so
    /// already; `None` if playback doesn't run.
    pub fn room_at(&self) -> Option<Instant> {
        if self.has_room() {
            return Some(self.updated);
        }
        let excess = self.buffered.saturating_sub(self.config.maximum) + Duration::from_nanos(1);
        (self.state == PlayerState::Playing).then(|| self.updated + excess)
    }

    /// When `played` of the video will have been played, if that is buffered and playback runs.
    pub fn played_at(&self, played: Duration) -> Option<Instant> {
        let ahead = played.saturating_sub(self.played());
        let runs = self.state == PlayerState::Playing && ahead <= self.buffered;
        runs.then(|| self.updated + ahead)
    }

    /// When the state will change if nothing arrives: a stall begins just after the buffer is empty,
    /// the video is over when it is.
    pub fn next_change(&self) -> Option<Instant> {
        let beyond = Duration::from_nanos(u64::from(!self.ended));
        let runs = self.state == PlayerState::Playing;
        runs.then(|| self.updated + self.buffered + beyond)
    }

    /// Since when the viewer sees no picture, or a still one; `None` in the other states.
    pub fn waiting_since(&self) -> Option<Instant> {
        match self.state {
            PlayerState::Starting => Some(self.asked),
            PlayerState::Frozen => Some(self.stalled_since),
            PlayerState::Playing | PlayerState::Finished => None,
        }
    }

    /// The next change of state that wasn't returned yet, with its time.
    pub fn poll_change(&mut self) -> Option<(Instant, PlayerState)> {
        self.changes.pop_front()
    }

    /// Results by the last update.
    pub fn report(&self) -> PlaybackReport {
        let mut stalls = self.stalls;
        if self.state == PlayerState::Frozen {
            stalls.add(self.updated.saturating_since(self.stalled_since));
        }
        PlaybackReport {
            start_time: self.started.map(|at| at.saturating_since(self.asked)),
            stalls,
            arrived: self.arrived,
            played: self.played(),
        }
    }

    fn play(&mut self, duration: Duration) {
        self.buffered = self.buffered.saturating_sub(duration);
        self.front_played += duration;
        while let Some(front) = self.content.front() {
            let Some(rest) = self.front_played.checked_sub(front.duration) else {
                break;
            };
            self.front_played = rest;
            self.bytes_left = self.bytes_left.saturating_sub(front.bytes);
            self.content.pop_front();
        }
    }

    fn play_if_filled(&mut self) {
        let threshold = match self.state {
            PlayerState::Starting => self.config.start,
            PlayerState::Frozen => self.config.resume,
            PlayerState::Playing | PlayerState::Finished => return,
        };
        let filled = self.buffered >= threshold.min(self.config.maximum);
        if self.buffered.is_zero() || !(filled || self.ended) {
            return;
        }
        if self.state == PlayerState::Frozen {
            let length = self.updated.saturating_since(self.stalled_since);
            self.stalls.add(length);
        }
        self.started.get_or_insert(self.updated);
        self.change(self.updated, PlayerState::Playing);
    }

    fn finish_if_over(&mut self, at: Instant) {
        if self.ended && self.buffered.is_zero() && self.state != PlayerState::Finished {
            if self.state == PlayerState::Frozen {
                // Only the end was missing, and no picture.
                self.state = PlayerState::Playing;
            }
            self.change(at, PlayerState::Finished);
        }
    }

    fn change(&mut self, at: Instant, state: PlayerState) {
        self.state = state;
        self.changes.push_back((at, state));
    }
}
