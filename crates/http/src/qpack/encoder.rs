//! The encoder: turns fields into sections and encoder instructions, and processes the peer's decoder
//! stream (RFC 9204, section 2.1).
//!
//! Parts: `policy` decides which fields are inserted and which references may block a stream, `entries`
//! is the table with the rules for eviction and references, `unacknowledged` records the references of
//! unacknowledged sections.

mod entries;
mod policy;
mod unacknowledged;

use bytes::Bytes;

use self::entries::{Entries, Hashes};
use self::policy::Policy;
use self::unacknowledged::Unacknowledged;
use super::error::{QpackError, QpackFault};
use super::field::{self, FieldLine};
use super::instruction::{self, DecoderInstruction, NameFor};
use super::line::{self, Reference};
use super::prefix::Prefix;
use super::static_table::{self, Match};

/// Configuration, within what the peer allows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct EncoderConfig {
    /// Largest capacity of the dynamic table, bytes. 0: static table only.
    pub max_table_capacity: u64,
    /// Most streams that may be blocked at the peer. 0: only acknowledged entries are referred to,
    /// at the price of a longer start.
    pub max_blocked_streams: u64,
    /// References to entries that the peer has not yet acknowledged, at most; 8 bytes each. Beyond it,
    /// sections do not use the dynamic table.
    pub max_references: usize,
    /// Whether strings are Huffman-coded when that makes them shorter. Switching it off saves CPU
    /// time at the cost of bytes.
    pub huffman: bool,
}

impl Default for EncoderConfig {
    /// A table of 4 KiB, 16 streams that may be blocked, 8192 references, Huffman coding.
    fn default() -> Self {
        Self {
            max_table_capacity: 4096,
            max_blocked_streams: 16,
            max_references: 8192,
            huffman: true,
        }
    }
}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct EncoderStats {
    /// Sections encoded.
    pub sections: u64,
    /// Of these, those that referred to insertions not known to have arrived.
    pub at_risk: u64,
    /// Fields encoded.
    pub fields: u64,
    /// Of these, those that were one index into the static table.
    pub static_hits: u64,
    /// Of these, those that were one index into the dynamic table.
    pub dynamic_hits: u64,
    /// Entries inserted, duplicates included.
    pub inserted: u64,
    /// Of these, duplicates.
    pub duplicated: u64,
    /// Bytes of names and values.
    pub raw_bytes: u64,
    /// Bytes of sections.
    pub section_bytes: u64,
    /// Bytes of encoder instructions.
    pub instruction_bytes: u64,
}

/// The peer's SETTINGS.
#[derive(Clone, Copy, Debug, Default)]
struct PeerLimits {
    table_capacity: u64,
    blocked_streams: u64,
}

/// Encodes field sections for one peer.
#[derive(Debug)]
pub struct Encoder {
    config: EncoderConfig,
    peer: PeerLimits,
    entries: Entries,
    policy: Policy,
    outstanding: Unacknowledged,
    /// Instructions not yet polled.
    instructions: Vec<u8>,
    /// Bytes of instructions that the encoder stream accepts now.
    credit: u64,
    /// An incomplete decoder instruction.
    partial: Vec<u8>,
    /// Field lines of the current section, and the current instruction.
    lines: Vec<u8>,
    draft: Vec<u8>,
    stats: EncoderStats,
}

/// The section being encoded.
#[derive(Debug)]
struct Work {
    base: u64,
    required: u64,
    references: Vec<u64>,
    /// References that the limit still permits.
    room: usize,
    /// Whether the stream may be blocked, and whether it depends on insertions that may not have
    /// arrived.
    may_risk: bool,
    at_risk: bool,
}

impl Encoder {
    /// An encoder that uses the static table until the peer's settings are known.
    pub fn new(config: EncoderConfig) -> Self {
        Self {
            config,
            peer: PeerLimits::default(),
            entries: Entries::default(),
            policy: Policy::default(),
            outstanding: Unacknowledged::default(),
            instructions: Vec::new(),
            credit: u64::MAX,
            partial: Vec::new(),
            lines: Vec::new(),
            draft: Vec::new(),
            stats: EncoderStats::default(),
        }
    }

    /// Applies `SETTINGS_QPACK_MAX_TABLE_CAPACITY` and `SETTINGS_QPACK_BLOCKED_STREAMS` of the peer: the
    /// remembered ones for early data, then those received on this connection. Fails if a capacity in use
    /// changes (RFC 9204, section 3.2.3).
    pub fn set_peer_limits(
        &mut self,
        max_table_capacity: u64,
        max_blocked_streams: u64,
    ) -> Result<(), QpackError> {
        let before = self.peer.table_capacity;
        if before != 0 && before != max_table_capacity {
            let fault = QpackFault::CapacityChanged(max_table_capacity);
            return Err(QpackError::DecoderStream(fault));
        }
        self.peer = PeerLimits {
            table_capacity: max_table_capacity,
            blocked_streams: max_blocked_streams,
        };
        Ok(())
    }

