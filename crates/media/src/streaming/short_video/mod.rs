//! Short videos that a viewer swipes through, as in XLINK's deployment (SIGCOMM 2021): each is one
//! file of fixed bitrate, fetched by parallel range requests, and what counts first is its first frame.

mod config;
mod download;
mod feed;
mod player;
mod record;
mod video;

pub use config::ShortVideoConfig;
pub use feed::{FeedSpec, Viewing};
pub use player::{RangeRequest, ShortVideoEvent, ShortVideoPlayer};
pub use record::{Departure, RangeRecord, ShortVideoReport, VideoRecord};
pub use video::{MAX_SHORT_VIDEO, ShortVideo};
