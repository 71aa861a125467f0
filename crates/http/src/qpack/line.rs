//! Field line representations (RFC 9204, sections 4.5.2 to 4.5.6).

use super::integer::{self, ReadError, Reader};
use super::string::{self, Literal};

/// A reference to a table's entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Reference {
    /// In the static table.
    Static(u64),
    /// In the dynamic table, down from the Base.
    Relative(u64),
    /// In the dynamic table, up from the Base.
    PostBase(u64),
}

/// One representation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Line<'a> {
    Indexed(Reference),
    Named {
        name: Reference,
        value: Literal<'a>,
        sensitive: bool,
    },
    Literal {
        name: Literal<'a>,
        value: Literal<'a>,
        sensitive: bool,
    },
}

impl<'a> Line<'a> {
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, ReadError> {
        let first = reader.peek()?;
        let bit = |place: u32| first & (1 << place) != 0;
        match first.leading_zeros() {
            0 => Ok(Self::Indexed(static_or_relative(
                bit(6),
                reader.integer(6)?,
            ))),
            1 => Ok(Self::Named {
                name: static_or_relative(bit(4), reader.integer(4)?),
                value: string::read(reader, 8, u64::MAX)?,
                sensitive: bit(5),
            }),
            2 => Ok(Self::Literal {
                name: string::read(reader, 4, u64::MAX)?,
                value: string::read(reader, 8, u64::MAX)?,
                sensitive: bit(4),
            }),
            3 => Ok(Self::Indexed(Reference::PostBase(reader.integer(4)?))),
            _ => Ok(Self::Named {
                name: Reference::PostBase(reader.integer(3)?),
                value: string::read(reader, 8, u64::MAX)?,
                sensitive: bit(3),
            }),
        }
    }
}

const fn static_or_relative(is_static: bool, index: u64) -> Reference {
    if is_static {
        Reference::Static(index)
    } else {
        Reference::Relative(index)
    }
}

/// Appends an indexed field line.
pub(super) fn write_indexed(reference: Reference, out: &mut Vec<u8>) {
    match reference {
        Reference::Static(index) => integer::write(0xc0, 6, index, out),
        Reference::Relative(index) => integer::write(0x80, 6, index, out),
        Reference::PostBase(index) => integer::write(0x10, 4, index, out),
    }
}

/// Appends a literal field line with name reference.
pub(super) fn write_named(
    name: Reference,
    value: &[u8],
    sensitive: bool,
    huffman: bool,
    out: &mut Vec<u8>,
) {
    let never = u8::from(sensitive);
    match name {
        Reference::Static(index) => integer::write(0x50 | never << 5, 4, index, out),
        Reference::Relative(index) => integer::write(0x40 | never << 5, 4, index, out),
        Reference::PostBase(index) => integer::write(never << 3, 3, index, out),
    }
    string::write(0, 8, value, huffman, out);
}

/// Appends a literal field line with literal name.
pub(super) fn write_literal(
    name: &[u8],
    value: &[u8],
    sensitive: bool,
    huffman: bool,
    out: &mut Vec<u8>,
) {
    string::write(0x20 | u8::from(sensitive) << 4, 4, name, huffman, out);
    string::write(0, 8, value, huffman, out);
}
