//! Videos of a real encode: chunk sizes from the frame table of a recording.

use std::time::Duration;

use super::error::VideoError;
use super::ladder::Ladder;
use super::video::{Chunk, ChunkedVideo, MAX_CHUNKS};
use crate::source::Recording;

impl ChunkedVideo {
    /// Chunks of `duration` of `recording`, the last one as long as the rest. A level has the sizes of the encode, scaled so
    /// that their mean is its bitrate: an encode has one bitrate, and encoders of one picture at several vary alike.
    ///
    /// # Errors
    ///
    /// Those of [`ChunkedVideo::new`].
    pub fn of_encode(
        recording: &Recording,
        ladder: Ladder,
        duration: Duration,
    ) -> Result<Self, VideoError> {
        let period = recording.period();
        if duration.is_zero() {
            return Err(VideoError::Duration(0));
        }
        let count = period.as_nanos().div_ceil(duration.as_nanos());
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if count > MAX_CHUNKS {
            return Err(VideoError::TooManyChunks);
        }
        let mut sizes = vec![0_u64; count];
        for frame in recording.frames() {
            let chunk = frame.at.as_nanos() / duration.as_nanos();
            // A frame begins before the period ends.
            let chunk = usize::try_from(chunk).map_or(count, |chunk| chunk.min(count));
            sizes[chunk.min(count - 1)] += u64::from(frame.size);
        }
        let mean = recording.mean_rate().as_bps().max(1);
        let mut left = period;
        let chunks = sizes.into_iter().map(|size| {
            let duration = duration.min(left);
            left = left.saturating_sub(duration);
            let renditions = ladder.renditions().iter();
            let scaled = renditions.map(|rendition| {
                let bytes = u128::from(size) * u128::from(rendition.rate.as_bps());
                u64::try_from(bytes / u128::from(mean)).map_or(u64::MAX, |bytes| bytes.max(1))
            });
            Chunk {
                duration,
                bytes: scaled.collect(),
            }
        });
        let chunks = chunks.collect();
        Self::new(ladder, chunks)
    }
}
