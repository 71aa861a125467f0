//! The video frames of a showing, and their encoding in one QUIC stream. No I/O.
//!
//! A frame is a header of [`HEADER`] bytes and its payload. The payload is a pattern that depends on
//! the seed and the frame's index, so that the viewer can verify it without stored data.

use std::time::Duration;

use swiftwater::units::Bandwidth;
use swiftwater_media::source::{SourceError, SourceSpec};
use swiftwater_media::{Frame, FrameKind};

use crate::exit::{Exit, Failure};

/// Bytes of a frame's header: index (8), kind (1), size (4), capture time in nanoseconds (8), all
/// big-endian.
pub const HEADER: usize = 21;

/// Most frames of a showing: 1000 per second for its longest duration.
const MAX_FRAMES: usize = 45_000;

/// The frames of a live stream, the same for every viewer.
#[derive(Clone, Debug)]
pub struct Schedule {
    frames: Vec<Frame>,
    length: Duration,
    seed: u64,
    source: String,
}

impl Schedule {
    /// The first `length` of the source `spec`; `seed` determines payloads and the sizes of a
    /// variable-rate source.
    pub fn new(spec: &SourceSpec, length: Duration, seed: u64) -> Result<Self, Failure> {
        let mut source = spec.open(seed).map_err(|error| {
            let exit = match error {
                SourceError::Encoding(_) => Exit::Usage,
                _ => Exit::LocalFile,
            };
            Failure::new(exit, error)
        })?;
        let frames: Vec<Frame> = std::iter::from_fn(|| source.next_frame())
            .take_while(|frame| frame.at < length)
            .take(MAX_FRAMES)
            .collect();
        if frames.is_empty() {
            return Err(Failure::new(
                Exit::Usage,
                format_args!("the video source '{spec}' has no frame"),
            ));
        }
        Ok(Self {
            frames,
            length,
            seed,
            source: spec.to_string(),
        })
    }

    /// The frames in sending order, at least one.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// When the last frame was produced, since the start of the stream.
    pub fn end(&self) -> Duration {
        self.frames.last().map_or(Duration::ZERO, |last| last.at)
    }

    /// The source, as named by users.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Mean rate of the payload while the stream lasts.
    pub fn mean_rate(&self) -> Bandwidth {
        let bytes = self.frames.iter().map(|frame| u64::from(frame.size)).sum();
        Bandwidth::from_transfer(bytes, self.length)
    }

    /// The payload of a frame.
    pub fn payload(&self, frame: &Frame) -> Pattern {
        Pattern::new(self.seed, frame.index)
    }
}

/// The header of a frame.
pub fn header(frame: &Frame) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[..8].copy_from_slice(&frame.index.to_be_bytes());
    bytes[8] = u8::from(frame.is_key());
    bytes[9..13].copy_from_slice(&frame.size.to_be_bytes());
    // A showing lasts seconds; 584 years fit.
    let at = frame.at.as_nanos() as u64;
    bytes[13..].copy_from_slice(&at.to_be_bytes());
    bytes
}

/// The frame of a header; `None` if its kind is unknown.
pub fn read_header(bytes: &[u8; HEADER]) -> Option<Frame> {
    let (index, rest) = bytes.split_first_chunk::<8>()?;
    let (kind, rest) = rest.split_first()?;
    let (size, at) = rest.split_first_chunk::<4>()?;
    let kind = match kind {
        0 => FrameKind::Delta,
        1 => FrameKind::Key,
        _ => return None,
    };
    Some(Frame {
        index: u64::from_be_bytes(*index),
        kind,
        size: u32::from_be_bytes(*size),
        at: Duration::from_nanos(u64::from_be_bytes(at.try_into().ok()?)),
    })
}

/// A pseudo-random byte sequence (`SplitMix64`), read in pieces of any size.
#[derive(Clone, Debug)]
pub struct Pattern {
    state: u64,
    word: [u8; 8],
    used: usize,
}

impl Pattern {
    fn new(seed: u64, index: u64) -> Self {
        Self {
            state: seed ^ index.wrapping_mul(0xd6e8_feb8_6659_fd93),
            word: [0; 8],
            used: 8,
        }
    }

    /// Fills `out` with the next bytes.
    pub fn fill(&mut self, out: &mut [u8]) {
        for byte in out {
            *byte = self.next_byte();
        }
    }

    /// Whether `data` equal the next bytes.
    pub fn matches(&mut self, data: &[u8]) -> bool {
        // All bytes are consumed, also after a difference.
        let differing = data.iter().filter(|byte| **byte != self.next_byte());
        differing.count() == 0
    }

    fn next_byte(&mut self) -> u8 {
        if self.used == self.word.len() {
            self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            self.word = (z ^ (z >> 31)).to_le_bytes();
            self.used = 0;
        }
        let byte = self.word[self.used];
        self.used += 1;
        byte
    }
}
