//! The index of segments in a file.

use mp4_atom::{Encode as _, SegmentReference, Sidx};

use swiftwater_media::presentation::{IndexedFile, indexed_level};

fn file(index: u64) -> IndexedFile {
    IndexedFile {
        url: "https://host/video.mp4".parse().unwrap(),
        header: Some((0, 700)),
        index: (700, index),
    }
}

fn index(sizes: &[(u32, u32)]) -> Vec<u8> {
    let reference = |(size, time): &(u32, u32)| SegmentReference {
        reference_type: false,
        referenced_size: *size,
        subsegment_duration: *time,
        starts_with_sap: true,
        sap_type: 1,
        sap_delta_time: 0,
    };
    let index = Sidx {
        reference_id: 1,
        timescale: 1_000,
        earliest_presentation_time: 0,
        first_offset: 10,
        references: sizes.iter().map(reference).collect(),
    };
    let mut bytes = Vec::new();
    index.encode(&mut bytes).unwrap();
    bytes
}

#[test]
fn segments_follow_the_index() {
    let bytes = index(&[(5_000, 2_000), (2_500, 1_500)]);
    let len = bytes.len() as u64;
    let level = indexed_level(&file(len), &bytes).unwrap();
    let ranges = level
        .segments
        .iter()
        .map(|(segment, time)| (segment.range.unwrap(), time.as_millis()));
    let first = 700 + len + 10;
    let expected = [((first, 5_000), 2_000), ((first + 5_000, 2_500), 1_500)];
    assert_eq!(ranges.collect::<Vec<_>>(), expected);
    assert_eq!(level.header.unwrap().range, Some((0, 700)));
}

#[test]
fn bytes_that_are_no_index_are_refused() {
    for bytes in [
        &b""[..],
        b"<html></html>",
        &index(&[]),
        &index(&[(0, 1)]),
        &index(&[(1, 0)]),
    ] {
        assert!(indexed_level(&file(bytes.len() as u64), bytes).is_err());
    }
    let whole = index(&[(5_000, 2_000)]);
    for end in 0..whole.len() {
        assert!(indexed_level(&file(end as u64), &whole[..end]).is_err());
    }
}
