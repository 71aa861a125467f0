//! What is recorded of a session: the buffer over time, and whether each segment is what was served.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sha2::{Digest, Sha256};
use swiftwater::units::Instant;
use swiftwater_media::presentation::Resource;
use swiftwater_media::streaming::{ChunkRecord, ChunkedPlayer, ChunkedReport};

use super::segments::Segments;
use crate::commands::play::observer::SessionObserver;
use crate::exit::Failure;

/// A session, as far as it has come.
#[derive(Clone, Debug, Default)]
pub(super) struct Recording {
    /// Seconds, seconds of play time that are buffered.
    pub(super) buffer: Vec<(f64, f64)>,
    pub(super) records: Vec<ChunkRecord>,
    pub(super) report: Option<ChunkedReport>,
    /// Segments that differ from what was served.
    pub(super) wrong: u64,
}

/// Records a session; shared with what samples and draws.
#[derive(Debug)]
pub(super) struct Recorder {
    segments: Arc<Segments>,
    hash: Sha256,
    recording: Arc<Mutex<Recording>>,
}

impl Recorder {
    pub(super) fn new(segments: Arc<Segments>, recording: Arc<Mutex<Recording>>) -> Self {
        Self {
            segments,
            hash: Sha256::new(),
            recording,
        }
    }
}

/// Locked only briefly.
pub(super) fn lock(recording: &Mutex<Recording>) -> MutexGuard<'_, Recording> {
    recording.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SessionObserver for Recorder {
    fn on_time(&mut self, now: Instant, player: &mut ChunkedPlayer) -> Result<(), Failure> {
        while player.poll_event().is_some() {}
        let buffered = player.buffer().buffered().as_secs_f64();
        let mut recording = lock(&self.recording);
        recording.buffer.push((now.as_secs_f64(), buffered));
        recording.report = Some(player.report());
        Ok(())
    }

    fn on_segment(&mut self, player: &ChunkedPlayer) -> Result<(), Failure> {
        let mut recording = lock(&self.recording);
        let known = recording.records.len();
        let new = player.records().get(known..).unwrap_or_default();
        recording.records.extend(new);
        recording.report = Some(player.report());
        Ok(())
    }

    fn on_failure(&mut self, _failure: &Failure) -> Result<(), Failure> {
        // It is repeated, or it ends the session and is reported then.
        Ok(())
    }

    fn on_request(&mut self, _resource: &Resource) {
        self.hash = Sha256::new();
    }

    fn on_data(&mut self, data: &[u8]) {
        self.hash.update(data);
    }

    fn on_complete(&mut self, resource: &Resource) {
        let hash = std::mem::take(&mut self.hash).finalize();
        if !self.segments.has_sha256(resource.url.path(), &hash) {
            lock(&self.recording).wrong += 1;
        }
    }
}
