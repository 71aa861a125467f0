//! Occupancy of a queue.

use swiftwater_units::{ByteCount, Instant, PacketCount};

use super::delay::DelayStats;

/// Present and past occupancy of a queue, including the packet in service.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueueStats {
    /// Bytes in the queue at present.
    pub bytes: ByteCount,
    /// Packets in the queue at present.
    pub packets: PacketCount,
    /// Mean bytes in the queue, weighted by time, since the creation of the link or the last
    /// restart of the statistics.
    pub mean_bytes: f64,
    /// Largest number of bytes in that time.
    pub max_bytes: ByteCount,
    /// Largest number of packets in that time.
    pub max_packets: PacketCount,
    /// Waiting time of packets in that time.
    pub delay: DelayStats,
}

/// The length of a queue and its integral over time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Occupancy {
    bytes: u64,
    packets: u64,
    /// Byte-nanoseconds from `since` to `accounted`.
    area: u128,
    since: Instant,
    accounted: Instant,
    max_bytes: u64,
    max_packets: u64,
}

impl Occupancy {
    pub(crate) fn new(start: Instant) -> Self {
        Self {
            bytes: 0,
            packets: 0,
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
        self.packets
    }

    /// A packet arrives at `time`.
    pub(crate) fn add(&mut self, time: Instant, size: u32) {
        self.account(time);
        self.bytes += u64::from(size);
        self.packets += 1;
        self.max_bytes = self.max_bytes.max(self.bytes);
        self.max_packets = self.max_packets.max(self.packets);
    }

    /// A packet departs at `time`.
    pub(crate) fn remove(&mut self, time: Instant, size: u32) {
        self.account(time);
        self.bytes -= u64::from(size);
        self.packets -= 1;
    }

    /// Adds the integral up to `time`, during which the length was constant.
    fn account(&mut self, time: Instant) {
        // With integers: splitting a duration into seconds costs a division.
        let elapsed = time.as_nanos().saturating_sub(self.accounted.as_nanos());
        self.area += u128::from(self.bytes) * u128::from(elapsed);
        self.accounted = self.accounted.max(time);
    }

    /// Statistics at `now`.
    pub(crate) fn stats(mut self, now: Instant, delay: DelayStats) -> QueueStats {
        self.account(now);
        let elapsed = self.accounted.saturating_since(self.since).as_nanos();
        QueueStats {
            bytes: ByteCount::new(self.bytes),
            packets: PacketCount::new(self.packets),
            mean_bytes: if elapsed == 0 {
                0.0
            } else {
                self.area as f64 / elapsed as f64
            },
            max_bytes: ByteCount::new(self.max_bytes),
            max_packets: PacketCount::new(self.max_packets),
            delay,
        }
    }

    /// Restarts the statistics; packets are kept.
    pub(crate) fn reset(&mut self, now: Instant) {
        self.area = 0;
        self.since = now;
        self.accounted = now;
        self.max_bytes = self.bytes;
        self.max_packets = self.packets;
    }
}
