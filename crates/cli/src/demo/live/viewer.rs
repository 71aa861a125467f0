//! The viewer: received video frames, their integrity, and the player model. They are read from the
//! network by `client.rs`.

use std::time::Duration;

use swiftwater::units::Instant;
use swiftwater_media::Frame;
use swiftwater_media::player::{LiveConfig, LivePlayer, LiveReport, PlayerState};

/// A viewer of the live stream. Times count from an arbitrary epoch.
#[derive(Debug)]
pub struct Viewer {
    config: LiveConfig,
    asked: Instant,
    /// When the stream started, and the player: unknown before the first frame.
    playing: Option<(Instant, LivePlayer)>,
    frames: u64,
    bytes: u64,
    differing: u64,
    last: Option<Instant>,
    delays: Vec<Duration>,
    freezes: Vec<Freeze>,
    frozen: Duration,
    complete: bool,
}

/// A freeze that has ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Freeze {
    /// Its start.
    pub since: Instant,
    /// Its end.
    pub until: Instant,
}

impl Viewer {
    /// A viewer that requests the stream at `asked`.
    pub fn new(config: LiveConfig, asked: Instant) -> Self {
        Self {
            config,
            asked,
            playing: None,
            frames: 0,
            bytes: 0,
            differing: 0,
            last: None,
            delays: Vec::new(),
            freezes: Vec::new(),
            frozen: Duration::ZERO,
            complete: false,
        }
    }

    /// Records a frame, complete at `now`, of a stream that started at `begun`; `intact` if its
    /// payload is correct.
    pub fn on_frame(&mut self, now: Instant, begun: Instant, frame: &Frame, intact: bool) {
        self.frames += 1;
        self.bytes += u64::from(frame.size);
        self.differing += u64::from(!intact);
        self.last = Some(now);
        self.delays.push(now.saturating_since(begun + frame.at));
        let (config, asked) = (self.config, self.asked);
        let (_, player) = self
            .playing
            .get_or_insert_with(|| (begun, LivePlayer::new(config, asked, begun)));
        player.on_frame(now, frame);
        if player.state(now) == PlayerState::Playing {
            let freezes = player.report(now).freezes;
            if freezes.count > self.freezes.len() as u64 {
                // The nanoseconds of a showing fit.
                let length = freezes.total.saturating_sub(self.frozen).as_nanos() as u64;
                let since = Instant::from_nanos(now.as_nanos().saturating_sub(length));
                self.freezes.push(Freeze { since, until: now });
                self.frozen = freezes.total;
            }
        }
    }

    /// The stream has ended.
    pub fn on_end(&mut self, now: Instant) {
        self.complete = true;
        if let Some((_, player)) = &mut self.playing {
            player.on_end(now);
        }
    }

    /// Whether all of the stream arrived.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// When the viewer requested the stream.
    pub fn asked(&self) -> Instant {
        self.asked
    }

    /// When the stream started, if known.
    pub fn begun(&self) -> Option<Instant> {
        self.playing.as_ref().map(|(begun, _)| *begun)
    }

    /// When everything received will have been shown; `None` unless it is playing.
    pub fn dry_at(&self) -> Option<Instant> {
        self.playing
            .as_ref()
            .and_then(|(_, player)| player.dry_at())
    }

    /// State of the player; `None` before the first frame.
    pub fn state(&self, now: Instant) -> Option<PlayerState> {
        self.playing.as_ref().map(|(_, player)| player.state(now))
    }

    /// Play time in the buffer.
    pub fn buffered(&self, now: Instant) -> Duration {
        self.playing
            .as_ref()
            .map_or(Duration::ZERO, |(_, player)| player.buffered(now))
    }

    /// Playback statistics so far; `None` before the first frame.
    pub fn report(&self, now: Instant) -> Option<LiveReport> {
        self.playing.as_ref().map(|(_, player)| player.report(now))
    }

    /// Frames that arrived.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Bytes of these frames.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Frames with incorrect payload.
    pub fn differing(&self) -> u64 {
        self.differing
    }

    /// When the last frame arrived.
    pub fn last_frame(&self) -> Option<Instant> {
        self.last
    }

    /// Time from capture to arrival of each frame, in order of arrival.
    pub fn delays(&self) -> &[Duration] {
        &self.delays
    }

    /// Freezes that have ended.
    pub fn freezes(&self) -> &[Freeze] {
        &self.freezes
    }

    /// Freezes up to `now`, the last of which may still continue.
    pub fn freezes_by(&self, now: Instant) -> impl Iterator<Item = Freeze> {
        let frozen = self.report(now).map(|report| report.freezes.total);
        let lasting = frozen.unwrap_or_default().saturating_sub(self.frozen);
        let last = (!lasting.is_zero()).then(|| Freeze {
            // The nanoseconds of a showing fit.
            since: Instant::from_nanos(now.as_nanos().saturating_sub(lasting.as_nanos() as u64)),
            until: now,
        });
        self.freezes.iter().copied().chain(last)
    }
}
