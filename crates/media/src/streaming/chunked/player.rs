//! The player: one request at a time, and decisions before each.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use swiftwater_quic::policy::PlayerSignal;
use swiftwater_units::{Bandwidth, ByteCount, Instant, PathId};

use super::abandonment::{Progress, Replacement, UnderWay};
use super::config::ChunkedConfig;
use super::record::{ChunkRecord, ChunkedReport, PredictionErrors};
use crate::player::PlayerState;
use crate::streaming::adaptation::{Adaptation, Situation};
use crate::streaming::buffer::PlayBuffer;
use crate::streaming::predictor::{ChunkDelivery, PathBytes, ServerReport, ThroughputPredictor};
use crate::streaming::qoe::Qoe;
use crate::streaming::video::{Chunk, ChunkedVideo};

/// A request for a chunk, to be sent now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ChunkRequest {
    /// Number of chunks before it in the session.
    pub index: u64,
    /// Its position in the video, which may be played in a loop.
    pub chunk: usize,
    /// The level.
    pub level: usize,
    /// Its size in bytes by the video's table.
    pub bytes: u64,
    /// Predicted throughput, if there is a prediction.
    pub predicted: Option<Bandwidth>,
    /// Time in which the chunk is expected by that prediction: what Chorus' client reports to the
    /// server.
    pub expected: Option<Duration>,
}

/// What happened in a player.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ChunkedEvent {
    /// The first picture is shown.
    FirstFrame,
    /// Playback stalls.
    Stalled,
    /// Playback continues after a stall.
    Resumed,
    /// A chunk is requested at another level than the one before.
    Switched {
        /// Level before.
        from: usize,
        /// Level now.
        to: usize,
    },
    /// The buffer is full: nothing is requested for a while.
    Paused,
    /// A request was given up for one at a lower level.
    Abandoned {
        /// Its level.
        from: usize,
        /// Level of the next request.
        to: usize,
    },
    /// A request failed.
    Failed,
    /// The video was played to its end, or the viewer left.
    Finished,
}

/// A request under way.
#[derive(Clone, Debug)]
struct Pending {
    request: ChunkRequest,
    requested: Instant,
    paths: BTreeMap<PathId, u64>,
    progress: Progress,
}

/// Plays a chunked video: asks for chunks one after the other as the buffer has room, at the levels
/// that an [`Adaptation`] chooses with the predictions of a [`ThroughputPredictor`].
///
/// The driver passes what happens with its time, which must not decrease, and after each call
/// - cancels the request of [`poll_abandoned`](Self::poll_abandoned), if there is one,
/// - sends the request of [`poll_request`](Self::poll_request), if there is one,
/// - and calls [`on_timer`](Self::on_timer) at [`next_timer`](Self::next_timer), or later.
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use swiftwater_media::streaming::adaptation::AdaptationKind;
/// use swiftwater_media::streaming::predictor::PredictorKind;
/// use swiftwater_media::streaming::{ChunkedConfig, ChunkedPlayer, ChunkedVideo, Ladder};
/// use swiftwater_units::{Bandwidth, Instant, PathId};
///
/// // Three chunks of 4 s, over a link of 10 Mbit/s.
/// let video = ChunkedVideo::constant(Ladder::chorus(), Duration::from_secs(4), 3)?;
/// let (adaptation, predictor) = (AdaptationKind::Rate.build(), PredictorKind::default().build());
/// let config = ChunkedConfig::default();
/// let mut now = Instant::ZERO;
/// let mut player = ChunkedPlayer::new(config, Arc::new(video), adaptation, predictor, now);
/// let mut levels = Vec::new();
/// while !player.is_finished() {
///     while let Some(request) = player.poll_request(now) {
///         levels.push(request.level);
///         now += Bandwidth::from_mbps(10).time_to_send(request.bytes);
///         player.on_data(now, PathId::ZERO, request.bytes);
///         player.on_complete(now);
///     }
///     now = player.next_timer().unwrap_or(now);
///     player.on_timer(now);
/// }
/// assert_eq!(levels, [0, 3, 3]);
/// assert_eq!(player.report().playback.played, Duration::from_secs(12));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ChunkedPlayer {
    config: ChunkedConfig,
    video: Arc<ChunkedVideo>,
    adaptation: Box<dyn Adaptation>,
    predictor: Box<dyn ThroughputPredictor>,
    started: Instant,
    buffer: PlayBuffer,
    /// Chunks complete: also the index of the next one.
    complete: u64,
    pending: Option<Pending>,
    /// Chunk whose request was given up, until the driver was told, and what to request instead.
    abandoned: Option<u64>,
    replacement: Option<Replacement>,
    /// Not to request before: the buffer was full, or a request failed.
    not_before: Option<Instant>,
    paused: bool,
    finished: bool,
    /// Stalls by the end of the last chunk.
    stalled: Duration,
    records: Vec<ChunkRecord>,
    failures: u64,
    events: VecDeque<(Instant, ChunkedEvent)>,
}

