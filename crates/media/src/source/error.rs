//! Errors of sources.

use swiftwater_units::text::ParseError;
use thiserror::Error;

use super::demux::DemuxError;

/// Invalid settings of a generator.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum EncodingError {
    /// The frame rate is outside 1 to 1000 frames per second.
    #[error("{0} frames per second: use 1 to 1000")]
    FrameRate(f64),
    /// A mean frame would be smaller than 1 byte or larger than 64 MiB.
    #[error(
        "frames of {0} bytes on average: choose rate and fps so that they have 1 byte to 64 MiB"
    )]
    FrameSize(f64),
    /// A group of pictures without frames.
    #[error("a group of pictures has at least 1 frame")]
    EmptyGop,
    /// The key frames' size factor is outside 1 to 1000.
    #[error("key frames {0} times as large as others: use 1 to 1000")]
    KeyFactor(f64),
    /// The spread of the sizes is outside 0 to 2.
    #[error("sigma {0}: use 0 to 2")]
    Sigma(f64),
}

/// An invalid frame table.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum RecordingError {
    /// There are no frames in it.
    #[error("the recording has no frame")]
    Empty,
    /// There are more frames than [`MAX_FRAMES`](super::MAX_FRAMES).
    #[error("the recording has more than {} frames", super::MAX_FRAMES)]
    TooManyFrames,
    /// A frame's time is before that of the frame before.
    #[error("frame {0} is earlier than the one before it")]
    TimeGoesBack(usize),
    /// It is longer than [`MAX_PERIOD`](super::MAX_PERIOD).
    #[error("the recording is longer than 30 days")]
    TooLong,
    /// Its duration is unknown: all frames have the same time.
    #[error("the recording has no duration")]
    NoDuration,
    /// A frame table does not start with its heading.
    #[error("a frame table begins with the line at_us,bytes,kind; this one does not")]
    Heading,
    /// A line of a frame table is invalid.
    #[error(
        "line {0} of the frame table: write microseconds,bytes,key or delta, such as 40000,8319,delta"
    )]
    Line(usize),
}

/// Why a source can't be opened.
#[derive(Debug, Error)]
pub enum SourceError {
    /// A generator's settings are invalid.
    #[error(transparent)]
    Encoding(#[from] EncodingError),
    /// The file can't be read.
    #[error("{path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The file is not an MP4 with a video track.
    #[error("{path}: {source}")]
    Demux {
        /// The file.
        path: String,
        /// The cause.
        source: DemuxError,
    },
    /// The file's frame table is invalid.
    #[error("{path}: {source}")]
    Table {
        /// The file.
        path: String,
        /// The cause.
        source: RecordingError,
    },
}

/// A text that doesn't describe a source.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum SpecError {
    /// Its syntax is invalid.
    #[error(transparent)]
    Text(#[from] ParseError),
    /// Its syntax is valid, but not its settings.
    #[error("video source '{input}': {source}")]
    Encoding {
        /// The text.
        input: String,
        /// The cause.
        source: EncodingError,
    },
}
