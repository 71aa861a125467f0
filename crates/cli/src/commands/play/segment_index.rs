//! The index of segments in a file of ISO base media (ISO/IEC 14496-12, section 8.16.3, `sidx`), whose syntax is that
//! of `mp4_atom`.

use std::time::Duration;

use mp4_atom::{Decode as _, Sidx};

use super::presentation::{IndexedFile, Level, PresentationError, Resource};

/// The segments of `file`, whose index is `bytes`.
pub(super) fn level(file: &IndexedFile, bytes: &[u8]) -> Result<Level, PresentationError> {
    let index = Sidx::decode(&mut &*bytes).map_err(|_| PresentationError::Index("it is none"))?;
    let wrong = PresentationError::Index;
    if index.timescale == 0 {
        return Err(wrong("it has no timescale"));
    }
    // Segments follow the index, after `first_offset` more bytes.
    let end = file.index.0.checked_add(file.index.1);
    let first = end.and_then(|end| end.checked_add(index.first_offset));
    let mut offset = first.ok_or(wrong("its offset is too large"))?;
    let mut segments = Vec::with_capacity(index.references.len());
    for reference in &index.references {
        if reference.reference_type {
            return Err(wrong("it refers to other indices"));
        }
        let len = u64::from(reference.referenced_size);
        let seconds = f64::from(reference.subsegment_duration) / f64::from(index.timescale);
        let duration = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        if len == 0 || duration.is_zero() {
            return Err(wrong("a segment has no size or no play time"));
        }
        let resource = Resource {
            url: file.url.clone(),
            range: Some((offset, len)),
        };
        segments.push((resource, duration));
        offset = offset
            .checked_add(len)
            .ok_or(wrong("its offset is too large"))?;
    }
    if segments.is_empty() {
        return Err(PresentationError::NoSegments);
    }
    let header = file.header.map(|range| Resource {
        url: file.url.clone(),
        range: Some(range),
    });
    Ok(Level { header, segments })
}

#[cfg(test)]
mod tests {
    use mp4_atom::{Encode as _, SegmentReference};

    use super::*;

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
        let level = level(&file(len), &bytes).unwrap();
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
            assert!(level(&file(bytes.len() as u64), bytes).is_err());
        }
        let whole = index(&[(5_000, 2_000)]);
        for end in 0..whole.len() {
            assert!(level(&file(end as u64), &whole[..end]).is_err());
        }
    }
}
