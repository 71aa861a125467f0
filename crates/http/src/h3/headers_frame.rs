//! A HEADERS frame in one piece with its header (RFC 9114, section 7.2.2).

use super::frame::{FrameHeader, FrameType};

/// Room in front of the field section: one byte of type and at most eight of length.
const HEADER_ROOM: usize = 9;

/// Bytes that are allocated: enough for most sections.
const CAPACITY: usize = 128;

/// A HEADERS frame, encoded.
#[derive(Debug)]
pub(crate) struct HeadersFrame {
    bytes: Vec<u8>,
    /// Where the frame begins.
    start: usize,
}

impl HeadersFrame {
    /// The frame of the field section that `encode` appends.
    pub(crate) fn new(encode: impl FnOnce(&mut Vec<u8>)) -> Self {
        let mut bytes = Vec::with_capacity(CAPACITY);
        bytes.resize(HEADER_ROOM, 0);
        encode(&mut bytes);
        let header = FrameHeader::new(FrameType::Headers, (bytes.len() - HEADER_ROOM) as u64);
        let header = header.as_bytes();
        let start = HEADER_ROOM - header.len();
        bytes[start..HEADER_ROOM].copy_from_slice(header);
        Self { bytes, start }
    }

    /// Header and section.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}
