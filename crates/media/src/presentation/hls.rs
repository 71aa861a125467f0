//! Playlists of HTTP Live Streaming (RFC 8216) as a player needs them: bitrates, segments, sizes.
//!
//! The syntax is that of `m3u8_rs`; here is what is made of it, and what is refused.

use std::time::Duration;

use m3u8_rs::{MasterPlaylist, MediaPlaylist, MediaSegment, Playlist};
use swiftwater_units::Bandwidth;
use url::Url;

use super::{
    AddressRoom, Description, Level, MAX_SEGMENTS, PresentationError, Resource, Source, Variant,
    resolve,
};
use crate::streaming::Rendition;

/// Reads the playlist in `bytes`, which came from `url`.
pub(super) fn parse(url: &Url, bytes: &[u8]) -> Result<Description, PresentationError> {
    match m3u8_rs::parse_playlist_res(bytes).map_err(|_| PresentationError::Syntax)? {
        Playlist::MasterPlaylist(master) => variants(url, &master).map(Description::Variants),
        Playlist::MediaPlaylist(media) => level(url, &media).map(Description::Level),
    }
}

fn variants(url: &Url, master: &MasterPlaylist) -> Result<Vec<Variant>, PresentationError> {
    let mut all = Vec::new();
    for variant in master.variants.iter().filter(|variant| !variant.is_i_frame) {
        let rate = variant.average_bandwidth.unwrap_or(variant.bandwidth);
        let height = variant.resolution.map(|resolution| resolution.height);
        all.push(Variant {
            rendition: Rendition {
                rate: Bandwidth::from_bps(rate),
                height: height.and_then(|height| u32::try_from(height).ok()),
            },
            source: Source::Playlist(resolve(url, &variant.uri)?),
        });
    }
    Variant::sorted(all)
}

fn level(url: &Url, media: &MediaPlaylist) -> Result<Level, PresentationError> {
    if !media.end_list {
        return Err(PresentationError::Live);
    }
    if media.segments.is_empty() {
        return Err(PresentationError::NoSegments);
    }
    if media.segments.len() > MAX_SEGMENTS {
        return Err(PresentationError::TooManySegments);
    }
    let is_encrypted = |segment: &MediaSegment| {
        let key = segment.key.as_ref();
        key.is_some_and(|key| key.method != m3u8_rs::KeyMethod::None)
    };
    if media.segments.iter().any(is_encrypted) {
        return Err(PresentationError::Encrypted);
    }
    let mut room = AddressRoom::WHOLE;
    let mut segments: Vec<(Resource, Duration)> = Vec::new();
    for (index, segment) in media.segments.iter().enumerate() {
        let duration = Duration::try_from_secs_f32(segment.duration).ok();
        let duration = duration.filter(|duration| !duration.is_zero());
        let duration = duration.ok_or(PresentationError::Duration(index))?;
        let at = resolve(url, &segment.uri)?;
        room.take(&at)?;
        // Without an offset a range follows that of the segment before (RFC 8216, section 4.3.2.2).
        let range = match &segment.byte_range {
            None => None,
            Some(range) => {
                let before = segments.last().filter(|(before, _)| before.url == at);
                let before = before.and_then(|(before, _)| before.range);
                let end = before.and_then(|(offset, len)| offset.checked_add(len));
                let offset = range
                    .offset
                    .or(end)
                    .ok_or(PresentationError::Range(index))?;
                Some((offset, range.length))
            }
        };
        segments.push((Resource { url: at, range }, duration));
    }
    let map = media
        .segments
        .iter()
        .find_map(|segment| segment.map.as_ref());
    let header = match map {
        None => None,
        Some(map) => Some(Resource {
            url: resolve(url, &map.uri)?,
            range: map
                .byte_range
                .as_ref()
                .map(|range| (range.offset.unwrap_or(0), range.length)),
        }),
    };
    Ok(Level { header, segments })
}
