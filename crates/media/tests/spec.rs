//! The text forms of sources: what is read, what is refused and how, and that both ways agree.

use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use swiftwater_media::FrameSource;
use swiftwater_media::source::{DemuxError, Encoding, SourceError, SourceKind, SourceSpec, sample};
use swiftwater_units::Bandwidth;

fn parse(text: &str) -> SourceSpec {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn refusal(text: &str) -> String {
    let error = text.parse::<SourceSpec>().expect_err("refused");
    error.to_string()
}

#[test]
fn a_constant_rate_source_is_read() {
    let rate = Bandwidth::from_mbps(4);
    assert_eq!(
        parse("cbr:4mbit,fps=60").kind,
        SourceKind::Constant(Encoding::new(rate, 60.0))
    );
    let spec = parse(" cbr:4 mbit/s, key=3 ,gop=120,for=1min");
    let encoding = Encoding::new(rate, 30.0).with_key_frames(120, 3.0);
    assert_eq!(spec.kind, SourceKind::Constant(encoding));
    assert_eq!(spec.length, Some(Duration::from_secs(60)));
    assert_eq!(spec.mean_rate(), Some(rate));
}

#[test]
fn a_variable_rate_source_is_read_and_has_defaults() {
    let full = parse("vbr:4mbit,fps=30,gop=60,key=5,sigma=0.3");
    assert_eq!(full, parse("vbr:4mbit"));
    let SourceKind::Variable { encoding, sigma } = parse("vbr:800kbps,gop=none,sigma=0.5").kind
    else {
        panic!("not variable");
    };
    assert_eq!((encoding.gop, sigma), (None, 0.5));
}

#[test]
fn recordings_are_read_and_paths_may_have_commas() {
    assert_eq!(parse("sample").kind, SourceKind::Sample { rate: None });
    let rate = Some(Bandwidth::from_mbps(2));
    assert_eq!(parse("sample,rate=2mbit").kind, SourceKind::Sample { rate });
    let path = "a,b/c d,fps=3.mp4".to_owned();
    assert_eq!(
        parse("file:a,b/c d,fps=3.mp4,rate=2mbit,for=5s"),
        SourceSpec {
            kind: SourceKind::File { path, rate },
            length: Some(Duration::from_secs(5)),
        }
    );
    let twice = parse("file:x,rate=2mbit,rate=3mbit");
    assert_eq!(twice.to_string(), "file:x,rate=2mbit,rate=3mbit");
    assert_eq!(twice.mean_rate(), Some(Bandwidth::from_mbps(3)));
    assert_eq!(parse("sample").mean_rate(), Some(sample().mean_rate()));
    assert_eq!(parse("file:x.mp4").mean_rate(), None);
}

#[test]
fn what_is_not_understood_is_refused_with_the_forms() {
    for text in [
        "",
        "cbr",
        "cbr:",
        "cbr:4",
        "cbr:4mbit,fps",
        "cbr:4mbit,fps=fast",
        "cbr:4mbit,sigma=0.3",
        "cbr:4mbit,fps=30,fps=60",
        "vbr:4mbit,gop=0",
        "file:",
        "file:,rate=1mbit",
        "sample,rate=0mbit",
        "sample,for=31000s,for=1s",
        "sample,for=99999min",
        "sample,fps=3",
        "talk.mp4",
    ] {
        let message = refusal(text);
        assert!(message.contains("cbr:4mbit[,fps=60]"), "{text}: {message}");
    }
}

#[test]
fn values_out_of_range_are_refused_with_the_range() {
    assert!(refusal("cbr:4mbit,fps=0").contains("use 1 to 1000"));
    assert!(refusal("cbr:0mbit").contains("1 byte to 64 MiB"));
    assert!(refusal("vbr:4mbit,key=0.5").contains("use 1 to 1000"));
    assert!(refusal("vbr:4mbit,sigma=2.5").contains("use 0 to 2"));
}

#[test]
fn every_kind_opens_and_gives_frames() {
    let assets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/fractal.mp4");
    let file = format!("file:{},rate=2mbit", assets.display());
    for text in ["cbr:2mbit", "vbr:2mbit", "sample,rate=2mbit", &file] {
        let mut source = parse(&format!("{text},for=10s")).open(7).unwrap();
        let frames: Vec<_> = std::iter::from_fn(|| source.next_frame()).collect();
        let bytes: u64 = frames.iter().map(|frame| u64::from(frame.size)).sum();
        assert!((bytes as f64 / 2.5e6 - 1.0).abs() < 0.01, "{text}: {bytes}");
        assert!(frames[0].is_key());
    }
}

#[test]
fn a_frame_table_in_a_file_opens() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("frames.csv");
    std::fs::write(&path, sample().to_string()).unwrap();
    let mut from_file = parse(&format!("file:{}", path.display())).open(0).unwrap();
    let mut from_sample = parse("sample").open(0).unwrap();
    for _ in 0..600 {
        assert_eq!(from_file.next_frame(), from_sample.next_frame());
    }
    std::fs::write(&path, "no table").unwrap();
    let error = parse(&format!("file:{}", path.display()))
        .open(0)
        .unwrap_err();
    assert!(matches!(error, SourceError::Table { .. }), "{error}");
}

