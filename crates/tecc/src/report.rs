//! The tunnel report: what the proxy tells the client about its connection to it. The newest counts, and none is sent
//! twice.
//!
//! ```text
//! Tunnel Report {
//!   Flags (8),           0 application-limited, 1 bandwidth fell, 2 congestion, 3 startup, 4 queue overflow
//!   Sequence (i),        rises with each report
//!   Time (i),            µs since the tunnel began
//!   Rate (i),            bytes/s
//!   Goodput (i),         bytes/s
//!   Queue (i),           bytes
//!   Sojourn (i),         µs
//!   Smoothed RTT (i), RTT Variation (i), Least RTT (i),   µs
//!   Next Number (i), Settled (i),                         numbers of payloads
//!   Lost (i), Resent (i), Abandoned (i),                  counts since the tunnel began
//! }
//! ```
//!
//! The papers publish no encoding; this one is the project's. What follows the known fields is skipped.

use std::time::Duration;

use swiftwater_units::{Bandwidth, ByteCount};
use swiftwater_wire::{DecodeError, Reader, VarInt, Writer};
use thiserror::Error;

/// Largest encoding: a byte, and 14 fields of eight.
const MAX_SIZE: usize = 1 + 14 * 8;

/// A report can't be read.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("a malformed tunnel report: {0}")]
pub struct MalformedReport(#[from] DecodeError);

/// What holds for the connection between proxy and client.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "independent bits of the wire format"
)]
pub struct ReportFlags {
    /// What is sent does not fill it: its rate was not tested.
    pub app_limited: bool,
    /// The rate fell by 30 % or more since the last report.
    pub bandwidth_drop: bool,
    /// Its congestion control reacted to a congestion event since the last report.
    pub congestion: bool,
    /// Its congestion control has met no congestion so far.
    pub startup: bool,
    /// The queue had no room for a payload since the last report.
    pub overflow: bool,
}

impl ReportFlags {
    /// The flags as bits 0 to 4.
    pub const fn bits(self) -> u8 {
        self.app_limited as u8
            | (self.bandwidth_drop as u8) << 1
            | (self.congestion as u8) << 2
            | (self.startup as u8) << 3
            | (self.overflow as u8) << 4
    }

    /// The flags of bits 0 to 4; others mean nothing.
    pub const fn from_bits(bits: u8) -> Self {
        Self {
            app_limited: bits & 1 != 0,
            bandwidth_drop: bits & 2 != 0,
            congestion: bits & 4 != 0,
            startup: bits & 8 != 0,
            overflow: bits & 16 != 0,
        }
    }
}

/// A report. Times are sent in microseconds, rates in bytes per second.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TunnelReport {
    /// What holds at present.
    pub flags: ReportFlags,
    /// Rises with each report of the tunnel.
    pub sequence: u64,
    /// Since the tunnel began.
    pub time: Duration,
    /// Rate that congestion control grants the tunnel: its capacity, not what is sent.
    pub rate: Bandwidth,
    /// Acknowledged since the last report, over time.
    pub goodput: Bandwidth,
    /// Bytes that wait at the proxy, those in flight not counted.
    pub queue: ByteCount,
    /// For how long the oldest of them has waited.
    pub sojourn: Duration,
    /// `smoothed_rtt` between proxy and client.
    pub smoothed_rtt: Duration,
    /// `rttvar` between proxy and client.
    pub rtt_var: Duration,
    /// `min_rtt` between proxy and client.
    pub min_rtt: Duration,
    /// The number that the next payload will have.
    pub next_number: u64,
    /// Every payload with a smaller number is acknowledged or given up.
    pub settled: u64,
    /// Datagrams declared lost.
    pub lost: u64,
    /// Datagrams sent again.
    pub resent: u64,
    /// Payloads given up.
    pub abandoned: u64,
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl TunnelReport {
    /// Its encoding, 113 bytes at most. Values that are too large for a field are cut to what it holds.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = [0; MAX_SIZE];
        let mut writer = Writer::new(&mut bytes);
        writer.u8(self.flags.bits());
        let fields = [
            self.sequence,
            micros(self.time),
            self.rate.as_bytes_per_sec(),
            self.goodput.as_bytes_per_sec(),
            self.queue.get(),
            micros(self.sojourn),
            micros(self.smoothed_rtt),
            micros(self.rtt_var),
            micros(self.min_rtt),
            self.next_number,
            self.settled,
            self.lost,
            self.resent,
            self.abandoned,
        ];
        for field in fields {
            writer.varint(VarInt::saturating(field).get());
        }
        let written = writer.written();
        bytes[..written].to_vec()
    }

    /// The report that `bytes` begin with.
    pub fn decode(bytes: &[u8]) -> Result<Self, MalformedReport> {
        let mut reader = Reader::new(bytes);
        Ok(Self {
            flags: ReportFlags::from_bits(reader.u8()?),
            sequence: reader.varint()?,
            time: Duration::from_micros(reader.varint()?),
            rate: rate(reader.varint()?),
            goodput: rate(reader.varint()?),
            queue: ByteCount::new(reader.varint()?),
            sojourn: Duration::from_micros(reader.varint()?),
            smoothed_rtt: Duration::from_micros(reader.varint()?),
            rtt_var: Duration::from_micros(reader.varint()?),
            min_rtt: Duration::from_micros(reader.varint()?),
            next_number: reader.varint()?,
            settled: reader.varint()?,
            lost: reader.varint()?,
            resent: reader.varint()?,
            abandoned: reader.varint()?,
        })
    }

    /// The time between two reports that are not urgent: `smoothed_rtt` between proxy and client, 10 to 50 ms.
    pub fn period(&self) -> Duration {
        period(self.smoothed_rtt)
    }
}

/// See [`TunnelReport::period`].
pub(crate) fn period(smoothed_rtt: Duration) -> Duration {
    smoothed_rtt.clamp(Duration::from_millis(10), Duration::from_millis(50))
}

/// A rate in bytes per second, cut to what can be counted in bits.
fn rate(bytes_per_sec: u64) -> Bandwidth {
    Bandwidth::from_bytes_per_sec(bytes_per_sec.min(u64::MAX / 8))
}
