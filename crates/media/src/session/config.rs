//! Configuration of a session.

use std::time::Duration;

use swiftwater_units::Bandwidth;
use thiserror::Error;

use crate::protection::block_code::MAX_SOURCE_PACKETS;

/// Content of packets.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Coding {
    /// Bytes: a pattern in source packets, computed repair packets; the receiver decodes and checks.
    Real,
    /// None; see the head of [`crate::session`]. The same decisions and results with much less
    /// computation.
    #[default]
    Counted,
}

/// Settings of a session; both ends must have the same `coding`.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionConfig {
    /// Most bytes of a frame in one packet, 16 to 65000. A frame is cut into as few packets as
    /// possible, all of the same size except the last. Default 1400: 4 Mbit/s at 60 frames/s are 6
    /// packets a frame.
    pub payload_size: u32,
    /// Time after its encoding within which a frame must be complete; data that can't be in time
    /// any more aren't sent. `None`: everything is sent until it arrives. Default 100 ms.
    pub deadline: Option<Duration>,
    /// Pacing rate, counting session packets without IP and UDP headers. `None`, the default: a
    /// frame is sent in one burst.
    pub pacing: Option<Bandwidth>,
    /// Content of packets.
    pub coding: Coding,
    /// Ringmaster's rule: if the oldest unacknowledged frame is older than this, all pending packets
    /// are dropped and a key frame is requested from the encoder. Default: no such rule.
    pub key_frame_after: Option<Duration>,
    /// Most retransmissions of a packet, without replicas. Default: limited by the deadline only.
    pub max_retransmissions: Option<u32>,
    /// Round-trip time assumed before the first sample. Default 333 ms (RFC 9002, section 6.2.2).
    pub initial_rtt: Duration,
    /// Interval of the receiver's loss reports. Default 2 s, as Tambur's.
    pub report_interval: Duration,
}

impl Default for SessionConfig {
    fn default() -> Self {
        Self {
            payload_size: 1400,
            deadline: Some(Duration::from_millis(100)),
            pacing: None,
            coding: Coding::default(),
            key_frame_after: None,
            max_retransmissions: None,
            initial_rtt: Duration::from_millis(333),
            report_interval: Duration::from_secs(2),
        }
    }
}

impl SessionConfig {
    /// Checks that values are in their ranges.
    pub fn validate(&self) -> Result<(), SessionError> {
        if !(16..=65_000).contains(&self.payload_size) {
            return Err(SessionError::PayloadSize(self.payload_size));
        }
        if self.pacing.is_some_and(Bandwidth::is_zero) {
            return Err(SessionError::NoPace);
        }
        if self.report_interval.is_zero() {
            return Err(SessionError::ReportInterval);
        }
        Ok(())
    }
}

/// Why a session can't be run.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum SessionError {
    /// Out of range.
    #[error("payload_size is {0}; it must be from 16 to 65000 bytes")]
    PayloadSize(u32),
    /// Nothing could be sent.
    #[error("pacing is 0; give a positive rate, or none")]
    NoPace,
    /// Reports would be continuous.
    #[error("report_interval is 0; give a positive time")]
    ReportInterval,
    /// Frames must come in order, without gaps.
    #[error("frame {got} came where frame {expected} was due")]
    FrameOrder {
        /// Its index.
        got: u64,
        /// The expected index.
        expected: u64,
    },
    /// A frame has too many packets for the erasure code.
    #[error(
        "frame {index} has {packets} packets; at most {MAX_SOURCE_PACKETS} are possible, so raise \
         payload_size"
    )]
    FrameTooLarge {
        /// Its index.
        index: u64,
        /// Its packets.
        packets: u64,
    },
}

/// A datagram of a session.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Datagram {
    /// Its bytes; without the payload in sessions with [`Coding::Counted`].
    pub bytes: Vec<u8>,
    /// Its size on the wire, without IP and UDP headers; at least the number of bytes.
    pub size: usize,
}

impl Datagram {
    pub(super) fn whole(bytes: Vec<u8>) -> Self {
        let size = bytes.len();
        Self { bytes, size }
    }
}
