//! What a proxy has sent and may have to send again.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use swiftwater_units::Instant;

/// Memory of a payload in addition to its datagram, bytes.
const OVERHEAD: usize = 64;

/// How long the client's acknowledgements may wait by default: RFC 9000, section 18.2.
const MAX_ACK_DELAY: Duration = Duration::from_millis(25);

/// Limits of repair.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RepairLimits {
    /// How often a payload is sent again. Default 3.
    pub attempts: u8,
    /// Bytes of payloads that are kept, each counted as its datagram and 64 bytes; beyond them the oldest are not sent
    /// again. Default 256 KiB.
    pub most_bytes: usize,
    /// Round trips between proxy and client, and variations of them, after which a payload is not sent again. Default 4.
    pub round_trips: u32,
    /// How long after it first left a payload is sent again at most, however long a round trip takes. Default 400 ms.
    pub longest: Duration,
}

impl Default for RepairLimits {
    fn default() -> Self {
        Self {
            attempts: 3,
            most_bytes: 256 << 10,
            round_trips: 4,
            longest: Duration::from_millis(400),
        }
    }
}

impl RepairLimits {
    /// Limits of a tunnel that reports: twice as often, and for twice as many round trips. Its sender leaves losses
    /// to it until it says that it gives a payload up, while one without reports has soon sent the payload again itself.
    #[must_use]
    pub const fn with_reports(self) -> Self {
        Self {
            attempts: self.attempts.saturating_mul(2),
            round_trips: self.round_trips.saturating_mul(2),
            ..self
        }
    }

    /// How long after it first left a payload is sent again: `round_trips` smoothed round trips, as many times their
    /// variation, and the default `max_ack_delay` of RFC 9000, within the limit. What is older, the sender has sent
    /// again itself. Without the last term, losses that only a probe timeout finds (RFC 9002, section 6.2) would be too
    /// old on short paths. The time for which it waited at the proxy before does not count: round trips do not contain
    /// it, and behind a queue as long as the horizon nothing would ever be sent again.
    pub fn horizon(&self, smoothed_rtt: Duration, rtt_var: Duration) -> Duration {
        let round_trips = smoothed_rtt
            .saturating_add(rtt_var)
            .saturating_mul(self.round_trips);
        round_trips.saturating_add(MAX_ACK_DELAY).min(self.longest)
    }
}

/// Counters of repair.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct RepairStats {
    /// Datagrams that were declared lost.
    pub lost: u64,
    /// Datagrams that were sent again.
    pub resent: u64,
    /// Payloads that were given up: too old, too many attempts, or no room to keep them.
    pub abandoned: u64,
}

/// A payload without an acknowledgement so far.
#[derive(Debug)]
struct Sent {
    datagram: Bytes,
    /// When it first left; known once it was lost.
    left_at: Option<Instant>,
    attempts: u8,
}

/// The payloads of one tunnel that were sent, by their numbers.
#[derive(Debug)]
pub struct Repair {
    limits: RepairLimits,
    unsettled: BTreeMap<u64, Sent>,
    bytes: usize,
    /// Bytes that may be kept: those of the limits, or more on a long path.
    room: usize,
    next: u64,
    stats: RepairStats,
}

impl Repair {
    /// Nothing was sent so far.
    pub fn new(limits: RepairLimits) -> Self {
        Self {
            limits,
            unsettled: BTreeMap::new(),
            bytes: 0,
            room: limits.most_bytes,
            next: 0,
            stats: RepairStats::default(),
        }
    }

    /// The limits.
    pub fn limits(&self) -> &RepairLimits {
        &self.limits
    }

    /// Counters so far.
    pub fn stats(&self) -> RepairStats {
        self.stats
    }

    /// Bytes of payloads that are kept, each counted as its datagram and 64 bytes.
    pub fn kept_bytes(&self) -> usize {
        self.bytes
    }

    /// The connection to the client holds `bytes` in flight: twice as many are kept, if that is more than the limit.
    pub fn on_bytes_in_flight(&mut self, bytes: usize) {
        self.room = self.limits.most_bytes.max(bytes.saturating_mul(2));
    }

    /// The number of the next payload.
    pub fn next_number(&self) -> u64 {
        self.next
    }

    /// The smallest number that is neither acknowledged nor given up: what is below is final.
    pub fn settled(&self) -> u64 {
        let first = self.unsettled.first_key_value();
        first.map_or(self.next, |(&number, _)| number)
    }

    /// The payload with the next number was handed to the connection to the client, in `datagram`. When it leaves is up
    /// to that.
    pub fn on_queued(&mut self, datagram: Bytes) {
        self.bytes += datagram.len() + OVERHEAD;
        let sent = Sent {
            datagram,
            left_at: None,
            attempts: 0,
        };
        self.unsettled.insert(self.next, sent);
        self.next += 1;
        while self.bytes > self.room {
            self.on_unsent(self.settled());
        }
    }

    /// A datagram of payload `number` was acknowledged.
    pub fn on_acknowledged(&mut self, number: u64) {
        self.settle(number);
    }

    /// Payload `number` is given up: it was not sent in the end because it waited for too long or does not fit any
    /// more, or there is no room to keep it.
    pub fn on_unsent(&mut self, number: u64) {
        if self.settle(number) {
            self.stats.abandoned += 1;
        }
    }

    /// A datagram of payload `number`, which left at `sent_at`, was declared lost: what to send again, with the same
    /// number, and by when; `None` if it is given up, or was acknowledged in another datagram. Payloads are given up
    /// `horizon` after they first left.
    pub fn on_lost(
        &mut self,
        now: Instant,
        number: u64,
        sent_at: Instant,
        horizon: Duration,
    ) -> Option<(Bytes, Instant)> {
        let sent = self.unsettled.get_mut(&number)?;
        self.stats.lost += 1;
        let until = *sent.left_at.get_or_insert(sent_at) + horizon;
        if sent.attempts < self.limits.attempts && now < until {
            sent.attempts += 1;
            self.stats.resent += 1;
            return Some((sent.datagram.clone(), until));
        }
        self.settle(number);
        self.stats.abandoned += 1;
        None
    }

    fn settle(&mut self, number: u64) -> bool {
        let Some(sent) = self.unsettled.remove(&number) else {
            return false;
        };
        self.bytes -= sent.datagram.len() + OVERHEAD;
        true
    }
}
