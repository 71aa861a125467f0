//! Arithmetic in GF(2^16), by the tables and engine of `reed-solomon-simd`.

use reed_solomon_simd::engine::{DefaultEngine, Engine, GF_MODULUS, tables};

/// The product of two elements.
pub(super) fn multiply(a: u16, b: u16) -> u16 {
    if a == 0 || b == 0 {
        return 0;
    }
    let tables = tables::get_exp_log();
    tables::mul(a, tables.log[usize::from(b)], &tables.exp, &tables.log)
}

/// The inverse; 0 of 0.
pub(super) fn inverse(a: u16) -> u16 {
    if a == 0 {
        return 0;
    }
    let tables = tables::get_exp_log();
    let log = tables.log[usize::from(a)] % GF_MODULUS;
    tables.exp[usize::from((GF_MODULUS - log) % GF_MODULUS)]
}

/// Bytes as elements, in the engine's layout: blocks of 64 bytes with the low halves of 32 elements
/// first, then their high halves.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Elements(Vec<[u8; 64]>);

impl Elements {
    /// `bytes`, padded with zeros or cut to `len` bytes, an even number.
    pub(super) fn new(bytes: &[u8], len: usize) -> Self {
        let mut blocks = vec![[0; 64]; len.div_ceil(64)];
        let mut padded = bytes[..bytes.len().min(len)].to_vec();
        padded.resize(len, 0);
        for (block, chunk) in blocks.iter_mut().zip(padded.chunks(64)) {
            // The last block may hold fewer elements.
            let (low, high) = chunk.split_at(chunk.len() / 2);
            block[..low.len()].copy_from_slice(low);
            block[32..32 + high.len()].copy_from_slice(high);
        }
        Self(blocks)
    }

    /// The first `len` bytes (an even number, as given to [`Elements::new`]).
    pub(super) fn bytes(&self, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len);
        let mut left = len;
        for block in &self.0 {
            let half = left.min(64) / 2;
            bytes.extend_from_slice(&block[..half]);
            bytes.extend_from_slice(&block[32..32 + half]);
            left = left.saturating_sub(64);
        }
        bytes
    }

    /// Multiplies each element by `factor`.
    pub(super) fn scale(&mut self, factor: u16) {
        if factor == 0 {
            self.0.fill([0; 64]);
        } else {
            let log = tables::get_exp_log().log[usize::from(factor)];
            DefaultEngine::new().mul(&mut self.0, log);
        }
    }

    /// Adds `factor` times `other`, which has the same length.
    pub(super) fn add_scaled(&mut self, factor: u16, other: &Self) {
        if factor == 0 {
            return;
        }
        let mut other = other.clone();
        other.scale(factor);
        for (block, added) in self.0.iter_mut().zip(&other.0) {
            for (byte, more) in block.iter_mut().zip(added) {
                *byte ^= more;
            }
        }
    }
}
