//! The Huffman code for strings (RFC 7541, section 5.2 and appendix B).
//!
//! The code is canonical: codes of one length follow each other in the order of their symbols, and longer
//! codes continue where shorter ones end. So the lengths define the whole table; everything else is
//! computed from them at compile time.

use super::error::QpackFault;

/// Symbols: 256 bytes and the end of a string, which never appears in one.
const SYMBOLS: usize = 257;
const END: usize = 256;
const LONGEST: usize = 30;
/// Codes up to this length are decoded with one look-up: those of all letters and digits.
const DIRECT: u32 = 9;

/// Bits of each symbol's code.
#[rustfmt::skip]
const LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5,
    6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23,
    23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20,
    22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22,
    22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26,
    27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25,
    25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

/// Each symbol's code, in the low bits.
const CODES: [u32; SYMBOLS] = CANONICAL.codes;
/// Symbols in the order of their codes.
const ORDER: [u16; SYMBOLS] = CANONICAL.order;
/// For each length: where codes of this length end, left-aligned in 32 bits, exclusive.
const ENDS: [u64; LONGEST + 1] = CANONICAL.ends;
/// For each length: rank of its first symbol in `ORDER`, and its first code.
const FIRST: [(u16, u32); LONGEST + 1] = CANONICAL.first;
/// By the next bits: symbol, and length of its code or 0 if that is longer than the look-up.
static LOOKUP: [(u8, u8); 1 << DIRECT] = lookup();

struct Canonical {
    codes: [u32; SYMBOLS],
    order: [u16; SYMBOLS],
    ends: [u64; LONGEST + 1],
    first: [(u16, u32); LONGEST + 1],
}

const CANONICAL: Canonical = canonical();

const fn canonical() -> Canonical {
    let mut table = Canonical {
        codes: [0; SYMBOLS],
        order: [0; SYMBOLS],
        ends: [0; LONGEST + 1],
        first: [(0, 0); LONGEST + 1],
    };
    let mut code = 0_u32;
    let mut rank = 0;
    let mut length = 1;
    while length <= LONGEST {
        code <<= 1;
        table.first[length] = (rank as u16, code);
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if LENGTHS[symbol] as usize == length {
                table.codes[symbol] = code;
                table.order[rank] = symbol as u16;
                code += 1;
                rank += 1;
            }
            symbol += 1;
        }
        table.ends[length] = (code as u64) << (32 - length);
        length += 1;
    }
    table
}

const fn lookup() -> [(u8, u8); 1 << DIRECT] {
    let mut table = [(0, 0); 1 << DIRECT];
    let mut symbol = 0;
    while symbol < END {
        let length = LENGTHS[symbol] as u32;
        if length <= DIRECT {
            let spare = DIRECT - length;
            let first = (CODES[symbol] << spare) as usize;
            let mut at = first;
            while at < first + (1 << spare) {
                table[at] = (symbol as u8, length as u8);
                at += 1;
            }
        }
        symbol += 1;
    }
    table
}

/// Bytes of `text` when encoded.
pub(super) fn encoded_len(text: &[u8]) -> usize {
    let bits: usize = text
        .iter()
        .map(|&byte| usize::from(LENGTHS[usize::from(byte)]))
        .sum();
    bits.div_ceil(8)
}

/// Least number of bytes that `len` encoded bytes decode to: with the longest codes.
pub(super) const fn min_decoded_len(len: u64) -> u64 {
    // Division before multiplication, so that no length overflows.
    len.saturating_sub(1) / LONGEST as u64 * 8
}

/// Appends `text`, encoded.
pub(super) fn encode(text: &[u8], out: &mut Vec<u8>) {
    // Pending bits, right-aligned; fewer than 8 between symbols.
    let mut bits = 0_u64;
    let mut count = 0;
    for &byte in text {
        let length = u32::from(LENGTHS[usize::from(byte)]);
        bits = bits << length | u64::from(CODES[usize::from(byte)]);
        count += length;
        while count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    if count > 0 {
        // Padding is the start of the end symbol's code: ones.
        let padding = 8 - count;
        out.push((bits << padding) as u8 | (u8::MAX >> count));
    }
}

/// Appends the text of `code`: at most 8 bytes for 5.
pub(super) fn decode(code: &[u8], out: &mut Vec<u8>) -> Result<(), QpackFault> {
    out.reserve(code.len() * 8 / 5);
    // Pending bits, left-aligned, followed by zeros.
    let mut bits = 0_u64;
    let mut count = 0_u32;
    let mut rest = code.iter();
    loop {
        while count <= 56 {
            let Some(&byte) = rest.next() else { break };
            bits |= u64::from(byte) << (56 - count);
            count += 8;
        }
        let (symbol, length) = next(bits)?;
        if length > count {
            return check_padding(bits, count);
        }
        out.push(symbol);
        bits <<= length;
        count -= length;
    }
}

/// The symbol at the start of `bits` and the length of its code.
fn next(bits: u64) -> Result<(u8, u32), QpackFault> {
    let (symbol, length) = LOOKUP[(bits >> (64 - DIRECT)) as usize];
    if length > 0 {
        return Ok((symbol, u32::from(length)));
    }
    let window = bits >> 32;
    for length in DIRECT as usize + 1..=LONGEST {
        if window < ENDS[length] {
            let (rank, first) = FIRST[length];
            let code = (window >> (32 - length)) as u32;
            let symbol = ORDER[usize::from(rank) + (code - first) as usize];
            let symbol = u8::try_from(symbol).map_err(|_| QpackFault::Huffman)?;
            return Ok((symbol, length as u32));
        }
    }
    // Only the code of the end symbol and longer runs of ones are left.
    Err(QpackFault::Huffman)
}

/// The last `count` bits must be fewer than 8, and all ones.
fn check_padding(bits: u64, count: u32) -> Result<(), QpackFault> {
    if count < 8 && bits.leading_ones() >= count {
        Ok(())
    } else {
        Err(QpackFault::Huffman)
    }
}

#[cfg(test)]
mod tests;
