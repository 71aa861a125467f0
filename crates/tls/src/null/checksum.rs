//! A fast keyed 64-bit checksum. It detects accidental changes, not attacks.

const LANES: usize = 4;

/// Bytes taken at a time: two words for each lane.
const BLOCK: usize = LANES * 16;

/// Digits of pi, as arbitrary constants.
const MIX: [u64; LANES] = [
    0x243f_6a88_85a3_08d3,
    0x1319_8a2e_0370_7344,
    0xa409_3822_299f_31d0,
    0x082e_fa98_ec4e_6c89,
];

/// State of a checksum.
pub(super) struct Checksum {
    /// Independent of each other within a block, so that a processor computes them in parallel.
    lanes: [u64; LANES],
}

impl Checksum {
    pub(super) fn new(key: u64) -> Self {
        Self {
            lanes: MIX.map(|mix| fold(key ^ mix, mix.rotate_left(32) | 1)),
        }
    }

    /// Adds a number.
    pub(super) fn number(&mut self, number: u64) {
        self.lanes[0] = fold(number ^ MIX[1], self.lanes[0] ^ MIX[2]);
    }

    /// Adds bytes and their count, so that two calls differ from one call with the bytes joined.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        let (blocks, rest) = bytes.as_chunks::<BLOCK>();
        // A local copy stays in registers.
        let mut lanes = self.lanes;
        for block in blocks {
            lanes = mix(lanes, block);
        }
        if !rest.is_empty() {
            let mut block = [0; BLOCK];
            block[..rest.len()].copy_from_slice(rest);
            lanes = mix(lanes, &block);
        }
        self.lanes = lanes;
    }

    pub(super) fn finish(&self) -> u64 {
        let sum = self.lanes.iter().fold(MIX[3], |sum, lane| {
            fold(sum ^ lane, MIX[0] ^ sum.rotate_left(29))
        });
        fold(sum ^ MIX[2], MIX[1])
    }

    /// The checksum in the size of an AEAD's tag; the second half follows from the first.
    pub(super) fn tag(&self) -> [u8; 16] {
        let sum = self.finish();
        let mut tag = [0; 16];
        tag[..8].copy_from_slice(&sum.to_le_bytes());
        tag[8..].copy_from_slice(&fold(sum ^ MIX[3], MIX[0]).to_le_bytes());
        tag
    }
}

/// The lanes after one more block.
#[inline]
fn mix([a, b, c, d]: [u64; LANES], block: &[u8; BLOCK]) -> [u64; LANES] {
    let (words, _) = block.as_chunks::<8>();
    let lane = |i: usize, lane: u64| {
        let first = u64::from_le_bytes(words[2 * i]);
        let second = u64::from_le_bytes(words[2 * i + 1]);
        fold(first ^ MIX[i], second ^ lane)
    };
    [lane(0, a), lane(1, b), lane(2, c), lane(3, d)]
}

/// Multiplies to 128 bits and joins the halves: every input bit reaches most output bits.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}
