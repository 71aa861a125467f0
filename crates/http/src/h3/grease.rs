//! Reserved values, `0x1f * N + 0x21`, that every peer must ignore (RFC 9114, sections 6.2.3, 7.2.4.1
//! and 7.2.8).

/// Generator of reserved values from a seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grease {
    seed: u64,
}

impl Grease {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The `nth` number drawn (SplitMix64).
    const fn draw(self, nth: u64) -> u64 {
        let mut n = self
            .seed
            .wrapping_add(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(nth + 1));
        n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        n ^ (n >> 31)
    }

    const fn reserved(self, nth: u64) -> u64 {
        0x1f * (self.draw(nth) % (1 << 32)) + 0x21
    }

    pub(crate) const fn setting(self) -> u64 {
        self.reserved(0)
    }

    pub(crate) const fn value(self) -> u64 {
        self.draw(1) % (1 << 16)
    }

    pub(crate) const fn frame_type(self) -> u64 {
        self.reserved(2)
    }

    pub(crate) const fn stream_type(self) -> u64 {
        self.reserved(3)
    }

    /// Up to seven bytes.
    pub(crate) fn payload(self) -> Vec<u8> {
        let drawn = self.draw(4).to_be_bytes();
        drawn[..usize::from(drawn[7] % 8)].to_vec()
    }
}
