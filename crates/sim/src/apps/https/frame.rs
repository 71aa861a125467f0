//! Frames of HTTP/2 (RFC 9113, section 4.1), and what requests and responses have in them here.

/// Length of a frame's header.
pub(super) const HEAD_LEN: usize = 9;

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const SETTINGS: u8 = 4;

/// Flag of the last frame of a stream.
pub(super) const END_STREAM: u8 = 1;

/// What a client sends first (RFC 9113, section 3.4).
pub(super) const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes of settings, three of them.
pub(super) const SETTINGS_LEN: usize = 18;

/// Bytes that a request's HEADERS must have for what the server has to know.
pub(super) const REQUEST_LEN: usize = 16;

/// A frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
    pub(super) payload: &'a [u8],
}

impl Frame<'_> {
    /// Appends the frame to `out`.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let [_, length @ ..] = (self.payload.len() as u32).to_be_bytes();
        out.extend_from_slice(&length);
        out.extend_from_slice(&[self.kind, self.flags]);
        out.extend_from_slice(&self.stream.to_be_bytes());
        out.extend_from_slice(self.payload);
    }
}

/// The first whole frame in `bytes`, and its length with its header.
pub(super) fn first(bytes: &[u8]) -> Option<(Frame<'_>, usize)> {
    let (head, rest) = bytes.split_first_chunk::<HEAD_LEN>()?;
    let [a, b, c, kind, flags, stream @ ..] = *head;
    let length = u32::from_be_bytes([0, a, b, c]) as usize;
    let frame = Frame {
        kind,
        flags,
        stream: u32::from_be_bytes(stream),
        payload: rest.get(..length)?,
    };
    Some((frame, HEAD_LEN + length))
}

/// The payload of a request's HEADERS: length and pattern of the response, then zeros.
pub(super) fn request(len: usize, response_len: u64, pattern: u64) -> Vec<u8> {
    let mut payload = response_len.to_be_bytes().to_vec();
    payload.extend_from_slice(&pattern.to_be_bytes());
    payload.resize(len.max(REQUEST_LEN), 0);
    payload
}

/// Length and pattern of the response that a request asks for.
pub(super) fn parse_request(payload: &[u8]) -> Option<(u64, u64)> {
    let (len, rest) = payload.split_first_chunk()?;
    let pattern = rest.first_chunk()?;
    Some((u64::from_be_bytes(*len), u64::from_be_bytes(*pattern)))
}
