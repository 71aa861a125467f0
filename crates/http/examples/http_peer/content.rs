//! Generated content and its report: a pattern that every peer can compute, and its CRC-32.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

/// Header whose value is long.
pub(crate) const LARGE: HeaderName = HeaderName::from_static("x-large");

/// Beginning of the names of short headers.
pub(crate) const SMALL: &str = "x-small-";

/// The trailer of the trailers' case.
pub(crate) const TRAILER: HeaderName = HeaderName::from_static("x-trailer");

/// `size` bytes that depend on their place.
pub(crate) fn pattern(size: usize) -> Bytes {
    (0..size)
        .map(|at| (at ^ (at >> 8) ^ (at >> 16)) as u8)
        .collect()
}

/// A header value of `size` letters.
pub(crate) fn letters(size: usize) -> HeaderValue {
    let text: Bytes = (0..size).map(|at| b'a' + (at % 26) as u8).collect();
    HeaderValue::from_maybe_shared(text).expect("letters are a header value")
}

/// `count` short headers, whose values depend on `turn`.
pub(crate) fn add_small(headers: &mut HeaderMap, count: usize, turn: usize) {
    for nth in 0..count {
        let name = HeaderName::from_bytes(format!("{SMALL}{nth}").as_bytes());
        let value = HeaderValue::from_str(&format!("value {nth} of turn {turn}"));
        headers.insert(
            name.expect("letters and digits are a name"),
            value.expect("plain text is a value"),
        );
    }
}

/// How many short headers there are.
pub(crate) fn count_small(headers: &HeaderMap) -> usize {
    let names = headers.keys().map(HeaderName::as_str);
    names.filter(|name| name.starts_with(SMALL)).count()
}

/// CRC-32 as in zlib and Ethernet, fed piece by piece.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Crc(u32);

impl Crc {
    /// Of one piece.
    pub(crate) fn of(data: &[u8]) -> u32 {
        let mut crc = Self::default();
        crc.feed(data);
        crc.0
    }

    pub(crate) fn feed(&mut self, data: &[u8]) {
        let mut state = !self.0;
        for &byte in data {
            state ^= u32::from(byte);
            for _ in 0..8 {
                state = (state >> 1) ^ (0xedb8_8320 & (state & 1).wrapping_neg());
            }
        }
        self.0 = !state;
    }

    pub(crate) fn value(self) -> u32 {
        self.0
    }
}
