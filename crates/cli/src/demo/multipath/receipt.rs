//! What the client's application has got so far.

use std::time::Duration;

use sha2::{Digest, Sha256};
use swiftwater::units::Instant;
use swiftwater_media::player::{LiveConfig, LivePlayer};

use super::content::Content;

/// The receiving end of a job. Times count from the start of the jobs.
///
/// The *gap* is the time without progress: of a download from one byte to the next one in the order of the file,
/// of live video from one complete frame to the next one.
#[derive(Debug)]
pub struct Receipt {
    hash: Sha256,
    bytes: usize,
    /// Of a video: the player, complete frames, the end of the frame that is incomplete.
    player: Option<LivePlayer>,
    frames: usize,
    frame_end: usize,
    progress: Option<Instant>,
    longest_gap: Option<(Instant, Instant)>,
    completed: Option<Instant>,
}

impl Receipt {
    /// Nothing, of `content`.
    pub fn new(content: &Content, player: LiveConfig) -> Self {
        let first = content.frames().first();
        Self {
            hash: Sha256::new(),
            bytes: 0,
            player: first.map(|_| LivePlayer::new(player, Instant::ZERO, Instant::ZERO)),
            frames: 0,
            frame_end: first.map_or(0, |frame| frame.size as usize),
            progress: None,
            longest_gap: None,
            completed: None,
        }
    }

    /// The next bytes came.
    pub fn on_bytes(&mut self, now: Instant, bytes: &[u8], content: &Content) {
        self.hash.update(bytes);
        self.bytes += bytes.len();
        let mut progress = self.player.is_none();
        while let Some(frame) = content.frames().get(self.frames)
            && self.bytes >= self.frame_end
        {
            if let Some(player) = &mut self.player {
                player.on_frame(now, frame);
            }
            progress = true;
            self.frames += 1;
            let next = content.frames().get(self.frames);
            self.frame_end += next.map_or(0, |frame| frame.size as usize);
        }
        if progress {
            self.progress_at(now);
        }
    }

    /// The stream has ended.
    pub fn on_end(&mut self, now: Instant) {
        self.completed = Some(now);
        if let Some(player) = &mut self.player {
            player.on_end(now);
        }
    }

    fn progress_at(&mut self, now: Instant) {
        self.longest_gap = self.gap_by(now);
        self.progress = Some(now);
    }

    /// The longest gap by `now`, which ends one that lasts: since when, until when.
    pub fn gap_by(&self, now: Instant) -> Option<(Instant, Instant)> {
        let length = |gap: &(Instant, Instant)| gap.1.saturating_since(gap.0);
        let last = self.progress.filter(|_| self.completed.is_none());
        let last = last.map(|since| (since, now));
        [self.longest_gap, last]
            .into_iter()
            .flatten()
            .max_by_key(length)
    }

    /// Since when there was no progress.
    pub fn last_progress(&self) -> Option<Instant> {
        self.progress
    }

    /// Bytes so far.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// When all had come.
    pub fn completed(&self) -> Option<Instant> {
        self.completed
    }

    /// Whether all came, as it was sent.
    pub fn is_intact(&self, content: &Content) -> bool {
        let hash = self.hash.clone().finalize();
        self.completed.is_some() && content.has_sha256(&hash)
    }

    /// Times that the picture froze, one that lasts included; `None` of a file.
    pub fn freezes(&self, now: Instant) -> Option<u64> {
        let player = self.player.as_ref()?;
        Some(player.report(now).freezes.count)
    }

    /// How long the picture was frozen in all; `None` of a file.
    pub fn frozen(&self, now: Instant) -> Option<Duration> {
        let player = self.player.as_ref()?;
        Some(player.report(now).freezes.total)
    }
}
