//! Reading MP4: the sample, files made here box by box, and files that are broken.

use std::io::Cursor;
use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;
use swiftwater_media::FrameKind;
use swiftwater_media::source::{DemuxError, Recording, RecordingError, read_mp4, sample};

fn read(bytes: &[u8]) -> Result<Recording, DemuxError> {
    read_mp4(&mut Cursor::new(bytes))
}

fn fractal() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/fractal.mp4");
    std::fs::read(path).expect("part of the repository")
}

/// A box of the given type.
fn atom(kind: &str, parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    let size = body.len() as u32 + 8;
    [&size.to_be_bytes()[..], kind.as_bytes(), &body].concat()
}

/// Numbers of 32 bits.
fn words(values: &[u32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_be_bytes())
        .collect()
}

fn hdlr(kind: &str) -> Vec<u8> {
    // The name as QuickTime writes it: a length, and no zero at the end.
    let name = b"\x05Video";
    atom("hdlr", &[&words(&[0, 0]), kind.as_bytes(), &[0; 12], name])
}

fn tkhd(id: u32) -> Vec<u8> {
    atom("tkhd", &[&words(&[7, 0, 0, id, 0, 0]), &[0; 60]])
}

fn mdhd(timescale: u32) -> Vec<u8> {
    atom("mdhd", &[&words(&[0, 0, 0, timescale, 0, 0])])
}

fn trak(id: u32, kind: &str, timescale: u32, tables: &[u8]) -> Vec<u8> {
    let minf = atom("minf", &[&atom("stbl", &[tables])]);
    let mdia = atom("mdia", &[&mdhd(timescale), &hdlr(kind), &minf]);
    atom("trak", &[&tkhd(id), &mdia])
}

/// Frames of 100, 20, 0 and 30 bytes at 0, 2, 4 and 7 ticks, the last one 5 long; the first and the
/// last are sync samples.
fn tables() -> Vec<u8> {
    [
        atom("stts", &[&words(&[0, 3, 2, 2, 1, 3, 1, 5])]),
        atom("stss", &[&words(&[0, 2, 1, 4])]),
        atom("stsz", &[&words(&[0, 0, 4, 100, 20, 0, 30])]),
    ]
    .concat()
}

fn facts(recording: &Recording) -> Vec<(u64, u32, bool)> {
    let frames = recording.frames().iter();
    frames
        .map(|frame| {
            let millis = frame.at.as_millis() as u64;
            (millis, frame.size, frame.kind == FrameKind::Key)
        })
        .collect()
}

#[test]
fn the_sample_file_says_what_the_embedded_table_says() {
    let recording = read(&fractal()).unwrap();
    assert_eq!(recording, sample());
}

#[test]
fn the_first_video_track_is_read_whatever_its_codec() {
    let sound = trak(1, "soun", 1000, b"");
    let video = trak(2, "vide", 10, &tables());
    let moov = atom("moov", &[&sound, &video, &trak(3, "vide", 10, b"")]);
    let recording = read(&moov).unwrap();
    // A frame without bytes is none.
    let expected = [(0, 100, true), (200, 20, false), (700, 30, true)];
    assert_eq!(facts(&recording), expected);
    assert_eq!(recording.period(), Duration::from_millis(1200));
}

#[test]
fn without_a_sync_table_every_frame_is_a_key_frame() {
    let tables = [
        atom("stts", &[&words(&[0, 1, 3, 4])]),
        atom("stsz", &[&words(&[0, 500, 3])]),
    ];
    let moov = atom("moov", &[&trak(1, "vide", 100, &tables.concat())]);
    let expected = [(0, 500, true), (40, 500, true), (80, 500, true)];
    assert_eq!(facts(&read(&moov).unwrap()), expected);
}

/// A movie without frames of its own, whose fragments' frames are 40 ticks long and no sync samples
/// unless they say otherwise.
fn fragmented_movie() -> Vec<u8> {
    let empty = [
        atom("stts", &[&words(&[0, 0])]),
        atom("stsz", &[&words(&[0, 0, 0])]),
    ];
    let trex = |id, flags| atom("trex", &[&words(&[0, id, 1, 40, 0, flags])]);
    let mvex = atom("mvex", &[&trex(9, 0), &trex(2, 0x0001_0000)]);
    let video = trak(2, "vide", 1000, &empty.concat());
    atom("moov", &[&video, &mvex])
}

/// A fragment of the track with the number `id` that begins at `time`: the first frame is a sync
/// sample.
fn fragment(id: u32, time: u32, sizes: &[u32]) -> Vec<u8> {
    let tfhd = atom("tfhd", &[&words(&[0, id])]);
    let tfdt = atom("tfdt", &[&words(&[0, time])]);
    // Flags: flags of the first sample, sizes of all.
    let run = [&[0x0000_0204, sizes.len() as u32, 0][..], sizes].concat();
    let traf = atom("traf", &[&tfhd, &tfdt, &atom("trun", &[&words(&run)])]);
    atom("moof", &[&atom("mfhd", &[&words(&[0, 1])]), &traf])
}

