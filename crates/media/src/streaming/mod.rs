//! Video on demand: players that download ahead, and what they decide with.
//!
//! - [`ChunkedPlayer`]: chunks at adaptive bitrates, as in Chorus' evaluation (MobiCom 2024). A
//!   [`ChunkedVideo`] has a [`Ladder`] and chunk sizes, nominal, generated ([`Variation`]) or from a
//!   file; [`predictor`] and [`adaptation`] decide on levels; [`Qoe`] is the score.
//! - [`ShortVideoPlayer`]: a feed of short videos that a viewer swipes through, as in XLINK's
//!   deployment (SIGCOMM 2021).
//!
//! Both are state machines without I/O. A driver, simulated or real, sends the requests that it polls
//! from them, passes what arrives with its time, and calls back at the time of the next timer.
//! What a player reports to its sender is a [`PlayerSignal`](swiftwater_quic::policy::PlayerSignal).

pub mod adaptation;
mod buffer;
mod chunked;
mod division;
mod encode;
mod error;
mod ladder;
pub mod predictor;
mod qoe;
mod short_video;
mod table;
mod variation;
mod video;

pub use buffer::{BufferConfig, PlayBuffer, PlaybackReport};
pub use chunked::{
    ChunkRecord, ChunkRequest, ChunkedConfig, ChunkedEvent, ChunkedPlayer, ChunkedReport,
    PredictionErrors,
};
pub use division::divide_by_path;
pub use error::{LadderError, ShortVideoError, TableError, VideoError};
pub use ladder::{Ladder, MAX_RENDITIONS, Rendition};
pub use qoe::{Qoe, QoeWeights};
pub use short_video::{
    Departure, FeedSpec, MAX_SHORT_VIDEO, RangeRecord, RangeRequest, ShortVideo, ShortVideoConfig,
    ShortVideoEvent, ShortVideoPlayer, ShortVideoReport, VideoRecord, Viewing,
};
pub use table::MAX_TABLE_BYTES;
pub use variation::Variation;
pub use video::{Chunk, ChunkedVideo, MAX_CHUNK, MAX_CHUNK_BYTES, MAX_CHUNKS};
