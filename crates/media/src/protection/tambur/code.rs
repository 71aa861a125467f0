//! Structure of a parity packet.

use std::time::Duration;

use super::field::Elements;

/// τ: a lost frame is restored at the latest with the parity of the frame this many after it.
pub const DELAY_FRAMES: u64 = 3;

/// A frame covered by parity.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WindowFrame {
    /// Packets of the frame.
    pub packets: u16,
    /// How many of them, the last, are U packets.
    pub late_packets: u16,
    /// Bytes of the frame.
    pub size: u32,
    /// Whether it is a key frame.
    pub is_key: bool,
    /// How long before the parity's own frame its encoding was complete.
    pub before: Duration,
}

/// The frames that parity of one frame covers: that frame last, up to [`DELAY_FRAMES`] before it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Window {
    /// Index of the last frame.
    pub frame: u64,
    /// The frames in order; at most `DELAY_FRAMES + 1` and at most `frame + 1`.
    pub frames: Vec<WindowFrame>,
}

/// A packet of a frame, as a symbol of the code.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Symbol {
    /// Index of the frame.
    pub frame: u64,
    /// Number of the packet in it.
    pub packet: u16,
}

/// One parity packet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Parity {
    /// The frames covered.
    pub window: Window,
    /// Number among the parity packets of its frame.
    pub number: u16,
}

impl Window {
    /// The frames with their indices, in order.
    pub fn indexed(&self) -> impl Iterator<Item = (u64, &WindowFrame)> {
        let first = (self.frame + 1).saturating_sub(self.frames.len() as u64);
        (first..).zip(&self.frames)
    }
}

impl Parity {
    /// The covered packets and their coefficients, which are never 0.
    pub fn terms(&self) -> impl Iterator<Item = (Symbol, u16)> + '_ {
        let last = self.window.frame;
        self.window.indexed().flat_map(move |(frame, of)| {
            let whole = frame == last || frame + DELAY_FRAMES == last;
            let early = of.packets.saturating_sub(of.late_packets);
            (0..if whole { of.packets } else { early }).map(move |packet| {
                let symbol = Symbol { frame, packet };
                (symbol, self.coefficient(symbol))
            })
        })
    }

    /// Pseudo-random and the same at both ends.
    fn coefficient(&self, symbol: Symbol) -> u16 {
        let words = [
            self.window.frame,
            u64::from(self.number),
            symbol.frame,
            u64::from(symbol.packet),
        ];
        let mixed = words.into_iter().fold(0, |state, word| mix(state ^ word));
        // 1 to 65535.
        ((mixed >> 32) % 65_535) as u16 + 1
    }
}

/// The content of a parity packet of `len` bytes, an even number and at least the length of every
/// packet. `content` returns the packets' bytes; unknown ones count as zeros.
pub fn encode<'a>(
    parity: &Parity,
    len: usize,
    content: impl Fn(Symbol) -> Option<&'a [u8]>,
) -> Vec<u8> {
    let mut sum = Elements::new(&[], len);
    for (symbol, coefficient) in parity.terms() {
        if let Some(bytes) = content(symbol) {
            sum.add_scaled(coefficient, &Elements::new(bytes, len));
        }
    }
    sum.bytes(len)
}

/// One step of a mixing function in which every bit depends on every bit (the finaliser of
/// SplitMix64; Steele, Lea, Flood 2014).
fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}