impl ChunkedPlayer {
    /// A player whose viewer requests `video` at `now`.
    pub fn new(
        config: ChunkedConfig,
        video: Arc<ChunkedVideo>,
        adaptation: Box<dyn Adaptation>,
        predictor: Box<dyn ThroughputPredictor>,
        now: Instant,
    ) -> Self {
        Self {
            config,
            video,
            adaptation,
            predictor,
            started: now,
            buffer: PlayBuffer::new(config.buffer, now),
            complete: 0,
            pending: None,
            abandoned: None,
            replacement: None,
            not_before: None,
            paused: false,
            finished: false,
            stalled: Duration::ZERO,
            records: Vec::new(),
            failures: 0,
            events: VecDeque::new(),
        }
    }

    /// The request to send at `now`; `None` while one is under way, the buffer is full, or there is
    /// nothing left to request.
    pub fn poll_request(&mut self, now: Instant) -> Option<ChunkRequest> {
        self.on_timer(now);
        let waits = self.not_before.is_some_and(|time| now < time);
        if self.finished || self.pending.is_some() || waits || !self.has_more() {
            return None;
        }
        let replacement = self.replacement.take();
        if replacement.is_none() && !self.buffer.has_room() {
            self.pause(now);
            return None;
        }
        self.paused = false;
        self.not_before = None;
        let request = match replacement {
            Some(replacement) => self.replace(replacement),
            None => self.decide(now),
        };
        self.pending = Some(Pending {
            request,
            requested: now,
            paths: BTreeMap::new(),
            progress: Progress::new(now),
        });
        let previous = self.records.last().map(|record| record.level);
        if let Some(from) = previous.filter(|level| *level != request.level) {
            let to = request.level;
            self.events
                .push_back((now, ChunkedEvent::Switched { from, to }));
        }
        Some(request)
    }

    /// The next `bytes` of the chunk under way arrived, on whichever path. Only requests whose progress is known are given
    /// up ([`ChunkedConfig::abandon`]). Ignored without a request.
    pub fn on_progress(&mut self, now: Instant, bytes: u64) {
        if let Some(pending) = self.pending.as_mut().filter(|_| self.config.abandon) {
            pending.progress.add(now, bytes);
        }
        self.on_timer(now);
    }

    /// The chunk whose request has been given up, to be cancelled; another request for it follows.
    pub fn poll_abandoned(&mut self) -> Option<u64> {
        self.abandoned.take()
    }

    /// `bytes` of the chunk under way arrived on `path`. Ignored without a request.
    pub fn on_data(&mut self, now: Instant, path: PathId, bytes: u64) {
        self.on_timer(now);
        if let Some(pending) = &mut self.pending {
            let received = pending.paths.entry(path).or_default();
            *received = received.saturating_add(bytes);
        }
    }

    /// All bytes of the chunk under way have arrived and been passed; without any, the request failed.
    /// Ignored without a request.
    pub fn on_complete(&mut self, now: Instant) {
        self.on_timer(now);
        let empty = |pending: &Pending| pending.paths.values().all(|bytes| *bytes == 0);
        if self.pending.as_ref().is_none_or(empty) {
            return self.on_failure(now);
        }
        let Some(pending) = self.pending.take() else {
            return;
        };
        let delivery = ChunkDelivery {
            took: now.saturating_since(pending.requested),
            paths: pending
                .paths
                .iter()
                .map(|(path, bytes)| PathBytes {
                    path: *path,
                    bytes: *bytes,
                })
                .collect(),
        };
        self.predictor.on_chunk(&delivery);
        let duration = self.video.looped(self.complete).duration;
        self.buffer.add(now, duration, delivery.bytes());
        self.complete += 1;
        if !self.has_more() {
            self.buffer.end(now);
        }
        self.record(&pending, &delivery);
        self.report_changes();
    }

