//! Errors of ladders and chunk size tables.

use swiftwater_units::text::ParseError;
use thiserror::Error;

/// An invalid ladder.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum LadderError {
    /// There is no rendition.
    #[error("a ladder has at least one bitrate")]
    Empty,
    /// There are more renditions than [`MAX_RENDITIONS`](super::MAX_RENDITIONS).
    #[error("{0} bitrates: a ladder has at most {max}", max = super::MAX_RENDITIONS)]
    TooManyRenditions(usize),
    /// A bitrate is zero.
    #[error("a bitrate of a ladder is above zero")]
    ZeroRate,
    /// The bitrate of this level is not above that of the level before.
    #[error("bitrate {0} of the ladder is not above the one before it")]
    NotAscending(usize),
    /// A bitrate can't be read.
    #[error(transparent)]
    Rate(#[from] ParseError),
}

/// An invalid chunked video.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum VideoError {
    /// There is no chunk.
    #[error("the video has no chunk")]
    Empty,
    /// There are more chunks than [`MAX_CHUNKS`](super::MAX_CHUNKS).
    #[error("the video has more than {} chunks", super::MAX_CHUNKS)]
    TooManyChunks,
    /// The duration of this chunk is zero, or above [`MAX_CHUNK`](super::MAX_CHUNK).
    #[error("chunk {0} lasts for no time, or more than {max} s", max = super::MAX_CHUNK.as_secs())]
    Duration(usize),
    /// This chunk doesn't have exactly one size for each level.
    #[error("chunk {0} does not have one size for each bitrate")]
    Levels(usize),
    /// A size of this chunk is zero, or above [`MAX_CHUNK_BYTES`](super::MAX_CHUNK_BYTES).
    #[error(
        "a size of chunk {0} is 0, or more than {max} bytes",
        max = super::MAX_CHUNK_BYTES
    )]
    Size(usize),
    /// The coefficient of variation of the chunk sizes is outside 0 to 1.
    #[error("coefficient of variation {0}: use 0 to 1")]
    Variation(f64),
}

/// A chunk size table that can't be read.
#[derive(Debug, Error)]
pub enum TableError {
    /// The file can't be read.
    #[error("{path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The file is larger than [`MAX_TABLE_BYTES`](super::MAX_TABLE_BYTES).
    #[error("{path}: larger than {} bytes", super::MAX_TABLE_BYTES)]
    TooLarge {
        /// The file.
        path: String,
    },
    /// The name ends in neither `.json` nor `.csv`.
    #[error("{path}: the name of a chunk size table ends in .json or .csv")]
    Extension {
        /// The file.
        path: String,
    },
    /// A CSV table doesn't start with its heading.
    #[error(
        "a chunk size table begins with duration_ms and the bitrates in bit/s, such as duration_ms,1000000,2500000"
    )]
    Heading,
    /// This line of a CSV table is invalid.
    #[error(
        "line {0} of the chunk size table: write the duration in milliseconds, and the size in bytes at each bitrate"
    )]
    Line(usize),
    /// A JSON table is not of the expected form.
    #[error("chunk size table: {0}")]
    Json(#[from] serde_json::Error),
    /// The bitrates make no ladder.
    #[error(transparent)]
    Ladder(#[from] LadderError),
    /// The table can be read, but not its video.
    #[error(transparent)]
    Video(#[from] VideoError),
}

/// An invalid short video.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
pub enum ShortVideoError {
    /// A frame has no bytes, or the video has no frame.
    #[error("a short video has at least one frame, and each frame at least one byte")]
    Empty,
    /// The frame rate is outside 1 to 1000 frames per second.
    #[error("{0} frames per second: use 1 to 1000")]
    FrameRate(f64),
    /// The video is longer than [`MAX_SHORT_VIDEO`](super::MAX_SHORT_VIDEO).
    #[error("a short video lasts for at most {} s", super::MAX_SHORT_VIDEO.as_secs())]
    TooLong,
}
