//! Ladders, chunked videos, generated chunk sizes, and tables in files.

use std::time::Duration;

use proptest::prelude::*;
use swiftwater_media::source::sample;
use swiftwater_media::streaming::{
    Chunk, ChunkedVideo, Ladder, LadderError, MAX_RENDITIONS, TableError, Variation, VideoError,
};
use swiftwater_units::Bandwidth;

const FOUR: Duration = Duration::from_secs(4);

fn ladder() -> Ladder {
    "1mbit, 2.5mbit,5mbit".parse().expect("a ladder")
}

#[test]
fn a_ladder_has_ascending_rates() {
    assert_eq!(ladder().levels(), 3);
    assert_eq!(ladder().rate(1), Bandwidth::from_kbps(2500));
    // Beyond the highest level.
    assert_eq!(ladder().rate(9), Bandwidth::from_mbps(5));
    assert_eq!(
        "".parse::<Ladder>()
            .map_err(|e| matches!(e, LadderError::Rate(_))),
        Err(true)
    );
    assert_eq!(
        "2mbit,1mbit".parse::<Ladder>(),
        Err(LadderError::NotAscending(1))
    );
    assert_eq!(
        "1mbit,1mbit".parse::<Ladder>(),
        Err(LadderError::NotAscending(1))
    );
    assert_eq!("0mbit,1mbit".parse::<Ladder>(), Err(LadderError::ZeroRate));
    let many: Vec<_> = (1..=MAX_RENDITIONS + 1)
        .map(|n| format!("{n}mbit"))
        .collect();
    assert_eq!(
        many.join(",").parse::<Ladder>(),
        Err(LadderError::TooManyRenditions(MAX_RENDITIONS + 1))
    );
    assert_eq!(Ladder::new(Vec::new()), Err(LadderError::Empty));
}

#[test]
fn the_level_within_a_rate_is_the_highest_that_fits() {
    let within = |kbps| ladder().level_within(Bandwidth::from_kbps(kbps));
    assert_eq!(
        [
            within(0),
            within(2499),
            within(2500),
            within(4999),
            within(99_000)
        ],
        [0, 0, 1, 1, 2]
    );
}

#[test]
fn chunks_of_constant_bitrate_have_nominal_sizes() {
    let video = ChunkedVideo::constant(Ladder::chorus(), FOUR, 3).expect("a video");
    assert_eq!(video.length(), Duration::from_secs(12));
    for chunk in video.chunks() {
        assert_eq!(
            chunk.bytes,
            [500_000, 1_250_000, 2_500_000, 4_000_000, 8_000_000]
        );
    }
    assert_eq!(video.looped(4), &video.chunks()[1]);
}

#[test]
fn a_video_needs_chunks_with_one_size_for_each_level() {
    let of = |duration, bytes: &[u64]| {
        let bytes = bytes.to_vec();
        ChunkedVideo::new(ladder(), vec![Chunk { duration, bytes }])
    };
    assert!(of(FOUR, &[1, 2, 3]).is_ok());
    assert_eq!(of(FOUR, &[1, 2]), Err(VideoError::Levels(0)));
    assert_eq!(of(FOUR, &[1, 0, 3]), Err(VideoError::Size(0)));
    assert_eq!(of(FOUR, &[1, 2, u64::MAX]), Err(VideoError::Size(0)));
    assert_eq!(of(Duration::ZERO, &[1, 2, 3]), Err(VideoError::Duration(0)));
    assert_eq!(of(Duration::MAX, &[1, 2, 3]), Err(VideoError::Duration(0)));
    assert_eq!(
        ChunkedVideo::new(ladder(), Vec::new()),
        Err(VideoError::Empty)
    );
    assert_eq!(
        ChunkedVideo::constant(ladder(), FOUR, usize::MAX),
        Err(VideoError::TooManyChunks)
    );
}

