//! String literals with a prefix of N bits (RFC 9204, section 4.1.2).

use super::error::QpackFault;
use super::huffman;
use super::integer::{self, ReadError, Reader};

/// A string as it was received.
#[derive(Clone, Copy, Debug)]
pub(super) struct Literal<'a> {
    /// Its bytes, encoded or not.
    pub(super) bytes: &'a [u8],
    /// Whether they are encoded.
    pub(super) huffman: bool,
}

impl Literal<'_> {
    /// Appends the decoded string.
    pub(super) fn decode_into(self, out: &mut Vec<u8>) -> Result<(), QpackFault> {
        if self.huffman {
            huffman::decode(self.bytes, out)
        } else {
            out.extend_from_slice(self.bytes);
            Ok(())
        }
    }
}

/// Reads a string whose flag and length take the low `bits` (2 to 8) of the next byte. A string that
/// decodes to more than `max` bytes is rejected with `EntryTooLarge` before its bytes were received.
pub(super) fn read<'a>(
    reader: &mut Reader<'a>,
    bits: u32,
    max: u64,
) -> Result<Literal<'a>, ReadError> {
    let huffman = reader.peek()? & (1 << (bits - 1)) != 0;
    let len = reader.integer(bits - 1)?;
    let least = if huffman {
        huffman::min_decoded_len(len)
    } else {
        len
    };
    if least > max {
        return Err(QpackFault::EntryTooLarge.into());
    }
    let bytes = reader.take(len)?;
    Ok(Literal { bytes, huffman })
}

/// Appends `text` with flag and length in the low `bits` (2 to 8) of a first byte whose other bits are
/// `high`; Huffman-coded if `allow_huffman` and that is shorter.
pub(super) fn write(high: u8, bits: u32, text: &[u8], allow_huffman: bool, out: &mut Vec<u8>) {
    let encoded = huffman::encoded_len(text);
    if allow_huffman && encoded < text.len() {
        integer::write(high | 1 << (bits - 1), bits - 1, encoded as u64, out);
        huffman::encode(text, out);
    } else {
        integer::write(high, bits - 1, text.len() as u64, out);
        out.extend_from_slice(text);
    }
}
