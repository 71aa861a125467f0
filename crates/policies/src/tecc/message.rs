//! What the client tells the server: the newest report of the tunnel, and which packets were lost where. The payload of
//! a FEEDBACK frame of kind 5:
//!
//! ```text
//! Flags (8),               of the report
//! Age (i),                 µs since the report came
//! Rate (i), Queue (i),     bytes/s, bytes
//! Smoothed RTT (i), RTT Variation (i), Least RTT (i),   µs, between tunnel and client
//! Settled (i),             the first packet number that is neither received nor lost
//! { Gap (i), Length (i) }  lost packets, downwards: Gap from the last packet number to the first of the range above (in
//!                          the first range the last number itself); Length 2 (packets - 1), + 1 if the tunnel gave up
//! ```
//!
//! The paper publishes no encoding; this one is the project's.

use std::time::Duration;

use swiftwater_quic::policy::{FeedbackPayload, ReceivedFeedback};
use swiftwater_tecc::{LossPlace, LostPackets, RepairLimits, ReportFlags};
use swiftwater_units::{Bandwidth, ByteCount};
use swiftwater_wire::frame::{FeedbackKind, MAX_FEEDBACK_SIZE};
use swiftwater_wire::{DecodeError, Reader, VarInt, Writer};

/// The longest time for which a tunnel repairs.
const LONGEST_REPAIR: Duration = Duration::from_millis(400);

/// A message; see the module's documentation for its form.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TeccMessage {
    /// Of the tunnel's report.
    pub flags: ReportFlags,
    /// Time since the report came to the client.
    pub age: Duration,
    /// Rate that the tunnel grants.
    pub rate: Bandwidth,
    /// Bytes that wait in the tunnel.
    pub queue: ByteCount,
    /// `smoothed_rtt` between tunnel and client.
    pub smoothed_rtt: Duration,
    /// `rttvar` between tunnel and client.
    pub rtt_var: Duration,
    /// `min_rtt` between tunnel and client.
    pub min_rtt: Duration,
    /// The first packet number that is neither received nor known to be lost.
    pub settled: u64,
    /// Packets lost of late, the highest numbers first, disjoint.
    pub lost: Vec<LostPackets>,
}

impl TeccMessage {
    /// Its kind.
    pub const KIND: FeedbackKind = FeedbackKind::new(5).unwrap();

    /// The time between two reports of the tunnel: its round-trip time, 10 to 50 ms.
    pub fn interval(&self) -> Duration {
        (self.smoothed_rtt).clamp(Duration::from_millis(10), Duration::from_millis(50))
    }

    /// The time that a repair by the tunnel takes, and the news of it: a round trip between tunnel and client, four
    /// times its variation, and an interval; 400 ms at most.
    pub fn repair_time(&self) -> Duration {
        let horizon = self
            .smoothed_rtt
            .saturating_add(self.rtt_var.saturating_mul(4));
        horizon.saturating_add(self.interval()).min(LONGEST_REPAIR)
    }

    /// How long after it left the tunnel a packet is given up there at the latest: the tunnel repairs for as long.
    pub fn horizon(&self) -> Duration {
        let limits = RepairLimits::default().with_reports();
        limits.horizon(self.smoothed_rtt, self.rtt_var)
    }

    /// The payload, of `max_size` bytes at most: of the lost packets as many as fit, the first ones of
    /// [`TeccMessage::lost`]. `None` if even without any it is too large.
    pub fn encode(&self, max_size: usize) -> Option<FeedbackPayload> {
        let max_size = max_size.min(MAX_FEEDBACK_SIZE);
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let mut fields = vec![
            micros(self.age),
            self.rate.as_bytes_per_sec(),
            self.queue.get(),
            micros(self.smoothed_rtt),
            micros(self.rtt_var),
            micros(self.min_rtt),
            self.settled,
        ];
        let size = |field: u64| VarInt::saturating(field).size();
        let mut used = 1 + fields.iter().map(|field| size(*field)).sum::<usize>();
        if used > max_size {
            return None;
        }
        let mut above = None;
        for lost in &self.lost {
            let gap = above.map_or(lost.last, |first: u64| first.saturating_sub(lost.last));
            let place = u64::from(lost.place == LossPlace::Abandoned);
            let length = lost
                .last
                .saturating_sub(lost.first)
                .min(VarInt::MAX.get() / 2)
                << 1
                | place;
            used += size(gap) + size(length);
            if used > max_size {
                break;
            }
            fields.extend([gap, length]);
            above = Some(lost.first);
        }
        let mut bytes = [0; MAX_FEEDBACK_SIZE];
        let mut writer = Writer::new(&mut bytes);
        writer.u8(self.flags.bits());
        for field in fields {
            writer.varint(VarInt::saturating(field).get());
        }
        let written = writer.written();
        FeedbackPayload::new(&bytes[..written]).ok()
    }

    /// What a feedback message says; `None` if it is of another kind or malformed, and then to be ignored.
    pub fn decode(feedback: &ReceivedFeedback) -> Option<Self> {
        if feedback.kind != Self::KIND {
            return None;
        }
        read(&mut Reader::new(feedback.payload.as_bytes())).ok()
    }
}

fn read(reader: &mut Reader<'_>) -> Result<TeccMessage, DecodeError> {
    let mut message = TeccMessage {
        flags: ReportFlags::from_bits(reader.u8()?),
        age: Duration::from_micros(reader.varint()?),
        rate: Bandwidth::from_bytes_per_sec(reader.varint()?.min(u64::MAX / 8)),
        queue: ByteCount::new(reader.varint()?),
        smoothed_rtt: Duration::from_micros(reader.varint()?),
        rtt_var: Duration::from_micros(reader.varint()?),
        min_rtt: Duration::from_micros(reader.varint()?),
        settled: reader.varint()?,
        lost: Vec::new(),
    };
    let invalid = DecodeError::Invalid("lost packets below zero");
    let mut above: Option<u64> = None;
    while !reader.is_empty() {
        let (gap, length) = (reader.varint()?, reader.varint()?);
        let last = above.map_or(Some(gap), |first| first.checked_sub(gap));
        let first = last.and_then(|last| last.checked_sub(length >> 1));
        let (Some(first), Some(last)) = (first, last) else {
            return Err(invalid);
        };
        let place = if length & 1 == 1 {
            LossPlace::Abandoned
        } else {
            LossPlace::Upstream
        };
        message.lost.push(LostPackets { first, last, place });
        above = Some(first);
    }
    Ok(message)
}
