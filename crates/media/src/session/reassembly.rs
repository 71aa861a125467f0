//! Reassembly of frames at the receiver.

use std::collections::BTreeMap;

use super::config::Coding;
use super::content::Cut;
use crate::frame::Frame;
use crate::protection::block_code;

/// State of a frame after a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Progress {
    /// More packets are needed, or it was complete before.
    Open,
    /// Complete, with `restored` packets of it restored by the code of the frame.
    Complete { restored: u32 },
    /// The received packets don't restore the frame that was sent.
    Failed,
}

/// A frame of which packets were received.
#[derive(Debug)]
pub(super) struct PartialFrame {
    pub(super) frame: Frame,
    pub(super) cut: Cut,
    coding: Coding,
    complete: bool,
    have: Vec<bool>,
    had: u32,
    /// Contents, in sessions with bytes, until the frame is complete.
    source: BTreeMap<u32, Vec<u8>>,
    repair: BTreeMap<u32, Vec<u8>>,
}

impl PartialFrame {
    pub(super) fn new(frame: Frame, cut: Cut, coding: Coding) -> Self {
        Self {
            frame,
            cut,
            coding,
            complete: false,
            have: vec![false; cut.packets() as usize],
            had: 0,
            source: BTreeMap::new(),
            repair: BTreeMap::new(),
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.complete
    }

    pub(super) fn has(&self, number: u32) -> bool {
        self.complete || self.have.get(number as usize).copied().unwrap_or(true)
    }

    /// Packets of the frame received so far.
    pub(super) fn present(&self) -> Vec<u32> {
        let all = 0..self.cut.packets();
        all.filter(|&number| self.has(number)).collect()
    }

    /// A packet of the frame was received for the first time.
    pub(super) fn on_source(&mut self, number: u32, content: &[u8]) -> Progress {
        if self.has(number) {
            return Progress::Open;
        }
        self.have[number as usize] = true;
        self.had += 1;
        if self.coding == Coding::Real {
            self.source.insert(number, content.to_vec());
        }
        self.check()
    }

    /// A repair packet was received.
    pub(super) fn on_repair(&mut self, number: u32, content: &[u8]) -> Progress {
        if self.complete || self.repair.contains_key(&number) {
            return Progress::Open;
        }
        let content = match self.coding {
            Coding::Real => content.to_vec(),
            Coding::Counted => Vec::new(),
        };
        self.repair.insert(number, content);
        self.check()
    }

    fn check(&mut self) -> Progress {
        let packets = self.cut.packets();
        if self.had as usize + self.repair.len() < packets as usize {
            return Progress::Open;
        }
        let is_right = match self.coding {
            Coding::Counted => true,
            Coding::Real => self.decodes(),
        };
        if !is_right {
            return Progress::Failed;
        }
        self.complete = true;
        self.source.clear();
        self.repair.clear();
        Progress::Complete {
            restored: packets - self.had,
        }
    }

    /// Restores missing packets, and compares all with the pattern.
    fn decodes(&self) -> bool {
        let source: Vec<_> = self
            .source
            .iter()
            .map(|(&number, content)| (number as usize, content.as_slice()))
            .collect();
        let repair: Vec<_> = self
            .repair
            .iter()
            .map(|(&number, content)| (number as usize, content.as_slice()))
            .collect();
        let packets = self.cut.packets();
        let Ok(decoded) = block_code::decode(packets as usize, &source, &repair) else {
            return false;
        };
        (0..packets).zip(&decoded).all(|(number, content)| {
            let sent = self.cut.pattern(self.frame.index, number);
            content.get(..sent.len()) == Some(sent.as_slice())
        })
    }
}