    /// The request under way failed: the chunk will be requested again, after the configured wait.
    /// Ignored without a request.
    pub fn on_failure(&mut self, now: Instant) {
        self.on_timer(now);
        if self.pending.take().is_some() {
            self.failures += 1;
            self.not_before = Some(now + self.config.retry_after);
            self.events.push_back((now, ChunkedEvent::Failed));
        }
    }

    /// A report of the server arrived.
    pub fn on_server_report(&mut self, report: &ServerReport) {
        self.predictor.on_report(report);
    }

    /// Time has advanced to `now`.
    pub fn on_timer(&mut self, now: Instant) {
        if self.finished {
            return;
        }
        let end = self.session_end();
        self.buffer.advance(end.map_or(now, |end| end.min(now)));
        self.report_changes();
        if self.config.abandon {
            self.check_progress(now);
        }
        if let Some(end) = end.filter(|end| *end <= now && !self.finished) {
            self.finish(end);
        }
    }

    /// When [`on_timer`](Self::on_timer) is next due; `None` if only the network can change anything.
    pub fn next_timer(&self) -> Option<Instant> {
        if self.finished {
            return None;
        }
        let request = self.not_before.filter(|_| self.pending.is_none());
        let pending = self.pending.as_ref().filter(|_| self.config.abandon);
        let check = pending.map(|pending| pending.progress.check_at());
        let times = [
            request,
            check,
            self.buffer.next_change(),
            self.session_end(),
        ];
        times.into_iter().flatten().min()
    }

    /// The next event that wasn't returned yet, with its time.
    pub fn poll_event(&mut self) -> Option<(Instant, ChunkedEvent)> {
        self.events.pop_front()
    }

    /// Whether a request is under way.
    pub const fn has_request(&self) -> bool {
        self.pending.is_some()
    }

    /// Whether the video was played to its end, or the viewer left. A request under way is then to be
    /// cancelled.
    pub const fn is_finished(&self) -> bool {
        self.finished
    }

    /// The buffer, at the last update.
    pub const fn buffer(&self) -> &PlayBuffer {
        &self.buffer
    }

    /// The chunks downloaded, in order.
    pub fn records(&self) -> &[ChunkRecord] {
        &self.records
    }

    /// Play time that is buffered, by the last update.
    pub fn buffered(&self) -> Duration {
        self.buffer.buffered()
    }

    /// The state to report to the sender, at the last update. The bitrate is the mean of what is
    /// buffered; that of the last chunk if nothing is.
    pub fn signal(&self) -> PlayerSignal {
        let buffered = self.buffer.buffered();
        let bytes = self.buffer.buffered_bytes();
        let last = self.records.last().map(|record| record.rate);
        let bitrate = if buffered.is_zero() {
            last.unwrap_or_else(|| self.video.ladder().rate(0))
        } else {
            Bandwidth::from_transfer(bytes, buffered)
        };
        PlayerSignal {
            stream: None,
            cached_bytes: ByteCount::new(bytes),
            cached_frames: (buffered.as_secs_f64() * self.config.fps) as u64,
            bitrate,
            fps: self.config.fps,
            stalled: self.buffer.waiting_since().is_some(),
        }
    }

    /// Results by the last update.
    pub fn report(&self) -> ChunkedReport {
        let playback = self.buffer.report();
        let rates = self.records.iter().map(|record| record.rate);
        let qoe = Qoe::of(rates, playback.stalls.total);
        let changed = |pair: &&[ChunkRecord]| pair[0].level != pair[1].level;
        ChunkedReport {
            playback,
            qoe,
            score: qoe.score(&self.config.weights),
            chunks: self.records.len() as u64,
            switches: self.records.windows(2).filter(changed).count() as u64,
            failures: self.failures,
            bytes: self.buffer.bytes_arrived(),
            prediction: PredictionErrors::of(&self.records),
        }
    }

    fn has_more(&self) -> bool {
        self.config.looped || self.complete < self.video.chunks().len() as u64
    }

    fn session_end(&self) -> Option<Instant> {
        self.config.session.map(|session| self.started + session)
    }

