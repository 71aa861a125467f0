//! Cursors over borrowed buffers, the basis of all encoders and decoders.

use crate::error::DecodeError;
use crate::varint::VarInt;

/// Reads from the front of a borrowed slice; every read that would pass the end is
/// [`DecodeError::UnexpectedEnd`].
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads `bytes` from its start.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The unread rest.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Bytes left.
    pub const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// True if nothing is left.
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `n` bytes.
    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8], DecodeError> {
        let (head, rest) = self
            .rest
            .split_at_checked(n)
            .ok_or(DecodeError::UnexpectedEnd)?;
        self.rest = rest;
        Ok(head)
    }

    /// The next `N` bytes as an array.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (head, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(DecodeError::UnexpectedEnd)?;
        self.rest = rest;
        Ok(*head)
    }

    /// The next byte.
    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// The next two bytes, big-endian.
    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_be_bytes)
    }

    /// The next four bytes, big-endian.
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_be_bytes)
    }

    /// The next variable-length integer; any of the encodings is accepted, minimal or not.
    pub fn varint(&mut self) -> Result<u64, DecodeError> {
        let &first = self.rest.first().ok_or(DecodeError::UnexpectedEnd)?;
        let value = match first >> 6 {
            0 => u64::from(self.u8()?),
            1 => u64::from(self.u16()? & 0x3fff),
            2 => u64::from(self.u32()? & 0x3fff_ffff),
            _ => u64::from_be_bytes(self.array()?) & VarInt::MAX.get(),
        };
        Ok(value)
    }

    /// The next variable-length integer as a length, then that many bytes.
    pub fn length_prefixed(&mut self) -> Result<&'a [u8], DecodeError> {
        let len = self.varint()?;
        let len = usize::try_from(len).map_err(|_| DecodeError::UnexpectedEnd)?;
        self.bytes(len)
    }

    /// Everything left.
    pub fn take_rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }
}

/// Writes to the front of a borrowed slice. The caller checks the space first
/// ([`Writer::remaining`]); writing past the end is a bug of the caller and panics.
#[derive(Debug)]
pub struct Writer<'a> {
    buf: &'a mut [u8],
    written: usize,
}

impl<'a> Writer<'a> {
    /// Writes into `buf` from its start.
    pub const fn new(buf: &'a mut [u8]) -> Self {
        Self { buf, written: 0 }
    }

    /// Bytes written.
    pub const fn written(&self) -> usize {
        self.written
    }

    /// Space left, bytes.
    pub const fn remaining(&self) -> usize {
        self.buf.len() - self.written
    }

    /// The written bytes, for patching a length in place.
    pub fn filled_mut(&mut self) -> &mut [u8] {
        &mut self.buf[..self.written]
    }

    /// Appends `bytes`.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len()).copy_from_slice(bytes);
    }

    /// Appends `n` unspecified bytes and returns them for filling.
    pub fn reserve(&mut self, n: usize) -> &mut [u8] {
        let start = self.written;
        self.written += n;
        &mut self.buf[start..start + n]
    }

    /// Appends one byte.
    pub fn u8(&mut self, n: u8) {
        self.bytes(&[n]);
    }

    /// Appends two bytes, big-endian.
    pub fn u16(&mut self, n: u16) {
        self.bytes(&n.to_be_bytes());
    }

    /// Appends four bytes, big-endian.
    pub fn u32(&mut self, n: u32) {
        self.bytes(&n.to_be_bytes());
    }

    /// Appends the shortest encoding of `n`, which must be below 2^62.
    pub fn varint(&mut self, n: u64) {
        debug_assert!(
            n <= VarInt::MAX.get(),
            "{n} does not fit in a variable-length integer"
        );
        match VarInt::saturating(n).size() {
            1 => self.u8(n as u8),
            2 => self.u16(n as u16 | 0x4000),
            4 => self.u32(n as u32 | 0x8000_0000),
            _ => self.bytes(&(n | 0xc000_0000_0000_0000).to_be_bytes()),
        }
    }

    /// Appends `n`, which must be below 2^14, in two bytes even if one suffices (for lengths that
    /// are patched later).
    pub fn varint_2(&mut self, n: u16) {
        debug_assert!(n < 0x4000, "{n} does not fit in a two-byte integer");
        self.u16(n | 0x4000);
    }

    /// Appends the length of `bytes` and then `bytes`.
    pub fn length_prefixed(&mut self, bytes: &[u8]) {
        self.varint(bytes.len() as u64);
        self.bytes(bytes);
    }
}
