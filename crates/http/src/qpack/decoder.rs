//! The decoder: turns the peer's sections and encoder stream into fields, and produces decoder
//! instructions (RFC 9204, section 2.2).
//!
//! Parts: `section` decodes one section whose insertions were received, `blocked` stores blocked
//! sections, `decoder_instructions` collects the instructions for the peer's encoder.

mod blocked;
mod decoder_instructions;
mod section;

use bytes::Bytes;

use self::blocked::BlockedSections;
use self::decoder_instructions::DecoderInstructions;
use super::error::{QpackError, QpackFault};
use super::field::Field;
use super::instruction::{self, DecoderInstruction, EncoderInstruction, NameSource};
use super::integer::Reader;
use super::prefix::Prefix;
use super::static_table;
use super::string::Literal;
use super::table::{Entry, Table};

/// Limits on the peer's encoder. The first two are announced in SETTINGS.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DecoderConfig {
    /// `SETTINGS_QPACK_MAX_TABLE_CAPACITY`, bytes (RFC 9204, section 3.2.3). 0: no dynamic table.
    pub max_table_capacity: u64,
    /// `SETTINGS_QPACK_BLOCKED_STREAMS` (section 2.1.2). 0: sections are never blocked.
    pub max_blocked_streams: u64,
    /// Bytes of a section, once decoded, counted as by `SETTINGS_MAX_FIELD_SECTION_SIZE` (RFC 9114,
    /// section 4.2.2). The limit also applies to the encoded section.
    pub max_field_section_size: u64,
    /// Fields in a section.
    pub max_fields: usize,
}

impl Default for DecoderConfig {
    /// A table of 4 KiB, 16 blocked streams, sections of 64 KiB with 256 fields.
    fn default() -> Self {
        Self {
            max_table_capacity: 4096,
            max_blocked_streams: 16,
            max_field_section_size: 64 << 10,
            max_fields: 256,
        }
    }
}

/// Result of decoding a section.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Decoded {
    /// Its fields, in order. Values may share the section's memory.
    Fields(Vec<Field>),
    /// It is blocked: it refers to insertions not yet received; [`Decoder::poll_unblocked`] will return it.
    /// Until then its stream should not be read further (RFC 9204, section 2.2.1).
    Blocked,
    /// It exceeds a limit and was discarded; later sections can be decoded.
    TooLarge(Excess),
}

/// Which limit a section exceeds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Excess {
    /// [`DecoderConfig::max_field_section_size`], decoded or encoded.
    Size,
    /// [`DecoderConfig::max_fields`].
    Count,
}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct DecoderStats {
    /// Sections that were handed to [`Decoder::decode`].
    pub sections: u64,
    /// Of these, those that were blocked.
    pub blocked: u64,
    /// Entries that the peer inserted, duplicates included.
    pub inserted: u64,
    /// Size of the dynamic table now, bytes (section 3.2.1).
    pub table_size: u64,
}

/// Decodes the sections of one peer.
#[derive(Debug)]
pub struct Decoder {
    config: DecoderConfig,
    table: Table<()>,
    held: BlockedSections,
    feedback: DecoderInstructions,
    /// An incomplete encoder instruction.
    partial: Vec<u8>,
    scratch: Vec<u8>,
    sections: u64,
    blocked: u64,
}

impl Decoder {
    /// A decoder with an empty table.
    pub fn new(config: DecoderConfig) -> Self {
        Self {
            config,
            table: Table::new(),
            held: BlockedSections::default(),
            feedback: DecoderInstructions::default(),
            partial: Vec::new(),
            scratch: Vec::new(),
            sections: 0,
            blocked: 0,
        }
    }

    /// Decodes the field section `block` of `stream`. Sections of a stream come in their order; those
    /// behind a blocked one are blocked too.
    ///
    /// Memory of the result: at most [`DecoderConfig::max_fields`] fields, whose bytes are shared with the
    /// tables or take at most `8 / 5` of the block's length. Time: linear in the block's length.
    pub fn decode(&mut self, stream: u64, block: &Bytes) -> Result<Decoded, QpackError> {
        self.feedback.check()?;
        self.sections += 1;
        let mut reader = Reader::new(block);
        let prefix = Prefix::read(
            &mut reader,
            self.config.max_table_capacity,
            self.table.inserted(),
        )
        .map_err(QpackError::DecompressionFailed)?;
        let lines_at = reader.position();
        let fits = self.fits(block);
        if prefix.required > self.table.inserted() || self.held.contains(stream) {
            let lines = fits.then(|| block.slice(lines_at..));
            let section = blocked::Section { prefix, lines };
            self.held
                .push(stream, section, self.config.max_blocked_streams)
                .map_err(QpackError::DecompressionFailed)?;
            self.blocked += 1;
            return Ok(Decoded::Blocked);
        }
        self.finish(stream, prefix, fits.then_some((block, lines_at)))
    }