    /// Gives the request under way up if it would be answered too late.
    fn check_progress(&mut self, now: Instant) {
        let Some(pending) = &mut self.pending else {
            return;
        };
        let level = pending.request.level;
        let under_way = UnderWay {
            ladder: self.video.ladder(),
            chunk: self.video.looped(pending.request.index),
            level,
            previous: self.records.last().map(|record| record.level),
            buffered: self.buffer.buffered(),
            weights: self.config.weights,
        };
        let replacement = pending.progress.check(now, &under_way);
        if let Some(replacement) = replacement {
            self.abandoned = Some(pending.request.index);
            self.pending = None;
            self.replacement = Some(replacement);
            let (from, to) = (level, replacement.level);
            self.events
                .push_back((now, ChunkedEvent::Abandoned { from, to }));
        }
    }

    /// The request that takes the place of one that was given up, predicted by the rate at which that was answered.
    fn replace(&self, Replacement { level, rate }: Replacement) -> ChunkRequest {
        let bytes = self.video.looped(self.complete).bytes_at(level);
        let predicted = Some(rate).filter(|rate| !rate.is_zero());
        ChunkRequest {
            index: self.complete,
            chunk: (self.complete % self.video.chunks().len() as u64) as usize,
            level,
            bytes,
            predicted,
            expected: predicted.map(|rate| rate.time_to_send(bytes)),
        }
    }

    /// Decides on the next chunk.
    fn decide(&mut self, now: Instant) -> ChunkRequest {
        let count = self.video.chunks().len() as u64;
        let wanted = self.adaptation.lookahead().max(1) as u64;
        let left = if self.config.looped {
            wanted
        } else {
            wanted.min(count - self.complete)
        };
        let indices = self.complete..self.complete + left;
        let upcoming: Vec<&Chunk> = indices.map(|index| self.video.looped(index)).collect();
        let predicted = self.predictor.predict(now);
        let situation = Situation {
            ladder: self.video.ladder(),
            upcoming: &upcoming,
            previous: self.records.last().map(|record| record.level),
            buffered: self.buffer.buffered(),
            maximum: self.config.buffer.maximum,
            predicted,
        };
        let level = self.adaptation.choose(&situation);
        let level = level.min(self.video.ladder().top());
        let bytes = upcoming[0].bytes_at(level);
        let known = predicted.filter(|rate| !rate.is_zero());
        ChunkRequest {
            index: self.complete,
            chunk: (self.complete % count) as usize,
            level,
            bytes,
            predicted,
            expected: known.map(|rate| rate.time_to_send(bytes)),
        }
    }

    /// Waits until there is room, at a multiple of the check interval.
    fn pause(&mut self, now: Instant) {
        let room = self.buffer.room_at().unwrap_or(now);
        let interval = self.config.check_interval.as_nanos();
        let since = room.saturating_since(self.started);
        let checks = since.as_nanos().checked_div(interval);
        // Rounded up to a check that is after now.
        let next = checks.map(|_| since.as_nanos().div_ceil(interval).saturating_mul(interval));
        let next = next.map_or(room, |nanos| {
            let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
            self.started + Duration::from_nanos(nanos)
        });
        self.not_before = Some(next);
        if !self.paused {
            self.paused = true;
            self.events.push_back((now, ChunkedEvent::Paused));
        }
    }

    fn record(&mut self, pending: &Pending, delivery: &ChunkDelivery) {
        let stalled = self.buffer.report().stalls.total;
        let level = pending.request.level;
        self.records.push(ChunkRecord {
            index: pending.request.index,
            level,
            rate: self.video.ladder().rate(level),
            bytes: delivery.bytes(),
            requested: pending.requested,
            took: delivery.took,
            predicted: pending.request.predicted,
            stall: stalled.saturating_sub(self.stalled),
            buffered: self.buffer.buffered(),
        });
        self.stalled = stalled;
    }

    /// Turns changes of the buffer into events.
    fn report_changes(&mut self) {
        while let Some((at, state)) = self.buffer.poll_change() {
            let first = self.buffer.report().start_time;
            let event = match state {
                PlayerState::Starting => continue,
                PlayerState::Frozen => ChunkedEvent::Stalled,
                PlayerState::Playing if first.is_some_and(|first| self.started + first == at) => {
                    ChunkedEvent::FirstFrame
                }
                PlayerState::Playing => ChunkedEvent::Resumed,
                PlayerState::Finished => {
                    self.finish(at);
                    continue;
                }
            };
            self.events.push_back((at, event));
        }
    }

    fn finish(&mut self, at: Instant) {
        self.finished = true;
        self.pending = None;
        self.events.push_back((at, ChunkedEvent::Finished));
    }
}
