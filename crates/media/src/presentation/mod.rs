//! A complete video on demand as a player needs it: bitrates, and where the segments of each are.
//!
//! [`parse`] reads it from playlists of HTTP Live Streaming (`hls`) and manifests of DASH (`dash`), [`indexed_level`]
//! from the index of a file (`segment_index`). Nothing is fetched here: who plays a video fetches what [`Source`]
//! names. [`video`] is then what the players of [`crate::streaming`] take. What is read is not trusted: sizes are
//! limited, and addresses have the scheme `http` or `https`.

mod dash;
mod hls;
mod segment_index;

use std::time::Duration;

use swiftwater_units::Bandwidth;
use thiserror::Error;
use url::Url;

pub use self::segment_index::indexed_level;
use crate::streaming::{Chunk, ChunkedVideo, Ladder, LadderError, Rendition, VideoError};

/// Longest address of a segment, bytes.
const MAX_ADDRESS: usize = 8_000;

/// Most bytes of the addresses of all segments: a short description may stand for many long ones.
const MAX_ADDRESSES: usize = 64 << 20;

/// Most segments of a bitrate: a week of segments of two seconds.
pub const MAX_SEGMENTS: usize = 302_400;

/// A range of a resource: offset and length in bytes.
pub type ByteRange = (u64, u64);

/// A resource, or a range of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Resource {
    /// Its address, `http` or `https`, without a fragment.
    pub url: Url,
    /// `None` for all of it.
    pub range: Option<ByteRange>,
}

/// The segments of one bitrate.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Level {
    /// What has to be fetched before the first segment.
    pub header: Option<Resource>,
    /// The segments with their play times.
    pub segments: Vec<(Resource, Duration)>,
}

/// A file whose index of segments (ISO/IEC 14496-12, `sidx`) has to be fetched.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct IndexedFile {
    /// The file's address.
    pub url: Url,
    /// What has to be fetched before the first segment.
    pub header: Option<ByteRange>,
    /// Where the index is.
    pub index: ByteRange,
}

/// Where the segments of a bitrate are listed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Source {
    /// Here.
    Level(Level),
    /// In a playlist of its own.
    Playlist(Url),
    /// In the file itself.
    Index(IndexedFile),
}

/// A bitrate.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Variant {
    /// Bitrate and height of the picture.
    pub rendition: Rendition,
    /// Where its segments are listed.
    pub source: Source,
}

impl Variant {
    /// The bitrates in ascending order, each once: several of one bitrate differ in sound or in codecs.
    fn sorted(mut all: Vec<Self>) -> Result<Vec<Self>, PresentationError> {
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
pub enum Description {
    /// Bitrates, in ascending order.
    Variants(Vec<Variant>),
    /// The segments of one, without its bitrate.
    Level(Level),
}

/// What can't be played.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PresentationError {
    /// The format is another one.
    #[error("neither a playlist of HTTP Live Streaming nor a manifest of DASH")]
    Syntax,
    /// The manifest is malformed: why.
    #[error("not a manifest of DASH: {0}")]
    Manifest(String),
    /// There is nothing to choose from.
    #[error("the video has no bitrates")]
    NoVariants,
    /// A bitrate has no segments.
    #[error("the video has no segments")]
    NoSegments,
    /// A bitrate has more than [`MAX_SEGMENTS`], or their addresses take too much memory.
    #[error("more than {MAX_SEGMENTS} segments, or too many with long addresses")]
    TooManySegments,
    /// The video is not complete.
    #[error("the video is live; only complete videos can be played")]
    Live,
    /// Segments are encrypted.
    #[error("the segments are encrypted")]
    Encrypted,
    /// The segment with this index has no play time, or an impossible one.
    #[error("segment {0} has no valid play time")]
    Duration(usize),
    /// The segment with this index is a range that follows nothing.
    #[error("segment {0} has a byte range without an offset, and none before it")]
    Range(usize),
    /// A text that is no range.
    #[error("`{0}` is no range of bytes")]
    RangeSyntax(String),
    /// Neither a bitrate nor sizes are given.
    #[error("the bitrate is unknown: give the master playlist")]
    NoRate,
    /// The bitrates differ in their numbers of segments.
    #[error("bitrates have {0} and {1} segments")]
    Segments(usize, usize),
    /// The manifest has this number of periods.
    #[error("the manifest has {0} periods; only videos of one can be played")]
    Periods(usize),
    /// A text that is no template.
    #[error("`{0}` is no template of addresses")]
    Template(String),
    /// It is not said where the segments are.
    #[error("a bitrate without a list of segments, a template or an index")]
    NoAddresses,
    /// The index is none, or of another kind: why.
    #[error("the file's index of segments can't be read: {0}")]
    Index(&'static str),
    /// An address that is none, and why.
    #[error("`{0}` is no usable address: {1}")]
    Address(String, String),
    /// The bitrates can't be a ladder.
    #[error(transparent)]
    Ladder(#[from] LadderError),
    /// The segments can't be a video.
    #[error(transparent)]
    Video(#[from] VideoError),
}

/// Bytes that the addresses of further segments of a description may take.
struct AddressRoom(usize);

impl AddressRoom {
    const WHOLE: Self = Self(MAX_ADDRESSES);

    /// Takes the bytes of a segment's address.
    fn take(&mut self, url: &Url) -> Result<(), PresentationError> {
        let left = self.0.checked_sub(url.as_str().len());
        self.0 = left.ok_or(PresentationError::TooManySegments)?;
        Ok(())
    }
}

/// The address of `reference` in a document from `base` (RFC 3986, section 5.2), without a fragment.
fn resolve(base: &Url, reference: &str) -> Result<Url, PresentationError> {
    let shown = || reference.chars().take(200).collect();
    let refused = |why: &str| PresentationError::Address(shown(), why.to_owned());
    if reference.len() > MAX_ADDRESS {
        return Err(refused("it is too long"));
    }
    let mut url = base
        .join(reference)
        .map_err(|error| refused(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refused("only https:// and http:// are supported"));
    }
    if url.as_str().len() > MAX_ADDRESS {
        return Err(refused("it is too long"));
    }
    url.set_fragment(None);
    Ok(url)
}

/// Reads the playlist or manifest in `bytes`, which came from `url`.
///
/// # Errors
///
/// What can't be played; see [`PresentationError`].
pub fn parse(url: &Url, bytes: &[u8]) -> Result<Description, PresentationError> {
    match std::str::from_utf8(bytes) {
        Ok(text) if dash::is_manifest(text) => dash::parse(url, text).map(Description::Variants),
        _ => hls::parse(url, bytes),
    }
}

/// The mean bitrate of a level whose segments have byte ranges.
///
/// # Errors
///
/// [`PresentationError::NoRate`] without byte ranges, or if they are empty.
pub fn rate_of(level: &Level) -> Result<Bandwidth, PresentationError> {
    let ranges = level.segments.iter().map(|(segment, _)| segment.range);
    let bytes: Option<u64> = ranges.map(|range| range.map(|(_, len)| len)).sum();
    let time = level.segments.iter().map(|(_, time)| *time).sum();
    let rate = bytes.map(|bytes| Bandwidth::from_transfer(bytes, time));
    rate.filter(|rate| !rate.is_zero())
        .ok_or(PresentationError::NoRate)
}

/// The video for the player: play times of the lowest bitrate's segments, sizes by byte range where there is one and
/// by the bitrate elsewhere.
///
/// # Errors
///
/// Levels that don't fit together, and what no player takes.
pub fn video(
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
