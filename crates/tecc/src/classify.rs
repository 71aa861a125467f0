//! What became of the packets that a client misses. The client knows of each datagram its number in the tunnel and, once
//! decrypted, the number of the QUIC packet in it:
//!
//! | numbers in the tunnel around the missing packets | they are |
//! |---|---|
//! | none is missing, and three later ones came | lost before the proxy |
//! | some are missing that the proxy has not settled | being repaired |
//! | all that are missing are settled | given up by the proxy |
//!
//! If more packets are missing than numbers, some were lost on either side; which, can't be told, and they count as lost
//! before the proxy.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use swiftwater_units::Instant;

/// Later payloads that confirm that a packet never reached the proxy: reordering before it, as in RFC 9002, section
/// 6.1.1.
const CONFIRMATION: u64 = 3;

/// Packets kept above the first that is missing; beyond them that one counts as settled.
const MOST_KEPT: usize = 4_096;

/// Losses that are remembered.
const MOST_LOST: usize = 64;

/// Where a packet was lost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LossPlace {
    /// Between server and proxy.
    Upstream,
    /// Between proxy and client, and the proxy does not send it again.
    Abandoned,
}

/// Consecutive packets that were lost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LostPackets {
    /// The first packet number.
    pub first: u64,
    /// The last packet number.
    pub last: u64,
    /// Where.
    pub place: LossPlace,
}

/// Classifies the packets of one QUIC connection in one tunnel.
#[derive(Clone, Debug, Default)]
pub struct Classifier {
    /// Packets received, with their number in the tunnel, from the last settled one on.
    received: BTreeMap<u64, Option<u64>>,
    /// Numbers in the tunnel that came, from `floor` on; all below came or don't matter.
    numbers: BTreeSet<u64>,
    floor: u64,
    /// The proxy has settled all below.
    settled_number: u64,
    /// Every packet below is received or lost.
    settled_packet: u64,
    /// The newest last, each with the time at which it was found.
    lost: VecDeque<(LostPackets, Instant)>,
}

impl Classifier {
    /// Nothing came so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// The first packet number that is neither received nor known to be lost.
    pub fn settled(&self) -> u64 {
        self.settled_packet
    }

    /// Losses found in the last while, the newest first.
    pub fn lost(&self) -> impl Iterator<Item = &LostPackets> {
        self.lost.iter().rev().map(|(lost, _)| lost)
    }

    /// Packet `packet` came for the first time, as payload `number` of the tunnel if it has one.
    pub fn on_packet(&mut self, packet: u64, number: Option<u64>) {
        if let Some(number) = number.filter(|number| *number >= self.floor) {
            self.numbers.insert(number);
        }
        if packet >= self.settled_packet {
            self.received.insert(packet, number);
        }
        while self.received.len() > MOST_KEPT {
            self.skip_gap();
        }
        while self.numbers.len() > 2 * MOST_KEPT {
            if let Some(first) = self.numbers.pop_first() {
                self.floor = first + 1;
            }
        }
    }

    /// The proxy has settled every payload with a smaller number.
    pub fn on_settled(&mut self, number: u64) {
        self.settled_number = self.settled_number.max(number);
    }

    /// Finds what is known now about missing packets; true if more losses are known than before. Losses found more
    /// than `memory` ago are forgotten.
    pub fn classify(&mut self, now: Instant, memory: Duration) -> bool {
        while let Some((_, at)) = self.lost.front()
            && now.saturating_since(*at) > memory
        {
            self.lost.pop_front();
        }
        let mut is_changed = false;
        let mut all_final = true;
        let mut below: Option<(u64, Option<u64>)> = None;
        let mut gaps = Vec::new();
        let mut settled = self.settled_packet;
        for (&packet, &number) in &self.received {
            let expected = below.map_or(self.settled_packet, |(packet, _)| packet + 1);
            if packet > expected {
                let before = below.and_then(|(_, number)| number);
                let gap = (expected, packet - 1);
                match self.known(gap, before, number) {
                    Known::Lost(place) => gaps.push((gap, place)),
                    Known::Already => {}
                    Known::Open => all_final = false,
                }
            }
            if all_final {
                settled = packet + 1;
            }
            below = Some((packet, number.or(below.and_then(|(_, number)| number))));
        }
        for ((first, last), place) in gaps {
            let lost = LostPackets { first, last, place };
            self.lost.push_back((lost, now));
            is_changed = true;
        }
        while self.lost.len() > MOST_LOST {
            self.lost.pop_front();
        }
        self.settle(settled);
        is_changed
    }

    /// What is known of the packets of `gap` between those with the numbers `before` and `after`.
    fn known(&self, gap: (u64, u64), before: Option<u64>, after: Option<u64>) -> Known {
        let is_known = |lost: &LostPackets| lost.first <= gap.0 && gap.1 <= lost.last;
        if self.lost.iter().any(|(lost, _)| is_known(lost)) {
            return Known::Already;
        }
        let Some(after) = after else {
            return Known::Open;
        };
        // Without a packet before, it is all that is not known to have come.
        let before = before.unwrap_or(self.floor);
        let (low, high) = (before.min(after), before.max(after));
        let came = self.numbers.range(low..=high).count() as u64;
        let missing = (high - low + 1).saturating_sub(came);
        if missing > 0 {
            let is_unsettled = |number: u64| !self.numbers.contains(&number);
            let from = low.max(self.settled_number);
            if high >= from && (from..=high).any(is_unsettled) {
                return Known::Open;
            }
            let packets = gap.1 - gap.0 + 1;
            return Known::Lost(if missing >= packets {
                LossPlace::Abandoned
            } else {
                LossPlace::Upstream
            });
        }
        let newest = self.numbers.last().copied().unwrap_or(0);
        if newest >= high + CONFIRMATION {
            Known::Lost(LossPlace::Upstream)
        } else {
            Known::Open
        }
    }

    /// Every packet below `settled` is final; the last one received stays, to tell what lies between it and the next.
    fn settle(&mut self, settled: u64) {
        self.settled_packet = settled;
        let Some(last) = settled.checked_sub(1) else {
            return;
        };
        let rest = self.received.split_off(&last);
        let lowest = rest.values().filter_map(|number| *number).min();
        self.received = rest;
        if let Some(lowest) = lowest {
            let floor = lowest.saturating_sub(MOST_KEPT as u64 / 4).max(self.floor);
            self.numbers = self.numbers.split_off(&floor);
            self.floor = floor;
        }
    }

    /// Takes the first missing packets for settled.
    fn skip_gap(&mut self) {
        let mut packets = self.received.keys().copied();
        let mut end = packets.next().unwrap_or(self.settled_packet);
        if end < self.settled_packet {
            end = packets.next().unwrap_or(end);
        }
        self.settle(end + 1);
    }
}

/// What is known of a gap.
enum Known {
    Open,
    Already,
    Lost(LossPlace),
}
