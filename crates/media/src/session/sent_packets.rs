//! Sent packets and their fates; loss detection (RFC 9002, section 6.1).

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::time::Duration;

use swiftwater_units::Instant;

use super::rtt::RttEstimate;

/// Packet threshold: a packet is lost if the largest acknowledged one is this far ahead.
const PACKET_THRESHOLD: u64 = 3;
/// How long a packet that was declared lost is stored, to detect a spurious loss.
const MEMORY: Duration = Duration::from_secs(2);

/// Which copy of a data range a packet carries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Copy {
    First,
    /// 1 is the first retransmission.
    Retransmission(u32),
    Replica,
}

/// Content of a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Content {
    /// Packet `number` of a frame.
    Data { frame: u64, number: u32, copy: Copy },
    /// Repair or parity sent with a frame.
    Redundancy { frame: u64 },
}

impl Content {
    pub(super) fn frame(self) -> u64 {
        match self {
            Self::Data { frame, .. } | Self::Redundancy { frame } => frame,
        }
    }

    /// Whether it is data that were sent before.
    pub(super) fn is_repeated(self) -> bool {
        matches!(self, Self::Data { copy, .. } if copy != Copy::First)
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum State {
    InFlight,
    Acked,
    Lost,
}

/// A sent packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) at: Instant,
    pub(super) size: u32,
    pub(super) content: Content,
    pub(super) state: State,
}

/// A packet whose fate is determined.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settled {
    pub(super) sequence: u64,
    pub(super) sent: Sent,
    /// With an acknowledgement: it was declared lost before.
    pub(super) was_lost: bool,
}

#[derive(Debug, Default)]
pub(super) struct SentPackets {
    /// Sequence number of the first stored packet.
    base: u64,
    packets: VecDeque<Sent>,
    /// No packet before this one is in flight.
    first_open: u64,
    largest_acked: Option<u64>,
    bytes_in_flight: u64,
    /// When the next packet is declared lost by the time threshold.
    loss_time: Option<Instant>,
}

impl SentPackets {
    pub(super) fn next_sequence(&self) -> u64 {
        self.base + self.packets.len() as u64
    }

    pub(super) fn bytes_in_flight(&self) -> u64 {
        self.bytes_in_flight
    }

    pub(super) fn loss_time(&self) -> Option<Instant> {
        self.loss_time
    }

    pub(super) fn on_sent(&mut self, at: Instant, size: u32, content: Content) {
        self.bytes_in_flight += u64::from(size);
        self.packets.push_back(Sent {
            at,
            size,
            content,
            state: State::InFlight,
        });
    }

    pub(super) fn get(&self, sequence: u64) -> Option<&Sent> {
        let at = sequence.checked_sub(self.base)?;
        self.packets.get(usize::try_from(at).ok()?)
    }

    /// Packets in flight with their sequence numbers, oldest first.
    pub(super) fn in_flight(&self) -> impl Iterator<Item = (u64, &Sent)> {
        let skip = self.first_open.saturating_sub(self.base) as usize;
        (self.first_open.max(self.base)..)
            .zip(self.packets.iter().skip(skip))
            .filter(|(_, sent)| sent.state == State::InFlight)
    }

    /// Packets of `ranges` (the largest first) that are newly acknowledged, appended to `out` in
    /// ascending order. Numbers that were never sent are ignored.
    pub(super) fn on_ack(&mut self, ranges: &[RangeInclusive<u64>], out: &mut Vec<Settled>) {
        for range in ranges.iter().rev() {
            let start = (*range.start()).max(self.base);
            let end = range.end().saturating_add(1).min(self.next_sequence());
            // Empty for packets that are no longer stored, and for those never sent.
            for sequence in start..end {
                let Some(sent) = self.packets.get_mut((sequence - self.base) as usize) else {
                    break;
                };
                if sent.state == State::Acked {
                    continue;
                }
                let was_lost = sent.state == State::Lost;
                if !was_lost {
                    self.bytes_in_flight -= u64::from(sent.size);
                }
                sent.state = State::Acked;
                out.push(Settled {
                    sequence,
                    sent: *sent,
                    was_lost,
                });
                self.largest_acked = self.largest_acked.max(Some(sequence));
            }
        }
        self.skip_settled();
    }

    /// Packets that are lost by now, appended to `out` in ascending order.
    pub(super) fn detect(&mut self, now: Instant, rtt: &RttEstimate, out: &mut Vec<Settled>) {
        self.loss_time = None;
        let Some(largest) = self.largest_acked else {
            return;
        };
        let delay = rtt.loss_delay();
        for sequence in self.first_open.max(self.base)..largest {
            let Some(sent) = self.packets.get_mut((sequence - self.base) as usize) else {
                break;
            };
            if sent.state != State::InFlight {
                continue;
            }
            if largest - sequence >= PACKET_THRESHOLD || sent.at + delay <= now {
                sent.state = State::Lost;
                self.bytes_in_flight -= u64::from(sent.size);
                out.push(Settled {
                    sequence,
                    sent: *sent,
                    was_lost: true,
                });
            } else if self.loss_time.is_none() {
                self.loss_time = Some(sent.at + delay);
            }
        }
        self.skip_settled();
        self.discard(now);
    }

    fn skip_settled(&mut self) {
        self.first_open = self.first_open.max(self.base);
        while self
            .get(self.first_open)
            .is_some_and(|sent| sent.state != State::InFlight)
        {
            self.first_open += 1;
        }
    }

    fn discard(&mut self, now: Instant) {
        while let Some(sent) = self.packets.front() {
            let old = match sent.state {
                State::InFlight => false,
                State::Acked => true,
                State::Lost => now.saturating_since(sent.at) > MEMORY,
            };
            if !old {
                break;
            }
            self.packets.pop_front();
            self.base += 1;
        }
    }
}
