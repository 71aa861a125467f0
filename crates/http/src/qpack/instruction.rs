//! Encoder and decoder instructions (RFC 9204, sections 4.3 and 4.4), and their incremental parser.

use super::error::QpackFault;
use super::field::OVERHEAD;
use super::integer::{self, ReadError, Reader};
use super::string::{self, Literal};

/// Source of a name in a received insertion.
#[derive(Clone, Copy, Debug)]
pub(super) enum NameSource<'a> {
    /// Index in the static table.
    Static(u64),
    /// Index in the dynamic table, relative to the latest insertion.
    Relative(u64),
    /// The name itself.
    Literal(Literal<'a>),
}

/// An instruction on the encoder stream.
#[derive(Clone, Copy, Debug)]
pub(super) enum EncoderInstruction<'a> {
    SetCapacity(u64),
    Insert {
        name: NameSource<'a>,
        value: Literal<'a>,
    },
    /// Of the entry with this index, relative to the latest insertion.
    Duplicate(u64),
}

impl<'a> EncoderInstruction<'a> {
    /// Reads one for a table of this capacity. Strings that fit in no entry are rejected before they
    /// are complete, which bounds the buffer for an incomplete instruction.
    pub(super) fn read(reader: &mut Reader<'a>, capacity: u64) -> Result<Self, ReadError> {
        let max = capacity.saturating_sub(OVERHEAD);
        let first = reader.peek()?;
        if first & 0x80 != 0 {
            let index = reader.integer(6)?;
            let name = if first & 0x40 != 0 {
                NameSource::Static(index)
            } else {
                NameSource::Relative(index)
            };
            let value = string::read(reader, 8, max)?;
            Ok(Self::Insert { name, value })
        } else if first & 0x40 != 0 {
            let name = NameSource::Literal(string::read(reader, 6, max)?);
            let value = string::read(reader, 8, max)?;
            Ok(Self::Insert { name, value })
        } else if first & 0x20 != 0 {
            Ok(Self::SetCapacity(reader.integer(5)?))
        } else {
            Ok(Self::Duplicate(reader.integer(5)?))
        }
    }
}

/// Source of a name in an insertion to be written.
#[derive(Clone, Copy, Debug)]
pub(super) enum NameFor<'a> {
    Static(u64),
    Relative(u64),
    Literal(&'a [u8]),
}

/// Appends Set Dynamic Table Capacity.
pub(super) fn write_capacity(capacity: u64, out: &mut Vec<u8>) {
    integer::write(0x20, 5, capacity, out);
}

/// Appends Insert with Name Reference or Insert with Literal Name.
pub(super) fn write_insert(name: NameFor<'_>, value: &[u8], huffman: bool, out: &mut Vec<u8>) {
    match name {
        NameFor::Static(index) => integer::write(0xc0, 6, index, out),
        NameFor::Relative(index) => integer::write(0x80, 6, index, out),
        NameFor::Literal(name) => string::write(0x40, 6, name, huffman, out),
    }
    string::write(0, 8, value, huffman, out);
}

/// Appends Duplicate.
pub(super) fn write_duplicate(relative: u64, out: &mut Vec<u8>) {
    integer::write(0, 5, relative, out);
}

/// An instruction on the decoder stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum DecoderInstruction {
    /// Section Acknowledgment: the earliest unacknowledged section of this stream is acknowledged.
    Acknowledge(u64),
    /// Stream Cancellation: no section of this stream will be decoded.
    Cancel(u64),
    /// Insert Count Increment: so many more insertions have arrived.
    Increment(u64),
}

impl DecoderInstruction {
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, ReadError> {
        let first = reader.peek()?;
        if first & 0x80 != 0 {
            Ok(Self::Acknowledge(reader.integer(7)?))
        } else if first & 0x40 != 0 {
            Ok(Self::Cancel(reader.integer(6)?))
        } else {
            Ok(Self::Increment(reader.integer(6)?))
        }
    }

    pub(super) fn write(self, out: &mut Vec<u8>) {
        match self {
            Self::Acknowledge(stream) => integer::write(0x80, 7, stream, out),
            Self::Cancel(stream) => integer::write(0x40, 6, stream, out),
            Self::Increment(count) => integer::write(0, 6, count, out),
        }
    }
}

/// Processes all complete instructions in `partial` followed by `data` with `one`, which reads and executes
/// one. An incomplete last instruction is kept in `partial`.
pub(super) fn read_all(
    partial: &mut Vec<u8>,
    data: &[u8],
    mut one: impl FnMut(&mut Reader<'_>) -> Result<(), ReadError>,
) -> Result<(), QpackFault> {
    let joined;
    let bytes = if partial.is_empty() {
        data
    } else {
        partial.extend_from_slice(data);
        joined = std::mem::take(partial);
        &joined
    };
    let mut reader = Reader::new(bytes);
    let mut done = 0;
    while !reader.is_empty() {
        match one(&mut reader) {
            Ok(()) => done = reader.position(),
            Err(ReadError::End) => break,
            Err(ReadError::Fault(fault)) => return Err(fault),
        }
    }
    partial.extend_from_slice(&bytes[done..]);
    Ok(())
}
