//! Decoding of one section whose insertions were all received (RFC 9204, section 4.5).

use bytes::{Bytes, BytesMut};

use super::{Decoded, DecoderConfig, Excess};
use crate::qpack::error::QpackFault;
use crate::qpack::field::Field;
use crate::qpack::integer::{ReadError, Reader};
use crate::qpack::line::{Line, Reference};
use crate::qpack::prefix::Prefix;
use crate::qpack::static_table;
use crate::qpack::string::Literal;
use crate::qpack::table::Table;

/// Inputs and outputs of decoding.
pub(super) struct Work<'a> {
    table: &'a Table<()>,
    prefix: Prefix,
    config: &'a DecoderConfig,
    /// Memory for the section's Huffman strings, shared by them.
    text: BytesMut,
    size: u64,
}

impl<'a> Work<'a> {
    pub(super) fn new(table: &'a Table<()>, prefix: Prefix, config: &'a DecoderConfig) -> Self {
        Self {
            table,
            prefix,
            config,
            text: BytesMut::new(),
            size: 0,
        }
    }

    /// The fields of the lines from position `at` of `block` on, or the limit that they exceed.
    pub(super) fn decode(
        mut self,
        block: &Bytes,
        at: usize,
        scratch: &mut Vec<u8>,
    ) -> Result<Decoded, QpackFault> {
        // Most messages have fewer. Many allocators serve less than 1 KiB quickest.
        let mut fields = Vec::with_capacity(12);
        let mut reader = Reader::new(&block[at..]);
        while !reader.is_empty() {
            if fields.len() == self.config.max_fields {
                return Ok(Decoded::TooLarge(Excess::Count));
            }
            let line = Line::read(&mut reader).map_err(ReadError::at_end)?;
            let field = self.field(line, block, scratch)?;
            self.size += field.size();
            if self.size > self.config.max_field_section_size {
                return Ok(Decoded::TooLarge(Excess::Size));
            }
            fields.push(field);
        }
        Ok(Decoded::Fields(fields))
    }

    fn field(
        &mut self,
        line: Line<'_>,
        block: &Bytes,
        scratch: &mut Vec<u8>,
    ) -> Result<Field, QpackFault> {
        let (name, value, sensitive) = match line {
            Line::Indexed(reference) => {
                let (name, value) = self.entry(reference)?;
                (name, value, false)
            }
            Line::Named {
                name,
                value,
                sensitive,
            } => {
                let name = self.entry(name)?.0;
                (name, self.string(value, block, scratch)?, sensitive)
            }
            Line::Literal {
                name,
                value,
                sensitive,
            } => {
                let name = self.string(name, block, scratch)?;
                (name, self.string(value, block, scratch)?, sensitive)
            }
        };
        Ok(Field {
            name,
            value,
            sensitive,
        })
    }

    fn entry(&self, reference: Reference) -> Result<(Bytes, Bytes), QpackFault> {
        let absolute = match reference {
            Reference::Static(index) => {
                return static_table::get(index).ok_or(QpackFault::StaticIndex(index));
            }
            Reference::Relative(index) => self.prefix.base.checked_sub(index + 1),
            // Both are below 2^63.
            Reference::PostBase(index) => Some(self.prefix.base + index),
        };
        let entry = absolute
            .filter(|&absolute| absolute < self.prefix.required)
            .and_then(|absolute| self.table.get(absolute))
            .ok_or(QpackFault::DynamicIndex)?;
        Ok((entry.name.clone(), entry.value.clone()))
    }

    fn string(
        &mut self,
        literal: Literal<'_>,
        block: &Bytes,
        scratch: &mut Vec<u8>,
    ) -> Result<Bytes, QpackFault> {
        if !literal.huffman {
            return Ok(block.slice_ref(literal.bytes));
        }
        scratch.clear();
        literal.decode_into(scratch)?;
        if self.text.capacity() < scratch.len() {
            // Usually the only growth: Huffman coding saves less than half.
            self.text.reserve(scratch.len().max(block.len() * 8 / 5));
        }
        self.text.extend_from_slice(scratch);
        Ok(self.text.split().freeze())
    }
}
