//! The player of a feed of short videos.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use swiftwater_quic::policy::PlayerSignal;
use swiftwater_units::{ByteCount, Instant};

use super::config::ShortVideoConfig;
use super::download::Download;
use super::feed::Viewing;
use super::record::{Departure, RangeRecord, ShortVideoReport, VideoRecord};
use super::video::ShortVideo;
use crate::player::PlayerState;
use crate::streaming::buffer::{BufferConfig, PlayBuffer};

/// Smallest range request, in bytes.
const SMALLEST_REQUEST: u64 = 1024;

/// A request for a range of a video's file, to be sent now. Requests are numbered in order of
/// urgency: one with a lower number before one with a higher.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RangeRequest {
    /// Its number.
    pub id: u64,
    /// Position of the video in the feed.
    pub video: usize,
    /// The range of bytes of the file.
    pub range: Range<u64>,
    /// The part of `range` that belongs to the first frame, if any does.
    pub first_frame: Option<Range<u64>>,
    /// Whether the video isn't being watched yet.
    pub preload: bool,
}

/// What happened in a player.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ShortVideoEvent {
    /// The first picture of this video of the feed is shown.
    FirstFrame(usize),
    /// Playback of this video stalls.
    Stalled(usize),
    /// Playback of this video continues after a stall.
    Resumed(usize),
    /// The viewer left this video.
    Left(usize, Departure),
}

/// Plays a feed of short videos one after the other: each from range requests in parallel, until its
/// end or until the viewer swipes.
///
/// The driver passes what happens with its time, which must not decrease, and after each call
/// - cancels the requests of [`poll_cancel`](Self::poll_cancel),
/// - sends those of [`poll_request`](Self::poll_request), until there is none,
/// - and calls [`on_timer`](Self::on_timer) at [`next_timer`](Self::next_timer), or later.
#[derive(Debug)]
pub struct ShortVideoPlayer {
    config: ShortVideoConfig,
    feed: Vec<Viewing>,
    /// The video being watched; the length of the feed at its end.
    current: usize,
    /// Those of the current video and of the ones to preload.
    downloads: VecDeque<Download>,
    buffer: PlayBuffer,
    /// Frames of the current video that were added to the buffer.
    frames: u64,
    next_id: u64,
    cancels: VecDeque<u64>,
    videos: Vec<VideoRecord>,
    ranges: Vec<RangeRecord>,
    events: VecDeque<(Instant, ShortVideoEvent)>,
}

impl ShortVideoPlayer {
    /// A player whose viewer chooses the first video of `feed` at `now`.
    pub fn new(config: ShortVideoConfig, feed: Vec<Viewing>, now: Instant) -> Self {
        let mut player = Self {
            buffer: PlayBuffer::new(buffering(&config), now),
            config,
            feed,
            current: 0,
            downloads: VecDeque::new(),
            frames: 0,
            next_id: 0,
            cancels: VecDeque::new(),
            videos: Vec::new(),
            ranges: Vec::new(),
            events: VecDeque::new(),
        };
        player.open_downloads();
        player
    }

    /// The next request to send at `now`; `None` while enough is requested.
    pub fn poll_request(&mut self, now: Instant) -> Option<RangeRequest> {
        self.on_timer(now);
        let under_way = self.downloads.iter().flat_map(Download::under_way).count();
        if under_way >= self.config.parallel.max(1) {
            return None;
        }
        let position = self
            .downloads
            .iter()
            .enumerate()
            .position(|(ahead, download)| {
                let room = if ahead == 0 {
                    self.has_room(download)
                } else {
                    download.requested() < download.video.first_frame()
                };
                download.has_failed_part() || (room && !download.is_requested())
            })?;
        let most = self.config.request_bytes.max(SMALLEST_REQUEST);
        let download = &mut self.downloads[position];
        let range = download.request(self.next_id, now, most)?;
        let first_end = download.video.first_frame().min(range.end);
        let request = RangeRequest {
            id: self.next_id,
            video: self.current + position,
            first_frame: (range.start < first_end).then_some(range.start..first_end),
            range,
            preload: position > 0,
        };
        self.next_id += 1;
        Some(request)
    }

    /// The next request to cancel, because its video was left.
    pub fn poll_cancel(&mut self) -> Option<u64> {
        self.cancels.pop_front()
    }

