//! What the network does to datagrams, until it heals; and the state that it keeps of them.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use swiftwater_link::Ecn;
use swiftwater_sim::{TapDatagram, Verdict};

use super::plan::{Marks, Wire};

/// Datagrams that can be replayed.
const CAPTURED: usize = 400;

/// True for a Version Negotiation packet: nothing in it proves that it is correct.
pub(crate) fn negotiates_version(data: &[u8]) -> bool {
    data.get(1..5) == Some(&[0; 4]) && data[0] & 0x80 != 0
}

/// A small generator (splitmix64), so that a case depends on nothing but its plan.
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn percent(&mut self, share: u32) -> bool {
        self.roll() % 100 < u64::from(share)
    }

    /// Flips a bit of `data`, unless damage to it can't be noticed.
    pub(crate) fn damage(&mut self, data: &mut [u8]) {
        if !data.is_empty() && !negotiates_version(data) {
            let at = self.roll() as usize % data.len();
            data[at] ^= 1 << (self.roll() % 8);
        }
    }
}

/// One direction.
#[derive(Debug)]
pub(crate) struct Faults {
    wire: Wire,
    dice: Dice,
    pub(crate) healed: bool,
    pub(crate) drop_next: u32,
    pub(crate) corrupt_next: u32,
    /// Larger datagrams vanish.
    pub(crate) carries: usize,
    pub(crate) captured: Vec<Vec<u8>>,
    pub(crate) offered: u64,
}

impl Faults {
    pub(crate) fn new(wire: &Wire, seed: u64) -> Rc<RefCell<Self>> {
        Rc::new(RefCell::new(Self {
            wire: wire.clone(),
            dice: Dice::new(seed),
            healed: false,
            drop_next: 0,
            corrupt_next: 0,
            carries: usize::MAX,
            captured: Vec::new(),
            offered: 0,
        }))
    }

    pub(crate) fn on_datagram(&mut self, datagram: &mut TapDatagram<'_>) -> Verdict {
        self.offered += 1;
        if self.captured.len() < CAPTURED {
            self.captured.push(datagram.data.clone());
        }
        if *datagram.ecn != Ecn::NotEct {
            match self.wire.marks {
                Marks::Kept => {}
                Marks::Cleared => *datagram.ecn = Ecn::NotEct,
                Marks::AllCongested => *datagram.ecn = Ecn::Ce,
            }
        }
        // What has shrunk stays so.
        if datagram.data.len() > self.carries {
            return Verdict::Drop;
        }
        if self.healed {
            return Verdict::Pass;
        }
        if self.drop_next > 0 {
            self.drop_next -= 1;
            return Verdict::Drop;
        }
        if self.dice.percent(self.wire.loss) {
            return Verdict::Drop;
        }
        if self.corrupt_next > 0 || self.dice.percent(self.wire.corrupt) {
            self.corrupt_next = self.corrupt_next.saturating_sub(1);
            self.dice.damage(datagram.data);
        }
        if self.dice.percent(self.wire.late) {
            return Verdict::Delay(Duration::from_millis(self.wire.late_ms));
        }
        Verdict::Pass
    }
}
