//! Text that may come from a peer, and quantities, in qlog's formats.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use serde::{Serialize, Serializer};

/// The longest free text in a log, characters. Some of it comes from peers.
const MAX_TEXT: usize = 256;

/// The start of `text`, at most 256 characters.
pub(crate) fn shortened(text: &str) -> &str {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// A duration in qlog's unit, milliseconds, with few digits.
pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e6
}

/// `Some(value)` if JSON can represent it: neither infinite nor NaN.
pub(crate) fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// Bytes as the draft's `hexstring`.
#[derive(Clone, Debug)]
pub(crate) struct Hex<'a>(Cow<'a, [u8]>);

impl<'a> Hex<'a> {
    /// Borrowed bytes.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(Cow::Borrowed(bytes))
    }

    /// An owned copy.
    pub(crate) fn owned(bytes: &[u8]) -> Self {
        Self(Cow::Owned(bytes.to_vec()))
    }
}

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Serialize for Hex<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A version of QUIC as the draft's `hexstring`.
pub(crate) struct Version(pub(crate) u32);

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:08x}", self.0))
    }
}
