//! Playlists of HTTP Live Streaming (RFC 8216) as a player needs them: bitrates, segments, sizes.
//!
//! The syntax is that of `m3u8_rs`; here is what is made of it, and what is refused.

use std::time::Duration;

use m3u8_rs::{MasterPlaylist, MediaPlaylist, MediaSegment, Playlist};
use swiftwater::units::Bandwidth;
use swiftwater_media::streaming::Rendition;

use super::presentation::{Level, Parsed, PresentationError, Resource, Source, Variant};
use crate::url::Url;

/// Reads the playlist in `bytes`, which came from `url`.
pub(crate) fn parse(url: &Url, bytes: &[u8]) -> Result<Parsed, PresentationError> {
    match m3u8_rs::parse_playlist_res(bytes).map_err(|_| PresentationError::Syntax)? {
        Playlist::MasterPlaylist(master) => variants(url, &master).map(Parsed::Variants),
        Playlist::MediaPlaylist(media) => level(url, &media).map(Parsed::Level),
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
            source: Source::Playlist(url.join(&variant.uri)?),
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
    let is_encrypted = |segment: &MediaSegment| {
        let key = segment.key.as_ref();
        key.is_some_and(|key| key.method != m3u8_rs::KeyMethod::None)
    };
    if media.segments.iter().any(is_encrypted) {
        return Err(PresentationError::Encrypted);
    }
    let mut segments: Vec<(Resource, Duration)> = Vec::new();
    for (index, segment) in media.segments.iter().enumerate() {
        let duration = Duration::try_from_secs_f32(segment.duration).ok();
        let duration = duration.filter(|duration| !duration.is_zero());
        let duration = duration.ok_or(PresentationError::Duration(index))?;
        let at = url.join(&segment.uri)?;
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
            url: url.join(&map.uri)?,
            range: map
                .byte_range
                .as_ref()
                .map(|range| (range.offset.unwrap_or(0), range.length)),
        }),
    };
    Ok(Level { header, segments })
}

#[cfg(test)]
mod tests {
    use super::super::presentation::{rate_of, video};
    use super::*;

    const MASTER: &str = "#EXTM3U\n#EXT-X-VERSION:7\n\
        #EXT-X-STREAM-INF:BANDWIDTH=2800000,AVERAGE-BANDWIDTH=2500000,RESOLUTION=854x480\nmid/index.m3u8\n\
        #EXT-X-STREAM-INF:BANDWIDTH=1000000,RESOLUTION=640x360\n/low.m3u8\n";
    const RANGES: &str = "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:4\n\
        #EXT-X-MAP:URI=\"video.mp4\",BYTERANGE=\"700@0\"\n\
        #EXTINF:4.0,\n#EXT-X-BYTERANGE:500000@700\nvideo.mp4\n\
        #EXTINF:2.0,\n#EXT-X-BYTERANGE:250000\nvideo.mp4\n#EXT-X-ENDLIST\n";

    fn url() -> Url {
        "https://host/video/master.m3u8".parse().unwrap()
    }

    fn media(text: &str) -> Result<Level, PresentationError> {
        match parse(&url(), text.as_bytes())? {
            Parsed::Level(level) => Ok(level),
            Parsed::Variants(_) => panic!("a master playlist"),
        }
    }

    #[test]
    fn bitrates_are_sorted_and_addresses_resolved() {
        let Ok(Parsed::Variants(variants)) = parse(&url(), MASTER.as_bytes()) else {
            panic!("a master playlist");
        };
        let rates: Vec<_> = variants.iter().map(|v| v.rendition.rate.as_bps()).collect();
        assert_eq!(rates, [1_000_000, 2_500_000]);
        assert_eq!(variants[0].rendition.height, Some(360));
        let addresses = ["https://host/low.m3u8", "https://host/video/mid/index.m3u8"];
        for (variant, address) in variants.iter().zip(addresses) {
            assert_eq!(variant.source, Source::Playlist(address.parse().unwrap()));
        }
    }

    #[test]
    fn byte_ranges_follow_one_another_and_give_sizes() {
        let level = media(RANGES).unwrap();
        let ranges: Vec<_> = level
            .segments
            .iter()
            .map(|(segment, _)| segment.range)
            .collect();
        assert_eq!(ranges, [Some((700, 500_000)), Some((500_700, 250_000))]);
        assert_eq!(level.header.as_ref().unwrap().range, Some((0, 700)));
        let rate = rate_of(&level).unwrap();
        assert_eq!(rate, Bandwidth::from_mbps(1));
        let rendition = Rendition { rate, height: None };
        let video = video(&[rendition], std::slice::from_ref(&level)).unwrap();
        assert_eq!(video.length(), Duration::from_secs(6));
        assert_eq!(video.chunks()[1].bytes, [250_000]);
    }

    #[test]
    fn what_cannot_be_played_is_refused() {
        let live = RANGES.replace("#EXT-X-ENDLIST\n", "");
        assert!(matches!(media(&live), Err(PresentationError::Live)));
        let encrypted = RANGES.replace(
            "#EXTINF:4.0",
            "#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\n#EXTINF:4.0",
        );
        assert!(matches!(
            media(&encrypted),
            Err(PresentationError::Encrypted)
        ));
        let empty = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-ENDLIST\n";
        assert!(media(empty).is_err());
        let plain = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4.0,\na.m4s\n#EXT-X-ENDLIST\n";
        assert!(matches!(
            rate_of(&media(plain).unwrap()),
            Err(PresentationError::NoRate)
        ));
        assert!(parse(&url(), b"<html>").is_err());
    }

    #[test]
    fn levels_need_the_same_number_of_segments() {
        let whole = media(RANGES).unwrap();
        let mut short = whole.clone();
        short.segments.pop();
        let renditions = [1, 2].map(|mbps| Rendition {
            rate: Bandwidth::from_mbps(mbps),
            height: None,
        });
        let error = video(&renditions, &[whole, short]).unwrap_err();
        assert!(matches!(error, PresentationError::Segments(2, 1)));
    }
}
