//! QoE signals: what a media player and its sender tell each other, as payloads of FEEDBACK frames
//! ([`swiftwater_wire::Frame::Feedback`]).
//!
//! | kind | from | says | payload |
//! |---|---|---|---|
//! | 1 | player | what is buffered (XLINK, SIGCOMM 2021) | stream + 1 or 0, `cached_bytes`, `cached_frames`, bitrate in bit/s, frames per 1,000 s, stalled |
//! | 2 | player | when a chunk is expected (Chorus, `MobiCom` 2024) | chunk, time in ms |
//! | 3 | sender | how chunks are divided among paths (Chorus) | chunk, number of paths, and for each: path, share in 10^-6, rate in kbit/s, round-trip time in µs |
//! | 4 | player | when a range of a stream is of no use any more | stream, offset, length, time in ms |
//!
//! Every field is a variable-length integer (RFC 9000, section 16). Of each kind the newest message
//! counts. Neither paper publishes its encoding; this one is the project's own.

use std::time::Duration;

use swiftwater_units::{Bandwidth, ByteCount, PathId, StreamId};
use swiftwater_wire::frame::{FeedbackKind, MAX_FEEDBACK_SIZE};
use swiftwater_wire::{DecodeError, Reader, VarInt, Writer};

use super::feedback::FeedbackPayload;

/// Whole: the share of a path is a part of it.
const MILLION: f64 = 1e6;
/// Largest value of a field.
const MAX: u64 = VarInt::MAX.get();

/// State of a media player (XLINK).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlayerSignal {
    /// The stream that it plays from; `None` if it is several.
    pub stream: Option<StreamId>,
    /// Bytes buffered and not yet played.
    pub cached_bytes: ByteCount,
    /// Frames buffered and not yet shown; a partial one isn't counted.
    pub cached_frames: u64,
    /// Bitrate of the video that is played; zero if unknown.
    pub bitrate: Bandwidth,
    /// Frames per second; 0 if unknown. Sent with three decimals.
    pub fps: f64,
    /// True if playback is stalled, or hasn't started.
    pub stalled: bool,
}

impl PlayerSignal {
    /// A player that has `buffered` of a video of this bitrate and of `fps` frames per second; without any, it is stalled.
    pub fn buffering(buffered: Duration, bitrate: Bandwidth, fps: f64) -> Self {
        Self {
            stream: None,
            cached_bytes: ByteCount::new(bitrate.bytes_in(buffered)),
            cached_frames: (buffered.as_secs_f64() * fps) as u64,
            bitrate,
            fps,
            stalled: buffered.is_zero(),
        }
    }

    /// Buffered play time: the smaller of frames over frame rate and bits over bitrate, of those that
    /// can be computed; `None` if neither can.
    pub fn play_time(&self) -> Option<Duration> {
        let seconds = |amount: f64, rate: f64| {
            (rate > 0.0)
                .then(|| Duration::try_from_secs_f64(amount / rate).unwrap_or(Duration::MAX))
        };
        let frames = seconds(self.cached_frames as f64, self.fps);
        let bits = self.cached_bytes.get() as f64 * 8.0;
        let bytes = seconds(bits, self.bitrate.as_bps() as f64);
        match (frames, bytes) {
            (Some(frames), Some(bytes)) => Some(frames.min(bytes)),
            (frames, bytes) => frames.or(bytes),
        }
    }
}

/// The time in which a player expects a chunk that it is about to request (Chorus).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ChunkExpectation {
    /// Number of the chunk in the session.
    pub chunk: u64,
    /// From the request to the last byte; sent in milliseconds.
    pub expected_time: Duration,
}

/// What a sender says about one of its paths (Chorus).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathShare {
    /// The path.
    pub path: PathId,
    /// Share of a chunk that is sent on it, 0 to 1.
    pub share: f64,
    /// Bandwidth that the sender estimates; sent in kbit/s.
    pub rate: Bandwidth,
    /// Round-trip time; sent in microseconds.
    pub rtt: Duration,
}

/// How a sender divides chunks among its paths (Chorus).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathShares {
    /// The newest chunk that the player named; 0 before the first.
    pub chunk: u64,
    /// The paths. Of those that don't fit in a message the ones with the least shares are left out.
    pub paths: Vec<PathShare>,
}

/// From when on a range of a stream is of no use to the player.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RangeDeadline {
    /// The stream.
    pub stream: StreamId,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// From now; sent in milliseconds.
    pub deadline: Duration,
}

/// A message between player and sender.
#[derive(Clone, Debug, PartialEq)]
pub enum QoeSignal {
    /// What is buffered, from the player.
    Player(PlayerSignal),
    /// When a chunk is expected, from the player.
    Expectation(ChunkExpectation),
    /// How chunks are divided, from the sender.
    Shares(PathShares),
    /// When a range is of no use any more, from the player.
    Deadline(RangeDeadline),
}

impl QoeSignal {
    /// Kind of [`QoeSignal::Player`].
    pub const PLAYER: FeedbackKind = FeedbackKind::new(1).unwrap();
    /// Kind of [`QoeSignal::Expectation`].
    pub const EXPECTATION: FeedbackKind = FeedbackKind::new(2).unwrap();
    /// Kind of [`QoeSignal::Shares`].
    pub const SHARES: FeedbackKind = FeedbackKind::new(3).unwrap();
    /// Kind of [`QoeSignal::Deadline`].
    pub const DEADLINE: FeedbackKind = FeedbackKind::new(4).unwrap();

