//! Text that may come from a peer, and units, as qlog wants them.

use std::time::Duration;

/// The longest free text in a log, characters. Peers choose some of it.
const MAX_TEXT: usize = 256;

/// The beginning of `text`, at most 256 characters.
pub(crate) fn shortened(text: &str) -> &str {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// A duration in qlog's unit, milliseconds; the nearest number, so that it is written in few digits.
pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e6
}

/// `Some(value)` if JSON has a form for it: neither infinite nor not a number.
pub(crate) fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}
