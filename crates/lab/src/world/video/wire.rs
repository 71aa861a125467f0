//! Encoding of a video frame in a stream: a header, then its content, which is a pattern of the
//! frame's index.
//!
//! The header is 21 bytes in network order: index (8), time since the stream's start in nanoseconds
//! (8), size (4), kind (1: 1 for key frames).

use std::time::Duration;

use swiftwater_media::{Frame, FrameKind};
use swiftwater_quic::{SendStream, WriteError};
use swiftwater_sim::Pattern;

const HEADER_LEN: usize = 21;

/// Most bytes written at once.
const WRITE_LEN: u64 = 1 << 16;

/// A frame being written.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    header: [u8; HEADER_LEN],
    pattern: Pattern,
    size: u64,
    /// Of header and content.
    written: u64,
}

impl Outgoing {
    /// `frame`, with nothing written yet.
    pub(super) fn new(frame: &Frame) -> Self {
        let mut header = [0; HEADER_LEN];
        let at = u64::try_from(frame.at.as_nanos()).unwrap_or(u64::MAX);
        header[..8].copy_from_slice(&frame.index.to_be_bytes());
        header[8..16].copy_from_slice(&at.to_be_bytes());
        header[16..20].copy_from_slice(&frame.size.to_be_bytes());
        header[20] = u8::from(frame.is_key());
        Self {
            header,
            pattern: Pattern::new(frame.index),
            size: u64::from(frame.size),
            written: 0,
        }
    }

    /// Writes as much as the stream accepts; true once all is written.
    pub(super) fn pump(&mut self, stream: &mut SendStream<'_>) -> Result<bool, WriteError> {
        let header_len = HEADER_LEN as u64;
        while self.written < header_len {
            let rest = &self.header[self.written as usize..];
            let taken = stream.write(rest)? as u64;
            self.written += taken;
            if taken == 0 {
                return Ok(false);
            }
        }
        while self.written < header_len + self.size {
            let offset = self.written - header_len;
            let mut chunk = self
                .pattern
                .chunk(offset, (self.size - offset).min(WRITE_LEN));
            let taken = stream.write_chunk(&mut chunk)? as u64;
            self.written += taken;
            if !chunk.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Parser of frames in the bytes of a stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Incoming {
    header: Vec<u8>,
    announced: Option<Frame>,
    /// Bytes of the content so far.
    read: u64,
    /// A byte differed from the sent one.
    broken: bool,
}

impl Incoming {
    /// The next bytes of the stream; `complete` is called for each frame that they complete.
    pub(super) fn push(&mut self, mut data: &[u8], mut complete: impl FnMut(Frame)) {
        loop {
            let Some(frame) = self.announced else {
                if data.is_empty() {
                    return;
                }
                let missing = HEADER_LEN - self.header.len();
                let (header, rest) = data.split_at(missing.min(data.len()));
                self.header.extend_from_slice(header);
                data = rest;
                self.announced = parse(&self.header);
                continue;
            };
            let left = u64::from(frame.size) - self.read;
            let (content, rest) = data.split_at(left.min(data.len() as u64) as usize);
            self.broken |= !Pattern::new(frame.index).matches(self.read, content);
            self.read += content.len() as u64;
            data = rest;
            if self.read < u64::from(frame.size) {
                return;
            }
            complete(frame);
            self.announced = None;
            self.header.clear();
            self.read = 0;
        }
    }

    /// False if a byte differed from the sent one.
    pub(super) fn is_intact(&self) -> bool {
        !self.broken
    }

    /// True between frames.
    pub(super) fn is_between_frames(&self) -> bool {
        self.header.is_empty()
    }
}

/// Reads a header; `None` if it is incomplete.
fn parse(header: &[u8]) -> Option<Frame> {
    let (index, rest) = header.split_first_chunk::<8>()?;
    let (at, rest) = rest.split_first_chunk::<8>()?;
    let (size, rest) = rest.split_first_chunk::<4>()?;
    let kind = match rest.first()? {
        0 => FrameKind::Delta,
        _ => FrameKind::Key,
    };
    Some(Frame {
        index: u64::from_be_bytes(*index),
        kind,
        size: u32::from_be_bytes(*size),
        at: Duration::from_nanos(u64::from_be_bytes(*at)),
    })
}
