//! A complete video on demand as the player needs it: bitrates, and where the segments of each are.
//!
//! `hls` and `dash` read it from playlists and manifests, `segment_index` from the index of a file, `load` fetches
//! what is needed.

use std::time::Duration;

use swiftwater::units::Bandwidth;
use swiftwater_media::streaming::{Chunk, ChunkedVideo, Ladder, Rendition};
use thiserror::Error;

use super::{dash, hls};
use crate::url::{Url, UrlError};

/// Most segments of a bitrate: a week of segments of two seconds.
pub(crate) const MAX_SEGMENTS: usize = 302_400;

/// A range of a resource: offset and length in bytes.
pub(crate) type ByteRange = (u64, u64);

/// A resource, or a range of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Resource {
    pub(crate) url: Url,
    pub(crate) range: Option<ByteRange>,
}

/// The segments of one bitrate.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Level {
    /// What has to be fetched before the first segment.
    pub(crate) header: Option<Resource>,
    /// The segments with their play times.
    pub(crate) segments: Vec<(Resource, Duration)>,
}

/// A file whose index of segments (ISO/IEC 14496-12, `sidx`) has to be fetched.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct IndexedFile {
    pub(crate) url: Url,
    /// What has to be fetched before the first segment.
    pub(crate) header: Option<ByteRange>,
    pub(crate) index: ByteRange,
}

/// Where the segments of a bitrate are listed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Source {
    /// Here.
    Level(Level),
    /// In a playlist of its own.
    Playlist(Url),
    /// In the file itself.
    Index(IndexedFile),
}

/// A bitrate.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Variant {
    pub(crate) rendition: Rendition,
    pub(crate) source: Source,
}

impl Variant {
    /// The bitrates in ascending order, each once: several of one bitrate differ in sound or in codecs.
    pub(super) fn sorted(mut all: Vec<Self>) -> Result<Vec<Self>, PresentationError> {
        all.sort_by_key(|variant| variant.rendition.rate);
        all.dedup_by_key(|variant| variant.rendition.rate);
        if all.is_empty() {
            return Err(PresentationError::NoVariants);
        }
        Ok(all)
    }
}

/// What a playlist or manifest describes.
#[derive(Debug)]
pub(crate) enum Parsed {
    /// Bitrates, in ascending order.
    Variants(Vec<Variant>),
    /// The segments of one, without its bitrate.
    Level(Level),
}

/// What can't be played.
#[derive(Debug, Error)]
pub(crate) enum PresentationError {
    #[error("neither a playlist of HTTP Live Streaming nor a manifest of DASH")]
    Syntax,
    #[error("not a manifest of DASH: {0}")]
    Manifest(String),
    #[error("the video has no bitrates")]
    NoVariants,
    #[error("the video has no segments")]
    NoSegments,
    #[error("more than {MAX_SEGMENTS} segments, or too many with long addresses")]
    TooManySegments,
    #[error("the video is live; only complete videos can be played")]
    Live,
    #[error("the segments are encrypted")]
    Encrypted,
    #[error("segment {0} has no valid play time")]
    Duration(usize),
    #[error("segment {0} has a byte range without an offset, and none before it")]
    Range(usize),
    #[error("`{0}` is no range of bytes")]
    RangeSyntax(String),
    #[error("the bitrate is unknown: give the master playlist")]
    NoRate,
    #[error("bitrates have {0} and {1} segments")]
    Segments(usize, usize),
    #[error("the manifest has {0} periods; only videos of one can be played")]
    Periods(usize),
    #[error("`{0}` is no template of addresses")]
    Template(String),
    #[error("a bitrate without a list of segments, a template or an index")]
    NoAddresses,
    #[error("the file's index of segments can't be read: {0}")]
    Index(&'static str),
    #[error(transparent)]
    Url(#[from] UrlError),
    #[error(transparent)]
    Ladder(#[from] swiftwater_media::streaming::LadderError),
    #[error(transparent)]
    Video(#[from] swiftwater_media::streaming::VideoError),
}

/// Reads the playlist or manifest in `bytes`, which came from `url`.
pub(crate) fn parse(url: &Url, bytes: &[u8]) -> Result<Parsed, PresentationError> {
    match std::str::from_utf8(bytes) {
        Ok(text) if dash::is_manifest(text) => dash::parse(url, text).map(Parsed::Variants),
        _ => hls::parse(url, bytes),
    }
}

/// The bitrate of a level whose segments have byte ranges.
pub(crate) fn rate_of(level: &Level) -> Result<Bandwidth, PresentationError> {
    let ranges = level.segments.iter().map(|(segment, _)| segment.range);
    let bytes: Option<u64> = ranges.map(|range| range.map(|(_, len)| len)).sum();
    let time = level.segments.iter().map(|(_, time)| *time).sum();
    let rate = bytes.map(|bytes| Bandwidth::from_transfer(bytes, time));
    rate.filter(|rate| !rate.is_zero())
        .ok_or(PresentationError::NoRate)
}

/// The video for the player: play times of the lowest bitrate's segments, sizes by byte range where there is one and
/// by the bitrate elsewhere.
pub(crate) fn video(
    renditions: &[Rendition],
    levels: &[Level],
) -> Result<ChunkedVideo, PresentationError> {
    let ladder = Ladder::new(renditions.to_vec())?;
    let Some(first) = levels.first() else {
        return Err(PresentationError::NoVariants);
    };
    let count = first.segments.len();
    if let Some(other) = levels.iter().find(|level| level.segments.len() != count) {
        return Err(PresentationError::Segments(count, other.segments.len()));
    }
    let chunks = (0..count).map(|index| {
        let duration = first.segments[index].1;
        let bytes = levels.iter().zip(renditions).map(|(level, rendition)| {
            let (segment, _) = &level.segments[index];
            let nominal = rendition.rate.bytes_in(duration);
            segment.range.map_or(nominal, |(_, len)| len).max(1)
        });
        Chunk {
            duration,
            bytes: bytes.collect(),
        }
    });
    Ok(ChunkedVideo::new(ladder, chunks.collect())?)
}