    /// The next `bytes` of request `id` arrived. Bytes of requests that are over, were cancelled, or
    /// weren't made are ignored.
    pub fn on_data(&mut self, now: Instant, id: u64, bytes: u64) {
        self.on_timer(now);
        let mut downloads = self.downloads.iter_mut();
        if downloads.any(|download| download.on_data(id, bytes)) {
            self.fill(now);
        }
    }

    /// Request `id` is complete. What of its range wasn't passed is requested again. Ignored as in
    /// [`on_data`](Self::on_data).
    pub fn on_complete(&mut self, now: Instant, id: u64) {
        self.on_timer(now);
        for (ahead, download) in self.downloads.iter_mut().enumerate() {
            let Some((took, complete)) = download.on_over(id, now) else {
                continue;
            };
            if complete {
                let video = self.current + ahead;
                self.ranges.push(RangeRecord { id, video, took });
            }
            return;
        }
    }

    /// Request `id` failed. What of its range didn't arrive is requested again, at once. Ignored as in
    /// [`on_data`](Self::on_data).
    pub fn on_failure(&mut self, now: Instant, id: u64) {
        self.on_timer(now);
        for download in &mut self.downloads {
            if download.on_over(id, now).is_some() {
                return;
            }
        }
    }

    /// Time has advanced to `now`.
    pub fn on_timer(&mut self, now: Instant) {
        while !self.is_finished() {
            let steps = [self.leave_at(), self.buffer.next_change()];
            let step = steps.into_iter().flatten().min();
            let Some(at) = step.filter(|at| *at <= now) else {
                self.buffer.advance(now);
                return;
            };
            self.buffer.advance(at);
            self.report_changes();
            if let Some(departure) = self.departure(at) {
                self.leave(at, departure);
            }
        }
    }

    /// When [`on_timer`](Self::on_timer) is next due; `None` if only the network can change anything.
    pub fn next_timer(&self) -> Option<Instant> {
        if self.is_finished() {
            return None;
        }
        let times = [self.leave_at(), self.buffer.next_change(), self.room_at()];
        times.into_iter().flatten().min()
    }

    /// The next event that wasn't returned yet, with its time.
    pub fn poll_event(&mut self) -> Option<(Instant, ShortVideoEvent)> {
        self.events.pop_front()
    }

    /// Whether the feed is at its end.
    pub fn is_finished(&self) -> bool {
        self.current >= self.feed.len()
    }

    /// Position of the video being watched; the length of the feed at its end.
    pub const fn current(&self) -> usize {
        self.current
    }

    /// The buffer of the video being watched, at the last update.
    pub const fn buffer(&self) -> &PlayBuffer {
        &self.buffer
    }

    /// Play time that is buffered, by the last update.
    pub fn buffered(&self) -> Duration {
        self.buffer.buffered()
    }

    /// The state to report to the sender, at the last update; `None` at the end of the feed.
    pub fn signal(&self) -> Option<PlayerSignal> {
        let video = self.video()?;
        let interval = video.interval();
        let buffered = self.buffer.buffered();
        let frames = buffered.as_nanos().checked_div(interval.as_nanos());
        Some(PlayerSignal {
            stream: None,
            cached_bytes: ByteCount::new(self.buffer.buffered_bytes()),
            cached_frames: frames.and_then(|n| u64::try_from(n).ok()).unwrap_or(0),
            bitrate: video.rate(),
            fps: 1.0 / interval.as_secs_f64(),
            stalled: self.buffer.waiting_since().is_some(),
        })
    }

    /// The videos that were left, in order.
    pub fn videos(&self) -> &[VideoRecord] {
        &self.videos
    }

    /// The requests that are complete, in order of completion.
    pub fn ranges(&self) -> &[RangeRecord] {
        &self.ranges
    }

    /// Results by the last update.
    pub fn report(&self) -> ShortVideoReport {
        let mut sum = ShortVideoReport::default();
        for video in &self.videos {
            sum.add(&video.playback, video.received);
            sum.unseen += u64::from(video.playback.start_time.is_none());
            sum.unplayed += video.unplayed;
        }
        if let Some(download) = self.downloads.front() {
            sum.add(&self.buffer.report(), download.received());
        }
        let preloaded = self.downloads.iter().skip(1);
        sum.received += preloaded.map(Download::received).sum::<u64>();
        sum
    }

