//! Prefixed integers (RFC 7541, section 5.1; RFC 9204, section 4.1.1), and the reader on which all parsers
//! of QPACK are built.
//!
//! Values go up to 2^62 - 1. Nine bytes after the prefix hold any such value; longer encodings are rejected
//! even if they only add zeros.

use super::error::QpackFault;

/// The largest integer that is accepted.
pub(super) const MAX: u64 = (1 << 62) - 1;
/// Most bytes after the prefix.
const MAX_CONTINUATION: u32 = 9;

/// Why a value could not be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ReadError {
    /// The bytes end early: on a stream, more may follow.
    End,
    /// Invalid, whatever bytes follow.
    Fault(QpackFault),
}

impl ReadError {
    /// The error if no more bytes follow.
    pub(super) const fn at_end(self) -> QpackFault {
        match self {
            Self::End => QpackFault::Truncated,
            Self::Fault(fault) => fault,
        }
    }
}

impl From<QpackFault> for ReadError {
    fn from(fault: QpackFault) -> Self {
        Self::Fault(fault)
    }
}

/// Reads from the start of some bytes.
#[derive(Clone, Debug)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// Bytes read so far.
    pub(super) const fn position(&self) -> usize {
        self.position
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.position == self.bytes.len()
    }

    /// The next byte, which is not consumed: its high bits determine the type.
    pub(super) fn peek(&self) -> Result<u8, ReadError> {
        self.bytes.get(self.position).copied().ok_or(ReadError::End)
    }

    fn byte(&mut self) -> Result<u8, ReadError> {
        let byte = self.peek()?;
        self.position += 1;
        Ok(byte)
    }

    /// An integer in the low `prefix` bits (1 to 8) of the next byte and the bytes after it.
    pub(super) fn integer(&mut self, prefix: u32) -> Result<u64, ReadError> {
        let mask = u64::from(u8::MAX >> (8 - prefix));
        let first = u64::from(self.byte()?) & mask;
        if first < mask {
            return Ok(first);
        }
        let mut value = mask;
        for place in 0..MAX_CONTINUATION {
            let byte = self.byte()?;
            // At most 2^63 - 1 + 255: no overflow.
            value += u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                return if value > MAX {
                    Err(QpackFault::IntegerTooLarge.into())
                } else {
                    Ok(value)
                };
            }
        }
        Err(QpackFault::IntegerTooLarge.into())
    }

    /// The next `len` bytes.
    pub(super) fn take(&mut self, len: u64) -> Result<&'a [u8], ReadError> {
        let rest = &self.bytes[self.position..];
        let len = usize::try_from(len).map_err(|_| ReadError::End)?;
        let taken = rest.get(..len).ok_or(ReadError::End)?;
        self.position += len;
        Ok(taken)
    }
}

/// Appends `value` with the low `prefix` bits (1 to 8) of a first byte whose other bits are `high`.
pub(super) fn write(high: u8, prefix: u32, value: u64, out: &mut Vec<u8>) {
    debug_assert!(value <= MAX);
    let mask = u64::from(u8::MAX >> (8 - prefix));
    if value < mask {
        out.push(high | value as u8);
        return;
    }
    out.push(high | mask as u8);
    let mut rest = value - mask;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests;
