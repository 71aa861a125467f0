//! Decoder instructions for the peer's encoder (RFC 9204, section 2.2.2): acknowledgements and cancellations
//! as they occur, insertions in one increment per poll.

use bytes::Bytes;

use crate::qpack::error::QpackError;
use crate::qpack::instruction::DecoderInstruction;

/// Most bytes of pending instructions. With 2 to 9 bytes each, only a peer that gives the decoder
/// stream no credit for thousands of requests reaches it.
const MAX_WAITING: usize = 64 << 10;

#[derive(Debug, Default)]
pub(super) struct DecoderInstructions {
    waiting: Vec<u8>,
    /// The Known Received Count: insertions that the pending and sent instructions acknowledge.
    known: u64,
}

impl DecoderInstructions {
    /// Fails if too many bytes are pending.
    pub(super) const fn check(&self) -> Result<(), QpackError> {
        if self.waiting.len() > MAX_WAITING {
            Err(QpackError::ExcessiveLoad)
        } else {
            Ok(())
        }
    }

    /// Adds an instruction, except beyond the limit, where the next check fails.
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

    /// All pending instructions, and an increment for those of the `inserted` insertions not
    /// acknowledged otherwise.
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
