//! Playlists of HTTP Live Streaming: what is played of them, and what is refused.

use std::time::Duration;

use swiftwater_media::presentation::{
    Description, Level, PresentationError, Source, parse, rate_of, video,
};
use swiftwater_media::streaming::Rendition;
use swiftwater_units::Bandwidth;
use url::Url;

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
        Description::Level(level) => Ok(level),
        Description::Variants(_) => panic!("a master playlist"),
    }
}

#[test]
fn bitrates_are_sorted_and_addresses_resolved() {
    let Ok(Description::Variants(variants)) = parse(&url(), MASTER.as_bytes()) else {
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

#[test]
fn a_short_playlist_does_not_stand_for_gigabytes_of_addresses() {
    let long = format!("https://host/{}/index.m3u8", "d".repeat(7_000));
    let playlist = |segments: usize| {
        let all = "#EXTINF:1,\na\n".repeat(segments);
        format!("#EXTM3U\n#EXT-X-TARGETDURATION:4\n{all}#EXT-X-ENDLIST\n")
    };
    let parsed = |url: &Url, segments| parse(url, playlist(segments).as_bytes());
    let long: Url = long.parse().unwrap();
    assert!(parsed(&long, 9_000).is_ok());
    for refused in [parsed(&long, 10_000), parsed(&url(), 302_401)] {
        assert!(matches!(refused, Err(PresentationError::TooManySegments)));
    }
    assert!(parsed(&url(), 302_400).is_ok());
}

#[test]
fn addresses_are_of_the_web() {
    for bad in ["ftp://host/a", "file:///etc/passwd", "data:,x", "https://"] {
        let text = format!("#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:1,\n{bad}\n#EXT-X-ENDLIST\n");
        let refused = parse(&url(), text.as_bytes()).unwrap_err();
        assert!(
            matches!(refused, PresentationError::Address(..)),
            "{bad}: {refused}"
        );
    }
}
