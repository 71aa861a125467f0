//! The index of segments in a file of ISO base media (ISO/IEC 14496-12, section 8.16.3, `sidx`), whose syntax is that
//! of `mp4_atom`.

use std::time::Duration;

use mp4_atom::{Decode as _, Sidx};

use super::{IndexedFile, Level, PresentationError, Resource};

/// The segments of `file`, whose index is `bytes`.
///
/// # Errors
///
/// [`PresentationError::Index`] for anything else than an index of segments, and [`PresentationError::NoSegments`].
pub fn indexed_level(file: &IndexedFile, bytes: &[u8]) -> Result<Level, PresentationError> {
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
