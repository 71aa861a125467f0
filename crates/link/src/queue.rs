//! The drop-tail queue in front of the transmitter: limits, ECN threshold, statistics.
//!
//! A packet counts, whole, from its acceptance until its last bit has left: the packet in service
//! is part of the queue, for the limit, the threshold and the statistics alike.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use swiftwater_units::{ByteCount, Instant, PacketCount};

/// The size of a queue, packet in service included.
///
/// A packet that finds the queue empty is always accepted, however small the limit: an idle
/// transmitter needs no room to wait in.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Buffer {
    /// No limit.
    #[default]
    Unlimited,
    /// At most so many bytes (payload plus per-packet overhead).
    Bytes(ByteCount),
    /// At most so many packets.
    Packets(PacketCount),
    /// A multiple of the bandwidth-delay product, resolved to bytes when the link is made: the
    /// rate (the mean of a trace) times `LinkConfig::bdp_rtt`.
    Bdp(f64),
}

impl fmt::Display for Buffer {
    /// The form that `FromStr` reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.write_str("unlimited"),
            Self::Bytes(bytes) => write!(f, "{}B", bytes.get()),
            Self::Packets(packets) => write!(f, "{}p", packets.get()),
            Self::Bdp(factor) => write!(f, "{factor}bdp"),
        }
    }
}

/// When ECN-capable packets are marked: the queue an arriving packet finds, itself not included,
/// is above this.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EcnThreshold {
    /// More than so many bytes.
    Bytes(ByteCount),
    /// More than so many packets.
    Packets(PacketCount),
    /// The packet will wait longer than this before the transmitter turns to it.
    Delay(Duration),
}

/// How full a queue is and was; the packet in service counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueueStats {
    /// Bytes in the queue now.
    pub bytes: ByteCount,
    /// Packets in the queue now.
    pub packets: PacketCount,
    /// Mean bytes in the queue, weighted by time, since the link was made or the statistics were
    /// reset.
    pub mean_bytes: f64,
    /// Most bytes there were in that time.
    pub max_bytes: ByteCount,
    /// Most packets there were in that time.
    pub max_packets: PacketCount,
}

/// A resolved [`Buffer`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) bytes: u64,
    pub(crate) packets: u64,
}

/// The departures still to come, and the area under the queue's length.
///
/// Departure times are known at arrival, so the queue holds no payload.
#[derive(Debug)]
pub(crate) struct Queue {
    limit: Limit,
    /// Departure time and size, in time order.
    waiting: VecDeque<(Instant, u32)>,
    bytes: u64,
    /// Byte-nanoseconds from `since` to `accounted`.
    area: u128,
    since: Instant,
    accounted: Instant,
    max_bytes: u64,
    max_packets: u64,
}

impl Queue {
    pub(crate) fn new(limit: Limit, start: Instant) -> Self {
        Self {
            limit,
            waiting: VecDeque::new(),
            bytes: 0,
            area: 0,
            since: start,
            accounted: start,
            max_bytes: 0,
            max_packets: 0,
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn packets(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// Lets go of what has left by `now`.
    pub(crate) fn advance(&mut self, now: Instant) {
        while let Some(&(departure, size)) = self.waiting.front()
            && departure <= now
        {
            self.account(departure);
            self.bytes -= u64::from(size);
            self.waiting.pop_front();
        }
    }

    /// Whether a packet of `size` bytes is accepted now.
    pub(crate) fn admits(&self, size: u32) -> bool {
        self.waiting.is_empty()
            || (self.packets() < self.limit.packets
                && self.bytes.saturating_add(u64::from(size)) <= self.limit.bytes)
    }

    /// Takes in a packet that leaves at `departure`, no earlier than any before it.
    pub(crate) fn push(&mut self, now: Instant, departure: Instant, size: u32) {
        if departure <= now {
            return;
        }
        self.account(now);
        self.bytes += u64::from(size);
        self.waiting.push_back((departure, size));
        self.max_bytes = self.max_bytes.max(self.bytes);
        self.max_packets = self.max_packets.max(self.packets());
    }

    /// Adds the area up to `time`, during which the length didn't change.
    fn account(&mut self, time: Instant) {
        let elapsed = time.saturating_since(self.accounted).as_nanos();
        self.area += u128::from(self.bytes) * elapsed;
        self.accounted = self.accounted.max(time);
    }

    /// Statistics at `now`, which may lie after the last [`Queue::advance`].
    pub(crate) fn stats(&self, now: Instant) -> QueueStats {
        let (mut bytes, mut packets) = (self.bytes, self.packets());
        let (mut area, mut accounted) = (self.area, self.accounted);
        for &(departure, size) in self.waiting.iter().take_while(|(at, _)| *at <= now) {
            area += u128::from(bytes) * departure.saturating_since(accounted).as_nanos();
            accounted = accounted.max(departure);
            bytes -= u64::from(size);
            packets -= 1;
        }
        area += u128::from(bytes) * now.saturating_since(accounted).as_nanos();
        let elapsed = now.max(accounted).saturating_since(self.since).as_nanos();
        QueueStats {
            bytes: ByteCount::new(bytes),
            packets: PacketCount::new(packets),
            mean_bytes: if elapsed == 0 {
                0.0
            } else {
                area as f64 / elapsed as f64
            },
            max_bytes: ByteCount::new(self.max_bytes),
            max_packets: PacketCount::new(self.max_packets),
        }
    }

    /// Forgets the past of the statistics, not the packets.
    pub(crate) fn reset_stats(&mut self, now: Instant) {
        self.advance(now);
        self.area = 0;
        self.since = now;
        self.accounted = now;
        self.max_bytes = self.bytes;
        self.max_packets = self.packets();
    }
}
