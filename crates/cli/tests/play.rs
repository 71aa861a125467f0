//! `play`: adaptive video from a server of files, in real time.

use std::fmt::Write as _;

use crate::support::{Site, failed, succeeded, swiftwater};
use serde_json::Value;

/// Segments of half a second in two bitrates, the lower one as byte ranges of a file.
struct Video {
    files: Vec<(String, Vec<u8>)>,
}

impl Video {
    fn new(segments: usize) -> Self {
        let master = "#EXTM3U\n\
            #EXT-X-STREAM-INF:BANDWIDTH=160000,RESOLUTION=320x180\nlow.m3u8\n\
            #EXT-X-STREAM-INF:BANDWIDTH=1600000,RESOLUTION=640x360\nhigh.m3u8\n";
        let head = "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:1\n";
        let mut low = format!("{head}#EXT-X-MAP:URI=\"low.mp4\",BYTERANGE=\"500@0\"\n");
        let mut high = head.to_owned();
        let mut files = vec![("low.mp4".to_owned(), vec![1; 500 + segments * 10_000])];
        for segment in 0..segments {
            let offset = 500 + segment * 10_000;
            writeln!(
                low,
                "#EXTINF:0.5,\n#EXT-X-BYTERANGE:10000@{offset}\nlow.mp4"
            )
            .unwrap();
            writeln!(high, "#EXTINF:0.5,\nhigh-{segment}.m4s").unwrap();
            files.push((format!("high-{segment}.m4s"), vec![2; 100_000]));
        }
        low += "#EXT-X-ENDLIST\n";
        high += "#EXT-X-ENDLIST\n";
        let texts = [
            ("master.m3u8", master),
            ("low.m3u8", &low),
            ("high.m3u8", &high),
        ];
        let texts = texts.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()));
        files.extend(texts);
        Self { files }
    }

    fn site(&self, flags: &[&str]) -> Site {
        let files: Vec<(&str, &[u8])> = (self.files.iter())
            .map(|(name, content)| (name.as_str(), content.as_slice()))
            .collect();
        Site::start_with(&files, flags)
    }
}

fn rows(output: &str) -> Vec<Value> {
    let rows = output.lines().map(serde_json::from_str);
    rows.collect::<Result<_, _>>().unwrap()
}

fn play(site: &Site, file: &str, flags: &[&str]) -> std::process::Command {
    let mut command = swiftwater();
    command
        .args([
            "play",
            "--no-state",
            "--json",
            &site.url(&format!("/{file}")),
            "--ca",
        ])
        .arg(site.certificate())
        .args(flags);
    command
}

#[test]
fn a_video_is_played_to_its_end() {
    let site = Video::new(6).site(&[]);
    for protocol in ["h3", "tcp"] {
        let output = play(&site, "master.m3u8", &["--protocol", protocol])
            .output()
            .unwrap();
        let rows = rows(&succeeded(&output));
        let of = |event: &str| rows.iter().filter(|row| row["event"] == event).count();
        assert_eq!(
            (of("segment"), of("first_frame"), of("finished")),
            (6, 1, 1)
        );
        let result = rows.last().unwrap();
        assert_eq!(result["event"], "result");
        assert_eq!(result["segments"], 6);
        assert_eq!(result["stalls"], 0);
        assert_eq!(result["played_ms"], 3_000.0);
        let expected = if protocol == "h3" { "HTTP/3" } else { "TCP" };
        assert_eq!(result["protocol"], expected);
        // The first segment is of the lowest bitrate, with what precedes it; the last one of the highest.
        let segments: Vec<_> = rows
            .iter()
            .filter(|row| row["event"] == "segment")
            .collect();
        assert_eq!(segments[0]["bytes"], 10_500);
        assert_eq!(segments[5]["bytes"], 100_000);
        assert_eq!(result["switches"], 1);
        assert!((result["qoe"].as_f64().unwrap() - (0.16 + 5.0 * 1.6 - 1.44)).abs() < 0.01);
    }
}