    /// Bytes that the encoder stream accepts now. The encoder writes no instruction that does not fit
    /// (RFC 9204, section 2.1.3), and subtracts what it writes. Unlimited until this is called.
    pub const fn set_stream_credit(&mut self, bytes: u64) {
        self.credit = bytes.saturating_sub(self.instructions.len() as u64);
    }

    /// Appends the field section of `fields` to `block`, which must be sent on `stream`; sections of one
    /// stream in the order of the calls.
    pub fn encode<'a>(
        &mut self,
        stream: u64,
        fields: impl IntoIterator<Item: Into<FieldLine<'a>>>,
        block: &mut Vec<u8>,
    ) {
        let allowed = self
            .peer
            .blocked_streams
            .min(self.config.max_blocked_streams);
        let mut work = Work {
            base: self.entries.inserted(),
            required: 0,
            references: Vec::new(),
            room: self.outstanding.room(self.config.max_references),
            may_risk: self.outstanding.may_risk(stream, allowed),
            at_risk: self.outstanding.at_risk(stream),
        };
        self.lines.clear();
        for field in fields {
            self.encode_field(&field.into(), &mut work);
        }
        let start = block.len();
        let prefix = Prefix {
            required: work.required,
            base: work.base,
        };
        prefix.write(self.peer.table_capacity, block);
        block.extend_from_slice(&self.lines);
        self.stats.sections += 1;
        self.stats.at_risk += u64::from(work.required > self.entries.known());
        self.stats.section_bytes += (block.len() - start) as u64;
        if work.required > 0 {
            let section = unacknowledged::Section {
                required: work.required,
                references: work.references,
            };
            self.outstanding.add(stream, section, self.entries.known());
        }
    }

    /// All bytes pending for the encoder stream. They must be sent, in order, even if the sections that
    /// need them are not.
    pub fn poll_instructions(&mut self) -> Option<Bytes> {
        if self.instructions.is_empty() {
            return None;
        }
        Some(std::mem::take(&mut self.instructions).into())
    }

    /// Processes bytes of the peer's decoder stream, however fragmented.
    pub fn on_decoder_stream(&mut self, data: &[u8]) -> Result<(), QpackError> {
        let mut partial = std::mem::take(&mut self.partial);
        let result = instruction::read_all(&mut partial, data, |reader| {
            let instruction = DecoderInstruction::read(reader)?;
            self.obey(instruction)?;
            Ok(())
        });
        self.partial = partial;
        result.map_err(QpackError::DecoderStream)
    }

    /// Discards the sections of `stream`, of which no byte was sent and none will be.
    ///
    /// A stream that was reset after its sections were handed over needs no call: the peer may have read
    /// them, so that their references last until its decoder acknowledges or cancels (RFC 9204, sections
    /// 2.2.2.2 and 4.4.2).
    pub fn discard_stream(&mut self, stream: u64) {
        self.release_stream(stream);
    }

    /// Counts since the start.
    pub const fn stats(&self) -> EncoderStats {
        self.stats
    }

    fn obey(&mut self, instruction: DecoderInstruction) -> Result<(), QpackFault> {
        match instruction {
            DecoderInstruction::Acknowledge(stream) => {
                let section = self
                    .outstanding
                    .acknowledge(stream)
                    .ok_or(QpackFault::NothingToAcknowledge(stream))?;
                self.entries.release(&section.references);
                self.raise_known_received(section.required);
            }
            // No error without sections: the decoder may send it without knowing of any.
            DecoderInstruction::Cancel(stream) => self.release_stream(stream),
            DecoderInstruction::Increment(count) => {
                let known = self.entries.known() + count;
                if count == 0 || known > self.entries.inserted() {
                    return Err(QpackFault::Increment(count));
                }
                self.raise_known_received(known);
            }
        }
        Ok(())
    }

    /// The peer has received at least so many insertions.
    fn raise_known_received(&mut self, known: u64) {
        if known > self.entries.known() {
            self.entries.set_known(known);
            self.outstanding.on_known(known);
        }
    }

    fn release_stream(&mut self, stream: u64) {
        for section in self.outstanding.remove(stream) {
            self.entries.release(&section.references);
        }
    }

    /// Capacity set before the first insertion.
    fn capacity(&self) -> u64 {
        self.peer.table_capacity.min(self.config.max_table_capacity)
    }

    fn encode_field(&mut self, field: &FieldLine<'_>, work: &mut Work) {
        self.stats.fields += 1;
        self.stats.raw_bytes += field.size() - field::OVERHEAD;
        let found = static_table::find(field.name, &field.value);
        if let Match::Full(index) = found
            && !field.sensitive
        {
            self.stats.static_hits += 1;
            line::write_indexed(Reference::Static(index), &mut self.lines);
            return;
        }
        let static_name = match found {
            Match::Full(index) | Match::Name(index) => Some(index),
            Match::None => None,
        };
        if self.capacity() < field::OVERHEAD {
            return self.write_literal(field, static_name.map(Reference::Static));
        }
        let hashes = Hashes::of(field.name, &field.value);
        if !field.sensitive
            && let Some(absolute) = self.entry_for(field, hashes, static_name, work)
        {
            self.stats.dynamic_hits += 1;
            let reference = self.refer(absolute, work);
            line::write_indexed(reference, &mut self.lines);
            return;
        }
        let name = match static_name {
            Some(index) => Some(Reference::Static(index)),
            None => self
                .entries
                .find_name(field.name, hashes)
                .filter(|&absolute| self.may_refer(absolute, 0, work))
                .map(|absolute| self.refer(absolute, work)),
        };
        self.write_literal(field, name);
    }

    fn write_literal(&mut self, field: &FieldLine<'_>, name: Option<Reference>) {
        let (lines, huffman) = (&mut self.lines, self.config.huffman);
        match name {
            Some(name) => line::write_named(name, &field.value, field.sensitive, huffman, lines),
            None => {
                line::write_literal(field.name, &field.value, field.sensitive, huffman, lines);
            }
        }
    }

    /// The entry to refer to for a field: found, duplicated or inserted. `None` if it must be a literal.
    fn entry_for(
        &mut self,
        field: &FieldLine<'_>,
        hashes: Hashes,
        static_name: Option<u64>,
        work: &Work,
    ) -> Option<u64> {
        let literal_len = field.value.len() + static_name.map_or(field.name.len(), |_| 0);
        let seen = self.policy.note(hashes.field);
        let Some(found) = self.entries.find(field, hashes) else {
            let unused = self.entries.newest_of_name_unused(field.name, hashes);
            if !policy::worth_inserting(field, self.capacity(), seen, unused) {
                return None;
            }
            let inserted = self.insert(field, hashes, static_name)?;
            return Some(inserted).filter(|&entry| self.may_refer(entry, literal_len, work));
        };
        self.entries.mark_used(found);
        if self.entries.draining(found)
            && let Some(copy) = self.duplicate(found, field, hashes)
            && self.may_refer(copy, literal_len, work)
        {
            return Some(copy);
        }
        Some(found).filter(|&entry| self.may_refer(entry, literal_len, work))
    }

    /// Whether a section may refer to an entry that saves so many bytes.
    fn may_refer(&self, absolute: u64, saved: usize, work: &Work) -> bool {
        let arrived = absolute < self.entries.known();
        work.references.len() < work.room
            && self.entries.contains(absolute)
            && !self.entries.draining(absolute)
            && (arrived || work.at_risk || (work.may_risk && policy::worth_a_risk(saved)))
    }

    fn refer(&mut self, absolute: u64, work: &mut Work) -> Reference {
        self.entries.retain(absolute);
        work.references.push(absolute);
        work.required = work.required.max(absolute + 1);
        work.at_risk |= absolute >= self.entries.known();
        match work.base.checked_sub(absolute + 1) {
            Some(relative) => Reference::Relative(relative),
            None => Reference::PostBase(absolute - work.base),
        }
    }

    fn insert(
        &mut self,
        field: &FieldLine<'_>,
        hashes: Hashes,
        static_name: Option<u64>,
    ) -> Option<u64> {
        let size = field.size();
        let name = match static_name {
            Some(index) => NameFor::Static(index),
            None => match self.entries.find_name(field.name, hashes) {
                Some(absolute) => NameFor::Relative(self.entries.inserted() - absolute - 1),
                None => NameFor::Literal(field.name),
            },
        };
        self.draft.clear();
        if self.entries.capacity() == 0 {
            instruction::write_capacity(self.capacity(), &mut self.draft);
        }
        instruction::write_insert(name, &field.value, self.config.huffman, &mut self.draft);
        if !self.affordable() || !self.entries.make_room(size, self.capacity()) {
            return None;
        }
        self.send_draft();
        Some(self.entries.push(field, hashes))
    }

    fn duplicate(&mut self, absolute: u64, field: &FieldLine<'_>, hashes: Hashes) -> Option<u64> {
        self.draft.clear();
        let relative = self.entries.inserted() - absolute - 1;
        instruction::write_duplicate(relative, &mut self.draft);
        if !self.affordable() || !self.entries.make_room(field.size(), self.capacity()) {
            return None;
        }
        self.send_draft();
        self.stats.duplicated += 1;
        let copy = self.entries.push(field, hashes);
        self.entries.mark_used(copy);
        Some(copy)
    }

    fn affordable(&self) -> bool {
        self.draft.len() as u64 <= self.credit
    }

    fn send_draft(&mut self) {
        self.credit -= self.draft.len() as u64;
        self.instructions.extend_from_slice(&self.draft);
        self.stats.instruction_bytes += self.draft.len() as u64;
        self.stats.inserted += 1;
    }
}
