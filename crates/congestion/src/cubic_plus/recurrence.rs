//! Not in the paper: distinguishes overflow from random loss without a delay, for buffers too short to
//! show one.
//!
//! A buffer overflows at about the same flight each time, and hardly loses anything at much smaller
//! ones. Random losses come at any flight. So the share of packets lost at less than most of the
//! flight at the last overflow is that of random losses. Where nothing is lost there, each loss is
//! an overflow, and where more is lost now than there, part of it is.

use swiftwater_units::ByteCount;

use crate::sample::LostPacket;

/// Share of the flight at the last overflow below which nothing overflows.
const BELOW: f64 = 0.85;

/// How much more than at small flights is lost in a buffer that overflows: a factor, and a share of
/// packets.
const EXCESS: (f64, f64) = (1.5, 0.0025);

/// Losses over flights.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Recurrence {
    /// Flight at the last loss that reduced the window, bytes.
    top: Option<ByteCount>,
    /// Packets sent and lost at flights far below it.
    sent: f64,
    lost: f64,
}

impl Recurrence {
    fn is_below(&self, flight: ByteCount) -> bool {
        self.top.is_some_and(|top| flight < top.scaled(BELOW))
    }

    /// A packet was sent, which made the flight that long.
    pub(super) fn on_sent(&mut self, flight: ByteCount) {
        if self.is_below(flight) {
            self.sent += 1.0;
        }
    }

    /// Packets were lost.
    pub(super) fn on_lost(&mut self, packets: &[LostPacket]) {
        let below = packets
            .iter()
            .filter(|packet| self.is_below(packet.tx_in_flight));
        self.lost += below.count() as f64;
    }

    /// True if a loss event at this flight is an overflow, with the share `ratio` of packets lost now.
    pub(super) fn overflows(&self, flight: ByteCount, ratio: f64) -> bool {
        let (factor, share) = EXCESS;
        match self.top {
            None => true,
            Some(_) if self.is_below(flight) => false,
            Some(_) => ratio > factor * self.lost / self.sent.max(1.0) + share || self.lost < 1.0,
        }
    }

    /// A loss at `flight` reduced the window. Half of what was counted before stays.
    pub(super) fn on_reduction(&mut self, flight: ByteCount) {
        self.top = Some(flight);
        self.sent /= 2.0;
        self.lost /= 2.0;
    }
}