    fn video(&self) -> Option<&ShortVideo> {
        self.feed.get(self.current).map(|viewing| &*viewing.video)
    }

    /// Whether less than the configured play time is requested ahead of what was played.
    fn has_room(&self, download: &Download) -> bool {
        let frames = download.video.frames_within(download.requested());
        let requested = download.video.play_time(frames);
        requested < self.buffer.played().saturating_add(self.config.ahead)
    }

    /// When there will be room for another request of the video being watched.
    fn room_at(&self) -> Option<Instant> {
        let download = self.downloads.front()?;
        if download.is_requested() || self.has_room(download) {
            return None;
        }
        let frames = download.video.frames_within(download.requested());
        let requested = download.video.play_time(frames);
        let played = requested.saturating_sub(self.config.ahead);
        self.buffer.played_at(played + Duration::from_nanos(1))
    }

    /// When the viewer leaves the video, if nothing arrives.
    fn leave_at(&self) -> Option<Instant> {
        let watch = self.feed.get(self.current)?.watch;
        let swipe = watch.and_then(|watch| self.buffer.played_at(watch));
        let wait = self.config.give_up_after.and_then(|longest| {
            let since = self.buffer.waiting_since()?;
            Some(since + longest)
        });
        [swipe, wait].into_iter().flatten().min()
    }

    /// Whether the viewer leaves at `now`, and why.
    fn departure(&self, now: Instant) -> Option<Departure> {
        if self.buffer.state() == PlayerState::Finished {
            return Some(Departure::Ended);
        }
        if self.leave_at().is_none_or(|at| at > now) {
            return None;
        }
        Some(if self.buffer.waiting_since().is_some() {
            Departure::GaveUp
        } else {
            Departure::Swiped
        })
    }

    fn leave(&mut self, now: Instant, departure: Departure) {
        let Some(download) = self.downloads.pop_front() else {
            return;
        };
        self.cancels.extend(download.under_way());
        let playback = self.buffer.report();
        let seen = self.buffer.bytes_arrived() - self.buffer.buffered_bytes();
        self.videos.push(VideoRecord {
            video: self.current,
            departure,
            playback,
            received: download.received(),
            unplayed: download.received().saturating_sub(seen),
        });
        let left = ShortVideoEvent::Left(self.current, departure);
        self.events.push_back((now, left));
        self.current += 1;
        self.buffer = PlayBuffer::new(buffering(&self.config), now);
        self.frames = 0;
        self.open_downloads();
        self.fill(now);
    }

    /// Prepares the current video and those to preload.
    fn open_downloads(&mut self) {
        let open = self.current + self.downloads.len();
        let last = self.current.saturating_add(self.config.preload);
        for viewing in self.feed.iter().take(last.saturating_add(1)).skip(open) {
            self.downloads
                .push_back(Download::new(viewing.video.clone()));
        }
    }

    /// Adds the frames that are complete now to the buffer.
    fn fill(&mut self, now: Instant) {
        let Some(download) = self.downloads.front() else {
            return;
        };
        let video = &download.video;
        let frames = video.frames_within(download.contiguous());
        // Frame by frame, because the first one may be much larger than others.
        for frame in self.frames..frames {
            let bytes = video.bytes_of(frame + 1) - video.bytes_of(frame);
            self.buffer.add(now, video.interval(), bytes);
        }
        self.frames = self.frames.max(frames);
        if frames == video.frames() {
            self.buffer.end(now);
        }
        self.report_changes();
    }

    /// Turns changes of the buffer into events.
    fn report_changes(&mut self) {
        while let Some((at, state)) = self.buffer.poll_change() {
            let event = match state {
                PlayerState::Frozen => ShortVideoEvent::Stalled(self.current),
                PlayerState::Playing if self.buffer.report().stalls.count == 0 => {
                    ShortVideoEvent::FirstFrame(self.current)
                }
                PlayerState::Playing => ShortVideoEvent::Resumed(self.current),
                PlayerState::Starting | PlayerState::Finished => continue,
            };
            self.events.push_back((at, event));
        }
    }
}

/// The thresholds as a buffer has them.
const fn buffering(config: &ShortVideoConfig) -> BufferConfig {
    BufferConfig {
        maximum: config.ahead,
        start: config.start,
        resume: config.resume,
    }
}
