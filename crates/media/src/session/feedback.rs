//! Packets from the receiver to the sender.
//!
//! All numbers are in network byte order. An acknowledgement: kind 0x41 (1 byte), largest sequence
//! number (8), µs since that packet arrived (4), newest frame seen (8), a bit for each of the 64
//! frames up to that one, the lowest for the newest, set if the frame is complete (8), number of
//! ranges (1, from 1 to 16); then for each range, from the largest down: packets missing between the
//! range above and this one (4; 0 for the first), packets in it (4). A report: kind 0x42 (1), packets
//! received (4) and missing (4) since the last report.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::packet::{PacketError, Reader};

const ACK: u8 = 0x41;
const REPORT: u8 = 0x42;

/// Most ranges of an acknowledgement; older ones are left out.
pub const MAX_ACK_RANGES: usize = 16;

/// An acknowledgement.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Ack {
    /// Sequence numbers received, the largest first, with gaps between ranges; never empty.
    pub ranges: Vec<RangeInclusive<u64>>,
    /// How long ago the largest arrived.
    pub delay: Duration,
    /// Newest frame of which the receiver got a packet.
    pub newest_frame: u64,
    /// Bit i is set if frame `newest_frame - i` is complete.
    pub complete: u64,
}

/// A loss report.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Report {
    /// Packets received since the last report.
    pub received: u32,
    /// Packets missing since then; some may still arrive.
    pub lost: u32,
}

/// A packet of the receiver.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Feedback {
    /// An acknowledgement.
    Ack(Ack),
    /// A report.
    Report(Report),
}

impl Feedback {
    /// Appends the packet.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Ack(ack) => ack.write(out),
            Self::Report(report) => {
                out.push(REPORT);
                out.extend(report.received.to_be_bytes());
                out.extend(report.lost.to_be_bytes());
            }
        }
    }

    /// Decodes a packet; bytes after it are ignored.
    pub fn parse(bytes: &[u8]) -> Result<Self, PacketError> {
        let mut reader = Reader(bytes);
        match reader.u8("kind")? {
            ACK => Ack::read(&mut reader).map(Self::Ack),
            REPORT => Ok(Self::Report(Report {
                received: reader.u32("packets received")?,
                lost: reader.u32("packets missing")?,
            })),
            other => Err(PacketError::Kind(other)),
        }
    }
}

impl Ack {
    /// The largest sequence number received.
    pub fn largest(&self) -> u64 {
        self.ranges.first().map_or(0, |range| *range.end())
    }

    /// Frames known to be complete.
    pub fn complete_frames(&self) -> impl Iterator<Item = u64> + '_ {
        (0..64)
            .filter(|bit| self.complete >> bit & 1 == 1)
            .filter_map(|bit| self.newest_frame.checked_sub(bit))
    }

    fn write(&self, out: &mut Vec<u8>) {
        let delay = u32::try_from(self.delay.as_micros()).unwrap_or(u32::MAX);
        out.push(ACK);
        out.extend(self.largest().to_be_bytes());
        out.extend(delay.to_be_bytes());
        out.extend(self.newest_frame.to_be_bytes());
        out.extend(self.complete.to_be_bytes());
        let ranges = &self.ranges[..self.ranges.len().min(MAX_ACK_RANGES)];
        out.push(ranges.len() as u8);
        let mut above: Option<u64> = None;
        for range in ranges {
            let gap = above.map_or(0, |above| above - range.end() - 1);
            let count = range.end() - range.start() + 1;
            out.extend(u32::try_from(gap).unwrap_or(u32::MAX).to_be_bytes());
            out.extend(u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes());
            above = Some(*range.start());
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, PacketError> {
        let largest = reader.u64("largest sequence number")?;
        let delay = Duration::from_micros(u64::from(reader.u32("delay")?));
        let newest_frame = reader.u64("newest frame")?;
        let complete = reader.u64("complete frames")?;
        let count = usize::from(reader.u8("range count")?);
        if count == 0 || count > MAX_ACK_RANGES {
            return Err(PacketError::Value("range count"));
        }
        let mut ranges = Vec::with_capacity(count);
        let mut above: Option<u64> = None;
        for _ in 0..count {
            let gap = u64::from(reader.u32("range")?);
            let len = u64::from(reader.u32("range")?);
            let end = match above {
                None if gap == 0 => Some(largest),
                // A gap of no packets would not be a gap.
                Some(above) if gap > 0 => above.checked_sub(gap + 1),
                _ => None,
            };
            let start = end.and_then(|end| end.checked_sub(len.checked_sub(1)?));
            let (Some(start), Some(end)) = (start, end) else {
                return Err(PacketError::Value("range"));
            };
            ranges.push(start..=end);
            above = Some(start);
        }
        Ok(Self {
            ranges,
            delay,
            newest_frame,
            complete,
        })
    }
}