    /// Its kind.
    pub const fn kind(&self) -> FeedbackKind {
        match self {
            Self::Player(_) => Self::PLAYER,
            Self::Expectation(_) => Self::EXPECTATION,
            Self::Shares(_) => Self::SHARES,
            Self::Deadline(_) => Self::DEADLINE,
        }
    }

    /// The payload that says so, of `max_size` bytes at most; `None` if it needs more. Values out of range are cut
    /// to it.
    pub fn encode(&self, max_size: usize) -> Option<FeedbackPayload> {
        let mut fields = Fields::default();
        match self {
            Self::Player(state) => {
                fields.push(state.stream.map_or(0, |stream| stream.get() + 1));
                fields.push(state.cached_bytes.get());
                fields.push(state.cached_frames);
                fields.push(state.bitrate.as_bps());
                fields.push((state.fps * 1e3).round() as u64);
                fields.push(state.stalled.into());
            }
            Self::Expectation(expectation) => {
                fields.push(expectation.chunk);
                fields.push(millis(expectation.expected_time));
            }
            Self::Shares(shares) => return shares.encode(max_size),
            Self::Deadline(range) => {
                fields.push(range.stream.get());
                fields.push(range.offset);
                fields.push(range.len);
                fields.push(millis(range.deadline));
            }
        }
        fields.payload(max_size)
    }

    /// What a message of `kind` with this payload says; `None` if it is of another kind or malformed, and then
    /// to be ignored. Bytes behind the known fields are skipped.
    pub fn decode(kind: FeedbackKind, payload: &FeedbackPayload) -> Option<Self> {
        let mut reader = Reader::new(payload.as_bytes());
        let signal = match kind {
            Self::PLAYER => read_player(&mut reader).map(Self::Player),
            Self::EXPECTATION => read_expectation(&mut reader).map(Self::Expectation),
            Self::SHARES => read_shares(&mut reader).map(Self::Shares),
            Self::DEADLINE => read_deadline(&mut reader).map(Self::Deadline),
            _ => return None,
        };
        signal.ok()
    }
}

impl PathShares {
    fn encode(&self, max_size: usize) -> Option<FeedbackPayload> {
        let mut paths: Vec<&PathShare> = self.paths.iter().collect();
        paths.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.path.cmp(&b.path)));
        loop {
            let mut fields = Fields::default();
            fields.push(self.chunk);
            fields.push(paths.len() as u64);
            for share in &paths {
                fields.push(share.path.get().into());
                fields.push((share.share.clamp(0.0, 1.0) * MILLION).round() as u64);
                fields.push(share.rate.as_bps() / 1_000);
                fields.push(u64::try_from(share.rtt.as_micros()).unwrap_or(MAX));
            }
            if let Some(payload) = fields.payload(max_size) {
                return Some(payload);
            }
            paths.pop()?;
        }
    }
}

/// Milliseconds, rounded up: a time that is sent is never shorter than meant.
fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(MAX)
}

fn read_player(reader: &mut Reader<'_>) -> Result<PlayerSignal, DecodeError> {
    Ok(PlayerSignal {
        stream: reader.varint()?.checked_sub(1).map(StreamId::from_wire),
        cached_bytes: ByteCount::new(reader.varint()?),
        cached_frames: reader.varint()?,
        bitrate: Bandwidth::from_bps(reader.varint()?),
        fps: reader.varint()? as f64 / 1e3,
        stalled: reader.varint()? != 0,
    })
}

fn read_expectation(reader: &mut Reader<'_>) -> Result<ChunkExpectation, DecodeError> {
    Ok(ChunkExpectation {
        chunk: reader.varint()?,
        expected_time: Duration::from_millis(reader.varint()?),
    })
}

fn read_shares(reader: &mut Reader<'_>) -> Result<PathShares, DecodeError> {
    let chunk = reader.varint()?;
    let count = reader.varint()?;
    // A path takes four bytes at least, so that the payload's size bounds the list.
    let mut paths = Vec::new();
    for _ in 0..count {
        let id = reader.varint()?;
        let share = reader.varint()?.min(MILLION as u64) as f64 / MILLION;
        let rate = Bandwidth::from_bps(reader.varint()?.saturating_mul(1_000));
        let rtt = Duration::from_micros(reader.varint()?);
        if let Ok(id) = u32::try_from(id) {
            paths.push(PathShare {
                path: PathId::new(id),
                share,
                rate,
                rtt,
            });
        }
    }
    Ok(PathShares { chunk, paths })
}

fn read_deadline(reader: &mut Reader<'_>) -> Result<RangeDeadline, DecodeError> {
    Ok(RangeDeadline {
        stream: StreamId::from_wire(reader.varint()?),
        offset: reader.varint()?,
        len: reader.varint()?,
        deadline: Duration::from_millis(reader.varint()?),
    })
}

/// Fields of a payload, as they are collected.
#[derive(Debug, Default)]
struct Fields(Vec<u64>);

impl Fields {
    fn push(&mut self, value: u64) {
        self.0.push(value.min(MAX));
    }

    fn payload(&self, max_size: usize) -> Option<FeedbackPayload> {
        let size = |value: &u64| VarInt::new(*value).map_or(8, VarInt::size);
        let size: usize = self.0.iter().map(size).sum();
        if size > max_size.min(MAX_FEEDBACK_SIZE) {
            return None;
        }
        let mut bytes = [0; MAX_FEEDBACK_SIZE];
        let mut writer = Writer::new(&mut bytes);
        for value in &self.0 {
            writer.varint(*value);
        }
        FeedbackPayload::new(&bytes[..size]).ok()
    }
}
