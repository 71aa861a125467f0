//! What a player reads from servers: playlists, manifests, and the index of a file. What is accepted is within the limits, and can be
//! put together into a video or is refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use swiftwater_media::presentation::{
    Description, IndexedFile, Level, MAX_SEGMENTS, Resource, Source, indexed_level, parse, rate_of,
    video,
};
use swiftwater_media::streaming::Rendition;
use url::Url;

/// The most memory that the addresses of a description may take, with room for the ends of the limits.
const MAX_ADDRESSES: usize = 80 << 20;

fn check_resource(resource: &Resource) -> usize {
    assert!(matches!(resource.url.scheme(), "http" | "https"));
    assert!(resource.url.host_str().is_some());
    assert_eq!(resource.url.fragment(), None);
    resource.url.as_str().len()
}

/// Bytes of all addresses.
fn check_level(level: &Level) -> usize {
    assert!(!level.segments.is_empty());
    assert!(level.segments.len() <= MAX_SEGMENTS);
    for (_, duration) in &level.segments {
        assert!(!duration.is_zero());
    }
    let segments = level.segments.iter().map(|(segment, _)| segment);
    segments.chain(&level.header).map(check_resource).sum()
}

fn check_video(renditions: &[Rendition], levels: &[Level]) {
    if let Ok(video) = video(renditions, levels) {
        assert_eq!(video.chunks().len(), levels[0].segments.len());
        for chunk in video.chunks() {
            assert_eq!(chunk.bytes.len(), renditions.len());
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let url = Url::parse("https://host/video/master?token=1").expect("an address");
    match parse(&url, bytes) {
        Ok(Description::Level(level)) => {
            check_level(&level);
            if let Ok(rate) = rate_of(&level) {
                check_video(&[Rendition { rate, height: None }], &[level]);
            }
        }
        Ok(Description::Variants(variants)) => {
            assert!(!variants.is_empty());
            let rates = variants.iter().map(|variant| variant.rendition.rate);
            assert!(rates.is_sorted_by(|a, b| a < b));
            let renditions: Vec<_> = variants.iter().map(|it| it.rendition).collect();
            let levels = variants.into_iter().filter_map(|it| match it.source {
                Source::Level(level) => Some(level),
                _ => None,
            });
            let levels: Vec<_> = levels.collect();
            assert!(levels.iter().map(check_level).sum::<usize>() <= MAX_ADDRESSES);
            if levels.len() == renditions.len() {
                check_video(&renditions, &levels);
            }
        }
        Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
    }
    let len = bytes.len() as u64;
    let file = IndexedFile {
        url,
        header: None,
        index: (700, len),
    };
    if let Ok(level) = indexed_level(&file, bytes) {
        check_level(&level);
        // Segments follow the index, and each other.
        let mut end = 700 + len;
        for (segment, _) in &level.segments {
            let (offset, len) = segment.range.expect("a range of the file");
            assert!(offset >= end && len > 0);
            end = offset + len;
        }
    }
});