#[test]
fn fragments_are_joined() {
    let file = [
        fragmented_movie(),
        fragment(2, 5000, &[900, 100]),
        atom("mdat", &[&[0; 1000]]),
        fragment(9, 7, &[1, 2, 3]),
        fragment(2, 5080, &[800, 200]),
    ];
    let recording = read(&file.concat()).unwrap();
    let expected = [
        (0, 900, true),
        (40, 100, false),
        (80, 800, true),
        (120, 200, false),
    ];
    assert_eq!(facts(&recording), expected);
    assert_eq!(recording.period(), Duration::from_millis(160));
}

#[test]
fn fragments_that_go_back_in_time_are_refused() {
    let file = [
        fragmented_movie(),
        fragment(2, 5000, &[900, 100]),
        fragment(2, 5000, &[800, 200]),
    ];
    let error = read(&file.concat()).unwrap_err();
    assert!(
        matches!(
            error,
            DemuxError::Recording(RecordingError::TimeGoesBack(2))
        ),
        "{error}"
    );
}

#[test]
fn a_file_without_video_says_so() {
    let moov = atom("moov", &[&trak(1, "soun", 1000, b"")]);
    for file in [moov, atom("ftyp", &[b"isom"]), Vec::new()] {
        assert!(matches!(read(&file), Err(DemuxError::NoVideo)));
    }
}

#[test]
fn times_are_to_the_nanosecond() {
    let tables = [
        atom("stts", &[&words(&[0, 1, 30, 1001])]),
        atom("stsz", &[&words(&[0, 500, 30])]),
    ];
    let moov = atom("moov", &[&trak(1, "vide", 30_000, &tables.concat())]);
    let recording = read(&moov).unwrap();
    let second = recording.frames()[1];
    assert_eq!(second.at, Duration::from_nanos(33_366_667));
    assert_eq!(recording.period(), Duration::from_millis(1001));
}

#[test]
fn a_file_of_another_format_says_so() {
    let webm = [0x1a, 0x45, 0xdf, 0xa3, 0x9f, 0x42, 0x86, 0x81, 0x01];
    for file in [&webm[..], b"at_us,bytes,kind", b"abc"] {
        assert!(matches!(read(file), Err(DemuxError::NotMp4)));
    }
}

#[test]
fn a_broken_table_is_named() {
    let broken = |timescale, tables: &[Vec<u8>]| {
        let moov = atom("moov", &[&trak(1, "vide", timescale, &tables.concat())]);
        read(&moov).unwrap_err().to_string()
    };
    let stts = atom("stts", &[&words(&[0, 1, 3, 4])]);
    let stsz = atom("stsz", &[&words(&[0, 500, 3])]);
    let tables = [stts, stsz];
    assert!(broken(0, &tables).contains("mdhd"));
    assert!(broken(100, &tables[..1]).contains("stsz: it is missing"));
    let too_many = atom("stsz", &[&words(&[0, 500, 4])]);
    assert!(broken(100, &[tables[0].clone(), too_many]).contains("stts"));
    let cut = atom("stsz", &[&words(&[0, 0, 3, 10])]);
    assert!(broken(100, &[tables[0].clone(), cut]).contains("stsz"));
}

#[test]
fn a_table_that_claims_billions_of_frames_is_refused() {
    let all = u32::MAX;
    let tables = [
        atom("stts", &[&words(&[0, 1, all, 4])]),
        atom("stsz", &[&words(&[0, 500, all])]),
    ];
    let moov = atom("moov", &[&trak(1, "vide", 100, &tables.concat())]);
    let error = read(&moov).unwrap_err();
    assert!(
        matches!(error, DemuxError::Recording(RecordingError::TooManyFrames)),
        "{error}"
    );
}

#[test]
fn the_sample_file_cut_short_is_refused() {
    let file = fractal();
    let movie = tables_end(&file);
    let cuts = (0..movie).step_by(97).chain([movie, file.len() - 1]);
    for cut in cuts {
        // A file that ends before a box begins may lack only media data.
        if let Ok(recording) = read(&file[..cut]) {
            assert_eq!(cut, movie);
            assert_eq!(recording, sample());
        }
    }
}

/// Where the sample file's `moov` ends; what comes after it is media data.
fn tables_end(file: &[u8]) -> usize {
    let kind = file.windows(4).position(|letters| letters == b"moov");
    let start = kind.expect("a movie") - 4;
    let size = file[start..].first_chunk().copied().expect("a size");
    start + u32::from_be_bytes(size) as usize
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let _ = read(&bytes);
    }

    /// Bytes changed in the tables of real files, where they do most harm.
    #[test]
    fn damaged_files_are_read_or_refused(
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        which in 0..3,
    ) {
        let mut file = match which {
            0 => fractal(),
            1 => atom("moov", &[&trak(2, "vide", 10, &tables())]),
            _ => [fragmented_movie(), fragment(2, 5000, &[900, 100])].concat(),
        };
        if which == 0 {
            file.truncate(tables_end(&file));
        }
        for (index, byte) in damage {
            let index = index.index(file.len());
            file[index] = byte;
        }
        let _ = read(&file);
    }
}
