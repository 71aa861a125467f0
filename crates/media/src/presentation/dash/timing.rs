//! When the segments of a template or list begin and how long they play (ISO/IEC 23009-1, sections 5.3.9.2 and
//! 5.3.9.6).

use std::time::Duration;

use dash_mpd_core::SegmentTimeline;

use super::super::{MAX_SEGMENTS, PresentationError};

/// What a manifest says about the times of segments.
pub(super) struct Span<'a> {
    /// Units per second.
    pub(super) timescale: u64,
    /// Of each segment, in units.
    pub(super) duration: Option<f64>,
    pub(super) timeline: Option<&'a SegmentTimeline>,
    /// Time of the period's begin, in units.
    pub(super) offset: u64,
    /// How long the period lasts.
    pub(super) end: Option<Duration>,
}

/// Begin in units and play time of each segment, at most `most`.
pub(super) fn spans(
    span: &Span<'_>,
    most: Option<usize>,
) -> Result<Vec<(u64, Duration)>, PresentationError> {
    if span.timescale == 0 {
        return Err(PresentationError::Duration(0));
    }
    let spans = match (span.timeline, span.duration) {
        (Some(timeline), _) => from_timeline(span, timeline, most),
        (None, Some(duration)) => of_equal_length(span, duration, most),
        (None, None) => Err(PresentationError::Duration(0)),
    }?;
    if spans.is_empty() {
        return Err(PresentationError::NoSegments);
    }
    Ok(spans)
}

/// Units of the period's end.
fn end(span: &Span<'_>) -> Option<u64> {
    let units = span.end?.as_secs_f64() * span.timescale as f64;
    Some(span.offset.saturating_add(units.round() as u64))
}

fn play_time(span: &Span<'_>, units: f64, index: usize) -> Result<Duration, PresentationError> {
    let time = Duration::try_from_secs_f64(units / span.timescale as f64).ok();
    let time = time.filter(|time| !time.is_zero());
    time.ok_or(PresentationError::Duration(index))
}

fn from_timeline(
    span: &Span<'_>,
    timeline: &SegmentTimeline,
    most: Option<usize>,
) -> Result<Vec<(u64, Duration)>, PresentationError> {
    let limit = most.unwrap_or(usize::MAX);
    let mut spans = Vec::new();
    let mut time = timeline.segments.first().and_then(|run| run.t).unwrap_or(0);
    for (index, run) in timeline.segments.iter().enumerate() {
        time = run.t.unwrap_or(time);
        // A negative count means up to the next run or the period's end.
        let next = timeline.segments.get(index + 1).and_then(|next| next.t);
        let more = if let Ok(more) = u64::try_from(run.r.unwrap_or(0)) {
            more
        } else {
            let until = next.or_else(|| end(span));
            let until = until.ok_or(PresentationError::Duration(spans.len()))?;
            let length = until.saturating_sub(time);
            length.div_ceil(run.d.max(1)).saturating_sub(1)
        };
        for _ in 0..=more {
            if spans.len() >= limit {
                return Ok(spans);
            }
            if spans.len() >= MAX_SEGMENTS {
                return Err(PresentationError::TooManySegments);
            }
            spans.push((time, play_time(span, run.d as f64, spans.len())?));
            time = time.saturating_add(run.d);
        }
    }
    Ok(spans)
}

fn of_equal_length(
    span: &Span<'_>,
    duration: f64,
    most: Option<usize>,
) -> Result<Vec<(u64, Duration)>, PresentationError> {
    let whole = play_time(span, duration, 0)?.as_secs_f64();
    let length = span.end.map(|end| end.as_secs_f64());
    // A rest of less than a millisecond is rounding of the manifest's times.
    let in_length = length.map(|length| ((length - 0.001) / whole).ceil().max(1.0) as usize);
    let count = match (in_length, most) {
        (Some(count), Some(most)) => count.min(most),
        (Some(count), None) | (None, Some(count)) => count,
        (None, None) => return Err(PresentationError::Duration(0)),
    };
    if count > MAX_SEGMENTS {
        return Err(PresentationError::TooManySegments);
    }
    let span_of = |index: usize| {
        let begin = index as f64 * duration;
        let rest = length.map_or(whole, |length| length - index as f64 * whole);
        let units = whole.min(rest) * span.timescale as f64;
        let time = span.offset.saturating_add(begin as u64);
        Ok((time, play_time(span, units, index)?))
    };
    (0..count).map(span_of).collect()
}
