//! What a job sends: bytes, and for live video the frames that they consist of.

use std::time::Duration;

use swiftwater_media::Frame;
use swiftwater_media::source::{SourceError, SourceSpec};

use crate::demo::random_numbers::RandomNumbers;
use crate::digest::sha256;
use crate::exit::{Exit, Failure};

/// Random bytes, sent in one stream.
#[derive(Debug)]
pub struct Content {
    bytes: Vec<u8>,
    sha256: [u8; 32],
    /// Of a video: each frame is as many of the bytes as its size, one after the other. None of a file.
    frames: Vec<Frame>,
}

impl Content {
    /// A file of this size.
    pub fn file(size: usize, seed: u64) -> Self {
        Self::new(size, seed, Vec::new())
    }

    /// The first `length` of a video.
    pub fn video(source: &SourceSpec, length: Duration, seed: u64) -> Result<Self, Failure> {
        let mut source = source
            .open(seed)
            .map_err(|error: SourceError| Failure::new(Exit::Failure, error))?;
        let frames = std::iter::from_fn(|| source.next_frame());
        let frames: Vec<Frame> = frames.take_while(|frame| frame.at < length).collect();
        let size = frames.iter().map(|frame| frame.size as usize).sum();
        Ok(Self::new(size, seed, frames))
    }

    fn new(size: usize, seed: u64, frames: Vec<Frame>) -> Self {
        let bytes = RandomNumbers::new(seed).bytes(size);
        Self {
            sha256: sha256(&bytes),
            bytes,
            frames,
        }
    }

    /// All of it.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The frames of a video; none of a file.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// Whether this is the hash of all of it.
    pub fn has_sha256(&self, hash: &[u8]) -> bool {
        self.sha256 == hash
    }
}
