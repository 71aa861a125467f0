//! A player of chunked video at adaptive bitrates.

mod abandonment;
mod config;
mod player;
mod record;

pub use config::ChunkedConfig;
pub use player::{ChunkRequest, ChunkedEvent, ChunkedPlayer};
pub use record::{ChunkRecord, ChunkedReport, PredictionErrors};