/// Mean and standard deviation of the sizes of a level, in KB.
fn moments(video: &ChunkedVideo, level: usize) -> (f64, f64) {
    let sizes: Vec<f64> = video
        .chunks()
        .iter()
        .map(|c| c.bytes[level] as f64 / 1e3)
        .collect();
    let mean = sizes.iter().sum::<f64>() / sizes.len() as f64;
    let square = sizes.iter().map(|size| (size - mean).powi(2)).sum::<f64>();
    (mean, (square / sizes.len() as f64).sqrt())
}

#[test]
fn generated_sizes_have_the_spread_of_the_films() {
    let films = [
        (Variation::BIG_BUCK_BUNNY, 2756.0, 149),
        (Variation::ELEPHANTS_DREAM, 4276.0, 164),
        (Variation::SINTEL, 3597.0, 222),
    ];
    for (film, deviation, chunks) in films {
        for seed in 0..20 {
            let video = film.video(Ladder::chorus(), FOUR, seed).expect("a video");
            assert_eq!(video.chunks().len(), chunks);
            let (mean, found) = moments(&video, 4);
            assert!((mean - 8000.0).abs() < 80.0, "{mean}");
            assert!(
                (found - deviation).abs() < 0.02 * deviation,
                "{found} {deviation}"
            );
            // All levels are complex in the same scenes.
            let first = &video.chunks()[0].bytes;
            assert!(first[4].abs_diff(16 * first[0]) <= 16);
        }
    }
}

#[test]
fn the_seed_decides_on_generated_sizes() {
    let video = |seed| {
        Variation::SINTEL
            .video(Ladder::chorus(), FOUR, seed)
            .expect("a video")
    };
    assert_eq!(video(3), video(3));
    assert_ne!(video(3), video(4));
}

#[test]
fn generators_reject_what_makes_no_video() {
    let film = Variation::SINTEL;
    let wide = Variation {
        spread: f64::NAN,
        ..film
    };
    assert!(matches!(
        wide.video(ladder(), FOUR, 1),
        Err(VideoError::Variation(_))
    ));
    assert_eq!(
        film.video(ladder(), Duration::ZERO, 1),
        Err(VideoError::Duration(0))
    );
    let long = Variation {
        length: Duration::MAX,
        ..film
    };
    assert_eq!(
        long.video(ladder(), FOUR, 1),
        Err(VideoError::TooManyChunks)
    );
    let empty = Variation {
        length: Duration::ZERO,
        ..film
    };
    assert_eq!(empty.video(ladder(), FOUR, 1), Err(VideoError::Empty));
}

#[test]
fn a_csv_table_is_read() {
    let text = "duration_ms,1000000,2500000\n4000,400,1000\n\n2500, 300 ,800\n";
    let video = ChunkedVideo::from_csv(text).expect("a table");
    assert_eq!(video.ladder().rate(1), Bandwidth::from_kbps(2500));
    assert_eq!(video.chunks()[1].duration, Duration::from_millis(2500));
    assert_eq!(video.chunks()[1].bytes, [300, 800]);
}

#[test]
fn errors_in_csv_tables_are_told_apart() {
    let read = ChunkedVideo::from_csv;
    for heading in ["", "4000,400", "duration_ms,fast", "bytes,1000000\n"] {
        assert!(
            matches!(read(heading), Err(TableError::Heading)),
            "{heading}"
        );
    }
    let line = "duration_ms,1000000\n4000,400\n4000,-1\n";
    assert!(matches!(read(line), Err(TableError::Line(3))));
    assert!(matches!(
        read("duration_ms,1000000\n4000,400,900\n"),
        Err(TableError::Video(VideoError::Levels(0)))
    ));
    assert!(matches!(
        read("duration_ms,2000000,1000000\n"),
        Err(TableError::Ladder(LadderError::NotAscending(1)))
    ));
    assert!(matches!(
        read("duration_ms"),
        Err(TableError::Ladder(LadderError::Empty))
    ));
}