#[test]
fn a_file_that_is_missing_or_no_video_is_named() {
    let error = parse("file:/nowhere/talk.mp4").open(0).unwrap_err();
    assert!(matches!(error, SourceError::Read { .. }));
    assert!(error.to_string().starts_with("/nowhere/talk.mp4: "));
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let error = parse(&format!("file:{}", manifest.display()))
        .open(0)
        .unwrap_err();
    assert!(
        matches!(&error, SourceError::Demux { source, .. } if matches!(source, DemuxError::NotMp4)),
        "{error}"
    );
}

fn encodings() -> impl Strategy<Value = Encoding> {
    let gop = proptest::option::of(1_u32..10_000);
    (
        10_000_u64..10_000_000_000,
        1.0..1000.0_f64,
        gop,
        1.0..1000.0_f64,
    )
        .prop_map(|(bps, fps, gop, key_factor)| Encoding {
            rate: Bandwidth::from_bps(bps),
            fps,
            gop,
            key_factor,
        })
}

fn kinds() -> impl Strategy<Value = SourceKind> {
    let rates = || proptest::option::of((1_u64..10_000_000_000_000).prop_map(Bandwidth::from_bps));
    let valid = || encodings().prop_filter("a stream", |encoding| encoding.validate().is_ok());
    prop_oneof![
        valid().prop_map(SourceKind::Constant),
        (valid(), 0.0..2.0_f64)
            .prop_map(|(encoding, sigma)| SourceKind::Variable { encoding, sigma }),
        ("[a-zA-Z0-9,./_-]{0,30}[a-z]", rates())
            .prop_map(|(path, rate)| SourceKind::File { path, rate }),
        rates().prop_map(|rate| SourceKind::Sample { rate }),
    ]
}

proptest! {
    #[test]
    fn what_is_written_reads_as_the_same(
        kind in kinds(),
        nanos in proptest::option::of(0_u64..=2_592_000_000_000_000),
    ) {
        let spec = SourceSpec { kind, length: nanos.map(Duration::from_nanos) };
        prop_assert_eq!(parse(&spec.to_string()), spec);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "((cbr|vbr|file|sample)[:,])?\\PC{0,40}") {
        let _ = text.parse::<SourceSpec>();
    }
}

#[test]
fn only_regular_files_are_read() {
    let folder = env!("CARGO_MANIFEST_DIR");
    let source: SourceSpec = format!("file:{folder}").parse().unwrap();
    let error = source.open(1).err().unwrap();
    assert!(error.to_string().contains(folder), "{error}");
    let cause = std::error::Error::source(&error).map(ToString::to_string);
    let told = format!("{error} {}", cause.unwrap_or_default());
    assert!(told.contains("not a regular file"), "{told}");
}
