//! A video cut into chunks, each available at every bitrate of a ladder.

use std::time::Duration;

use super::error::VideoError;
use super::ladder::Ladder;

/// Most chunks of a video: over four days of chunks of 4 s.
pub const MAX_CHUNKS: usize = 100_000;

/// Longest play time of a chunk.
pub const MAX_CHUNK: Duration = Duration::from_secs(600);

/// Largest chunk: 1 GiB.
pub const MAX_CHUNK_BYTES: u64 = 1 << 30;

/// One chunk: its play time, and its size at each level.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Chunk {
    /// Play time.
    pub duration: Duration,
    /// Size in bytes by level.
    pub bytes: Vec<u64>,
}

impl Chunk {
    /// Size at `level` in bytes; at the highest level if there is no such.
    pub fn bytes_at(&self, level: usize) -> u64 {
        let bytes = self.bytes.get(level).or(self.bytes.last());
        bytes.copied().unwrap_or(0)
    }
}

/// A video as an adaptive player downloads it: chunks by index, sizes by level.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ChunkedVideo {
    ladder: Ladder,
    chunks: Vec<Chunk>,
}

impl ChunkedVideo {
    /// A video of 1 to [`MAX_CHUNKS`] chunks, each with one size above zero for each level.
    pub fn new(ladder: Ladder, chunks: Vec<Chunk>) -> Result<Self, VideoError> {
        if chunks.is_empty() {
            return Err(VideoError::Empty);
        }
        if chunks.len() > MAX_CHUNKS {
            return Err(VideoError::TooManyChunks);
        }
        for (index, chunk) in chunks.iter().enumerate() {
            if chunk.duration.is_zero() || chunk.duration > MAX_CHUNK {
                return Err(VideoError::Duration(index));
            }
            if chunk.bytes.len() != ladder.levels() {
                return Err(VideoError::Levels(index));
            }
            if !chunk
                .bytes
                .iter()
                .all(|b| (1..=MAX_CHUNK_BYTES).contains(b))
            {
                return Err(VideoError::Size(index));
            }
        }
        Ok(Self { ladder, chunks })
    }

    /// A video at constant bitrates: `count` chunks of `duration`, each of the nominal size. Also
    /// for a manifest that doesn't list sizes.
    pub fn constant(ladder: Ladder, duration: Duration, count: usize) -> Result<Self, VideoError> {
        let chunks = nominal(&ladder, duration, count)?;
        Self::new(ladder, chunks)
    }

    /// The bitrates.
    pub const fn ladder(&self) -> &Ladder {
        &self.ladder
    }

    /// The chunks in order; at least one.
    pub fn chunks(&self) -> &[Chunk] {
        &self.chunks
    }

    /// The chunk with number `index` of the video played in a loop.
    pub fn looped(&self, index: u64) -> &Chunk {
        // The remainder is below the number of chunks, which is above zero.
        &self.chunks[(index % self.chunks.len() as u64) as usize]
    }

    /// Play time of all chunks.
    pub fn length(&self) -> Duration {
        self.chunks.iter().map(|chunk| chunk.duration).sum()
    }
}

/// `count` chunks of nominal sizes: bitrate times `duration`, at least 1 byte.
pub(super) fn nominal(
    ladder: &Ladder,
    duration: Duration,
    count: usize,
) -> Result<Vec<Chunk>, VideoError> {
    if count > MAX_CHUNKS {
        return Err(VideoError::TooManyChunks);
    }
    let renditions = ladder.renditions().iter();
    let bytes: Vec<u64> = renditions
        .map(|rendition| rendition.rate.bytes_in(duration).max(1))
        .collect();
    Ok(vec![Chunk { duration, bytes }; count])
}