#[test]
fn a_manifest_of_dash_is_played_to_its_end() {
    let manifest = "<?xml version=\"1.0\"?><MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\" type=\"static\" \
        mediaPresentationDuration=\"PT3S\"><Period><AdaptationSet mimeType=\"video/mp4\">\
        <Representation id=\"high\" bandwidth=\"1600000\" height=\"360\"><SegmentTemplate \
        media=\"$RepresentationID$-$Number$.m4s\" startNumber=\"0\" duration=\"1\" timescale=\"2\"/></Representation>\
        <Representation id=\"low\" bandwidth=\"160000\" height=\"180\"><BaseURL>low.mp4</BaseURL>\
        <SegmentBase indexRange=\"400-503\"><Initialization range=\"0-399\"/></SegmentBase></Representation>\
        </AdaptationSet></Period></MPD>";
    // An index of six segments of half a second (ISO/IEC 14496-12, section 8.16.3), after 400 bytes of header.
    let mut index = 104_u32.to_be_bytes().to_vec();
    index.extend(b"sidx\0\0\0\0");
    for word in [1, 2, 0, 0, 6] {
        index.extend(u32::to_be_bytes(word));
    }
    for _ in 0..6 {
        index.extend(10_000_u32.to_be_bytes());
        index.extend(1_u32.to_be_bytes());
        index.extend(0x9000_0000_u32.to_be_bytes());
    }
    assert_eq!(index.len(), 104);
    let mut video = Video::new(6);
    for (name, content) in &mut video.files {
        if name == "low.mp4" {
            *content = vec![1; 504 + 60_000];
            content[400..504].copy_from_slice(&index);
        }
    }
    let text = manifest.as_bytes().to_vec();
    video.files.push(("video.mpd".to_owned(), text));
    let site = video.site(&[]);
    let output = play(&site, "video.mpd", &[]).output().unwrap();
    let rows = rows(&succeeded(&output));
    let result = rows.last().unwrap();
    assert_eq!(result["segments"], 6);
    assert_eq!(result["played_ms"], 3_000.0);
    let segments = rows.iter().filter(|row| row["event"] == "segment");
    let bytes: Vec<_> = segments.map(|row| row["bytes"].as_u64().unwrap()).collect();
    assert_eq!((bytes[0], bytes[5]), (10_400, 100_000));
}

#[test]
fn a_viewer_leaves_when_told() {
    let site = Video::new(40).site(&[]);
    let output = play(&site, "low.m3u8", &["--for", "700ms", "--buffer", "1s"])
        .output()
        .unwrap();
    let rows = rows(&succeeded(&output));
    let result = rows.last().unwrap();
    let played = result["played_ms"].as_f64().unwrap();
    assert!((1.0..=700.0).contains(&played), "{played} ms");
    let segments = result["segments"].as_u64().unwrap();
    assert!((2..=4).contains(&segments), "{segments} segments");
    assert_eq!(result["bitrate_mbps"], 0.16);
}

#[test]
fn missing_segments_end_the_session_with_results() {
    let mut video = Video::new(4);
    video.files.retain(|(name, _)| !name.starts_with("high-"));
    let site = video.site(&[]);
    let output = play(&site, "master.m3u8", &["--failures", "2"])
        .output()
        .unwrap();
    let stdout = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(failed(&output, 13).contains("404"));
    let rows = rows(&stdout);
    assert_eq!(rows.last().unwrap()["failed_requests"], 2);
    assert_eq!(
        rows.iter().filter(|row| row["event"] == "failed").count(),
        2
    );
}

#[test]
fn what_is_no_video_is_refused_in_one_line() {
    let live = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\na.m4s\n";
    let site = Site::start_with(
        &[("page.html", b"<html>"), ("live.m3u8", live.as_bytes())],
        &[],
    );
    for (file, reason) in [("page.html", "neither a playlist"), ("live.m3u8", "live")] {
        let output = play(&site, file, &[]).output().unwrap();
        assert!(failed(&output, 1).contains(reason));
    }
    let output = play(&site, "missing.m3u8", &[]).output().unwrap();
    assert!(failed(&output, 13).contains("404"));
    let output = play(
        &site,
        "live.m3u8",
        &["--protocol", "tcp", "--path", "127.0.0.1"],
    )
    .output();
    assert!(failed(&output.unwrap(), 2).contains("--protocol"));
}
