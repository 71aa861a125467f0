//! The amount of parity for a frame.

use std::collections::VecDeque;

use super::code::DELAY_FRAMES;

/// The amount of parity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TamburParity {
    /// This share of a frame's packets, rounded up, while the receiver reports loss; else none. Sent
    /// three frames later.
    Ratio(f64),
    /// One parity packet with each frame, always.
    OnePacket,
}

/// Tambur's state in a session: the amount of parity by the receiver's reports.
#[derive(Clone, Debug)]
pub struct TamburRate {
    parity: TamburParity,
    loss_reported: bool,
    /// Parity pending for the last frames, oldest first.
    waiting: VecDeque<u16>,
}

/// Packets of a new frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FrameParity {
    /// Parity packets to send with it.
    pub parity: u16,
    /// How many of its packets are U packets.
    pub late_packets: u16,
}

impl TamburRate {
    /// No parity until loss is reported, except in the mode of one packet for each frame.
    pub fn new(parity: TamburParity) -> Self {
        Self {
            parity,
            loss_reported: false,
            waiting: VecDeque::new(),
        }
    }

    /// The receiver's report on its last two seconds.
    pub fn on_report(&mut self, lost: u32) {
        self.loss_reported = lost > 0;
    }

    /// A frame of `packets` packets is about to be sent.
    pub fn on_frame(&mut self, packets: u16) -> FrameParity {
        let share = match self.parity {
            TamburParity::OnePacket => {
                return FrameParity {
                    parity: 1,
                    late_packets: packets.min(1),
                };
            }
            TamburParity::Ratio(ratio) if self.loss_reported => {
                (f64::from(packets) * ratio - 1e-9).ceil().max(0.0) as u16
            }
            TamburParity::Ratio(_) => 0,
        };
        self.waiting.push_back(share);
        let due = self.waiting.len() as u64 > DELAY_FRAMES;
        let parity = if due { self.waiting.pop_front() } else { None };
        FrameParity {
            parity: parity.unwrap_or(0),
            late_packets: share.min(packets),
        }
    }

    /// The stream restarts at the next frame.
    pub fn restart(&mut self) {
        self.waiting.clear();
    }
}