#[test]
fn a_json_table_is_read() {
    let text = r#"{"renditions": [{"bps": 1000000, "height": 360}, {"bps": 2500000}],
        "chunks": [{"duration_ms": 4000, "bytes": [400, 1000]}]}"#;
    let video = ChunkedVideo::from_json(text).expect("a table");
    assert_eq!(video.ladder().renditions()[0].height, Some(360));
    assert_eq!(video.chunks()[0].bytes, [400, 1000]);
    for text in ["", "[]", r#"{"renditions": [], "chunks": [], "more": 1}"#] {
        let error = ChunkedVideo::from_json(text);
        assert!(matches!(error, Err(TableError::Json(_))), "{text}");
    }
}

#[test]
fn files_are_read_by_extension() {
    let folder = std::env::temp_dir().join(format!("chunk-tables-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("video.CSV");
    std::fs::write(&path, "duration_ms,1000000\n4000,400\n").expect("written");
    let read = ChunkedVideo::read(&path);
    let missing = ChunkedVideo::read(&folder.join("none.json"));
    let other = ChunkedVideo::read(&folder.join("video.txt"));
    std::fs::remove_dir_all(&folder).expect("removed");
    assert_eq!(read.expect("a table").chunks().len(), 1);
    assert!(matches!(missing, Err(TableError::Read { .. })));
    assert!(matches!(other, Err(TableError::Extension { .. })));
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(
        rates in proptest::collection::btree_set(1_u64..1_000_000_000, 1..6),
        chunks in proptest::collection::vec((1_u64..600_000, 1_u64..1 << 30), 1..20),
    ) {
        let rates: Vec<String> = rates.iter().map(|rate| format!("{rate}bit")).collect();
        let ladder: Ladder = rates.join(",").parse().expect("a ladder");
        let chunks = chunks.iter().map(|(millis, bytes)| Chunk {
            duration: Duration::from_millis(*millis),
            bytes: vec![*bytes; ladder.levels()],
        });
        let video = ChunkedVideo::new(ladder.clone(), chunks.collect()).expect("a video");
        prop_assert_eq!(ChunkedVideo::from_csv(&video.to_csv()).expect("a table"), video);
    }

    #[test]
    fn no_text_causes_a_panic(text in ".{0,200}", lines in "(duration_ms|[0-9,\n]){0,80}") {
        let _ = ChunkedVideo::from_csv(&text);
        let _ = ChunkedVideo::from_csv(&lines);
        let _ = ChunkedVideo::from_json(&text);
        let _ = text.parse::<Ladder>();
    }
}

#[test]
fn a_video_of_an_encode_varies_as_the_encode() {
    let encode = sample();
    let ladder = Ladder::chorus();
    let video =
        ChunkedVideo::of_encode(&encode, ladder.clone(), Duration::from_secs(2)).expect("a video");
    assert_eq!(video.length(), encode.period());
    assert_eq!(video.chunks().len(), 5);
    let frames = encode.frames().iter();
    let first = frames.take_while(|frame| frame.at < Duration::from_secs(2));
    let first: u64 = first.map(|frame| u64::from(frame.size)).sum();
    for (level, rendition) in ladder.renditions().iter().enumerate() {
        let all: u64 = video
            .chunks()
            .iter()
            .map(|chunk| chunk.bytes_at(level))
            .sum();
        let nominal = rendition.rate.bytes_in(encode.period());
        assert!(all.abs_diff(nominal) <= nominal / 1_000, "{all}, {nominal}");
        // The first chunk has the same share of the video at each level.
        let expected = first as f64 / encode.bytes() as f64 * all as f64;
        let own = video.chunks()[0].bytes_at(level) as f64;
        assert!((own - expected).abs() <= 2.0, "{own}, {expected}");
    }
    let ladder = Ladder::chorus();
    assert!(ChunkedVideo::of_encode(&encode, ladder.clone(), Duration::ZERO).is_err());
    assert!(ChunkedVideo::of_encode(&encode, ladder, Duration::from_nanos(1)).is_err());
}
