//! What the peer's encoder has to hear (RFC 9204, section 2.2.2): acknowledgements and cancellations as they
//! come, insertions in one increment each time that somebody asks.

use bytes::Bytes;

use crate::qpack::error::QpackError;
use crate::qpack::instruction::DecoderInstruction;

/// Bytes of instructions that wait at most. With 2 to 9 bytes each, only a peer that gives the decoder
/// stream no credit for thousands of requests gets here.
const MAX_WAITING: usize = 64 << 10;

#[derive(Debug, Default)]
pub(super) struct Feedback {
    waiting: Vec<u8>,
    /// Insertions that the peer knows of, or will once it has read what waits: the Known Received Count.
    known: u64,
}

impl Feedback {
    /// Fails once too much waits.
    pub(super) const fn check(&self) -> Result<(), QpackError> {
        if self.waiting.len() > MAX_WAITING {
            Err(QpackError::ExcessiveLoad)
        } else {
            Ok(())
        }
    }

    /// Adds an instruction; not beyond the limit, where the next check fails anyway.
    pub(super) fn push(&mut self, instruction: DecoderInstruction) {
        if self.waiting.len() <= MAX_WAITING {
            instruction.write(&mut self.waiting);
        }
    }

    /// Acknowledges a section and with it all insertions that it required.
    pub(super) fn acknowledge(&mut self, stream: u64, required: u64) {
        self.push(DecoderInstruction::Acknowledge(stream));
        self.known = self.known.max(required);
    }

    /// All that waits, and what the acknowledgements left unsaid of the `inserted` insertions.
    pub(super) fn poll(&mut self, inserted: u64) -> Option<Bytes> {
        if inserted > self.known {
            self.push(DecoderInstruction::Increment(inserted - self.known));
            self.known = inserted;
        }
        if self.waiting.is_empty() {
            return None;
        }
        Some(std::mem::take(&mut self.waiting).into())
    }
}
