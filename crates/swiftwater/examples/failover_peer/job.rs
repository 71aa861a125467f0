//! What the client of a fail-over measurement does, and what its application sees. No QUIC: ends on other libraries
//! use the same source.
//!
//! The client opens a stream for each request and sends [`REQUEST`] bytes: the kind and an amount. The answer is so
//! many bytes at once, or so many milliseconds of live video, a frame every [`FRAME_INTERVAL`].

use std::str::FromStr;
use std::time::{Duration, Instant};

/// Bytes of a request: the kind, and the amount, big-endian.
pub(crate) const REQUEST: usize = 9;

/// Live video has 30 frames a second.
pub(crate) const FRAME_INTERVAL: Duration = Duration::from_nanos(33_333_333);

/// Bytes of a frame: 2 Mbit/s.
pub(crate) const FRAME: usize = 8_333;

/// What a client does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Job {
    /// One download.
    Bulk,
    /// Downloads of 1 MB, one after the other.
    Requests,
    /// Live video.
    Live,
}

impl FromStr for Job {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "bulk" => Ok(Self::Bulk),
            "requests" => Ok(Self::Requests),
            "live" => Ok(Self::Live),
            _ => Err(format!("'{text}' is no job: bulk, requests, live")),
        }
    }
}

/// A request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Request {
    /// So many bytes at once.
    Bytes(u64),
    /// So many frames, each at its time.
    Frames(u64),
}

impl Request {
    /// The requests of a job, one after the other: 16 MB in all, or 8 s.
    pub(crate) fn of(job: Job) -> Vec<Self> {
        match job {
            Job::Bulk => vec![Self::Bytes(16_000_000)],
            Job::Requests => vec![Self::Bytes(1_000_000); 16],
            Job::Live => vec![Self::Frames(240)],
        }
    }

    /// On the wire.
    pub(crate) fn encode(self) -> [u8; REQUEST] {
        let (kind, amount) = match self {
            Self::Bytes(bytes) => (0, bytes),
            Self::Frames(frames) => (1, frames),
        };
        let mut encoded = [0; REQUEST];
        encoded[0] = kind;
        encoded[1..].copy_from_slice(&amount.to_be_bytes());
        encoded
    }

    /// From the wire.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, amount) = bytes.split_first()?;
        let amount = u64::from_be_bytes(amount.try_into().ok()?);
        match kind {
            0 => Some(Self::Bytes(amount)),
            1 => Some(Self::Frames(amount)),
            _ => None,
        }
    }

    /// The bytes that the answer has.
    fn size(self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Frames(frames) => frames * FRAME as u64,
        }
    }
}

/// The bytes of an answer from `offset` on.
pub(crate) fn fill(offset: u64, out: &mut [u8]) {
    for (at, byte) in (offset..).zip(out) {
        // The low bits of a number that grows by an odd one: no short period.
        *byte = (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
    }
}

/// What the client's application sees of one answer after the other.
///
/// Progress is a byte of an answer, or a complete frame of live video; the gap is the time without any, from the
/// first progress on.
#[derive(Debug)]
pub(crate) struct Receiver {
    start: Instant,
    progress: Option<Instant>,
    longest_gap: Duration,
    gap_began: Duration,
    request: Option<Request>,
    bytes: u64,
    total: u64,
    is_intact: bool,
}

impl Receiver {
    /// Begins now.
    pub(crate) fn start() -> Self {
        Self {
            start: Instant::now(),
            progress: None,
            longest_gap: Duration::ZERO,
            gap_began: Duration::ZERO,
            request: None,
            bytes: 0,
            total: 0,
            is_intact: true,
        }
    }

    /// The next answer begins.
    pub(crate) fn expect(&mut self, request: Request) {
        self.request = Some(request);
        self.bytes = 0;
    }

    /// The next bytes came.
    pub(crate) fn on_bytes(&mut self, bytes: &[u8]) {
        let mut expected = vec![0; bytes.len()];
        fill(self.bytes, &mut expected);
        self.is_intact &= expected == bytes;
        let before = self.bytes;
        self.bytes += bytes.len() as u64;
        self.total += bytes.len() as u64;
        let frame = FRAME as u64;
        let is_progress = match self.request {
            Some(Request::Frames(_)) => self.bytes / frame > before / frame,
            _ => true,
        };
        if is_progress {
            self.progress();
        }
    }

    /// The answer has ended.
    pub(crate) fn on_end(&mut self) {
        self.is_intact &= self
            .request
            .is_some_and(|request| request.size() == self.bytes);
    }

    fn progress(&mut self) {
        let now = Instant::now();
        if let Some(before) = self.progress
            && now - before > self.longest_gap
        {
            self.longest_gap = now - before;
            self.gap_began = before - self.start;
        }
        self.progress = Some(now);
    }

    /// The result as JSON. `is_complete`: all answers have ended.
    pub(crate) fn report(&mut self, is_complete: bool) -> String {
        if !is_complete {
            // The gap that lasts counts.
            self.progress();
        }
        format!(
            "{{\"bytes\":{},\"complete\":{is_complete},\"intact\":{},\"completion_ms\":{:.1},\"longest_gap_ms\":{:.1},\"gap_at_ms\":{:.1}}}",
            self.total,
            self.is_intact,
            self.start.elapsed().as_secs_f64() * 1e3,
            self.longest_gap.as_secs_f64() * 1e3,
            self.gap_began.as_secs_f64() * 1e3,
        )
    }
}