    /// Processes bytes of the peer's encoder stream, however fragmented.
    pub fn on_encoder_stream(&mut self, data: &[u8]) -> Result<(), QpackError> {
        self.feedback.check()?;
        let mut partial = std::mem::take(&mut self.partial);
        let result = instruction::read_all(&mut partial, data, |reader| {
            let instruction = EncoderInstruction::read(reader, self.table.capacity())?;
            self.obey(instruction)?;
            Ok(())
        });
        self.partial = partial;
        result.map_err(QpackError::EncoderStream)
    }

    /// The next section that is no longer blocked: its stream, and its result.
    pub fn poll_unblocked(&mut self) -> Option<(u64, Result<Decoded, QpackError>)> {
        let (stream, section) = self.held.pop(self.table.inserted())?;
        let decoded = self.finish(
            stream,
            section.prefix,
            section.lines.as_ref().map(|lines| (lines, 0)),
        );
        Some((stream, decoded))
    }

    /// `stream` was reset by the peer, or we stopped reading it, before all of its sections were decoded
    /// (RFC 9204, section 2.2.2.2): discards them and emits Stream Cancellation.
    pub fn cancel_stream(&mut self, stream: u64) {
        self.held.remove(stream);
        if self.config.max_table_capacity > 0 {
            self.feedback.push(DecoderInstruction::Cancel(stream));
        }
    }

    /// All bytes pending for the decoder stream.
    pub fn poll_instructions(&mut self) -> Option<Bytes> {
        self.feedback.poll(self.table.inserted())
    }

    /// Counts since the start.
    pub fn stats(&self) -> DecoderStats {
        DecoderStats {
            sections: self.sections,
            blocked: self.blocked,
            inserted: self.table.inserted(),
            table_size: self.table.size(),
        }
    }

    /// Whether an encoded section is within the limit.
    fn fits(&self, block: &Bytes) -> bool {
        block.len() as u64 <= self.config.max_field_section_size
    }

    /// Decodes a section whose lines begin at a position of a block; `None` in place of these if it is too large.
    fn finish(
        &mut self,
        stream: u64,
        prefix: Prefix,
        lines: Option<(&Bytes, usize)>,
    ) -> Result<Decoded, QpackError> {
        let required = prefix.required;
        let decoded = match lines {
            None => Decoded::TooLarge(Excess::Size),
            Some((block, at)) => section::Work::new(&self.table, prefix, &self.config)
                .decode(block, at, &mut self.scratch)
                .map_err(QpackError::DecompressionFailed)?,
        };
        // A section that is too large counts as processed: its references end.
        if required > 0 {
            self.feedback.acknowledge(stream, required);
        }
        Ok(decoded)
    }

    fn obey(&mut self, instruction: EncoderInstruction<'_>) -> Result<(), QpackFault> {
        match instruction {
            EncoderInstruction::SetCapacity(capacity) => {
                if capacity > self.config.max_table_capacity {
                    return Err(QpackFault::Capacity(capacity));
                }
                self.table.set_capacity(capacity);
                self.make_room(0);
                Ok(())
            }
            EncoderInstruction::Insert { name, value } => {
                let name = match name {
                    NameSource::Static(index) => {
                        static_table::get(index)
                            .ok_or(QpackFault::StaticIndex(index))?
                            .0
                    }
                    NameSource::Relative(index) => self.relative(index)?.name.clone(),
                    NameSource::Literal(name) => self.own(name)?,
                };
                let value = self.own(value)?;
                self.insert(name, value)
            }
            EncoderInstruction::Duplicate(index) => {
                let entry = self.relative(index)?;
                let (name, value) = (entry.name.clone(), entry.value.clone());
                self.insert(name, value)
            }
        }
    }

    fn relative(&self, index: u64) -> Result<&Entry<()>, QpackFault> {
        let absolute = self.table.inserted().checked_sub(index + 1);
        absolute
            .and_then(|absolute| self.table.get(absolute))
            .ok_or(QpackFault::DynamicIndex)
    }

    /// A copy of a string with its own memory, so that an entry keeps no more memory than it
    /// counts.
    fn own(&mut self, text: Literal<'_>) -> Result<Bytes, QpackFault> {
        self.scratch.clear();
        text.decode_into(&mut self.scratch)?;
        Ok(Bytes::copy_from_slice(&self.scratch))
    }

    fn insert(&mut self, name: Bytes, value: Bytes) -> Result<(), QpackFault> {
        let entry = Entry {
            name,
            value,
            note: (),
        };
        if entry.size() > self.table.capacity() {
            return Err(QpackFault::EntryTooLarge);
        }
        self.make_room(entry.size());
        self.table.push(entry);
        Ok(())
    }

    fn make_room(&mut self, size: u64) {
        while self.table.overfull(size) && self.table.evict().is_some() {}
    }
}
