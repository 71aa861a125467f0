//! The ordered byte stream that carries TLS in one encryption level (RFC 9000, sections 7.5 and 19.6).

use swiftwater_wire::{ErrorCode, frame};

use crate::error::TransportError;
use crate::frame_writer::{Carried, Fate, FrameWriter};
use crate::idle_memory::IdleMemory;
use crate::lazy_box::LazyBox;
use crate::ranges::RangeSet;

/// Bytes that may arrive ahead of the next one expected; RFC 9000, section 7.5 asks for 4096 at
/// least, and a certificate chain with post-quantum signatures needs more.
const MAX_BUFFERED: u64 = 64 * 1024;
/// Gaps that may be open at once, so that one-byte frames can't make every insertion slow.
const MAX_GAPS: usize = 128;

/// Both directions of one encryption level's crypto stream.
#[derive(Debug, Default)]
pub(crate) struct CryptoStream {
    /// Bytes before were sent and acknowledged.
    base: u64,
    /// Bytes before were received and read.
    consumed: u64,
    buffers: LazyBox<Buffers>,
}

/// The bytes that are on their way, in both directions.
#[derive(Debug, Default)]
struct Buffers {
    /// Bytes from `base` on.
    sent: Vec<u8>,
    to_send: RangeSet,
    acked: RangeSet,
    /// Bytes from `consumed` on; holes hold zeros.
    arrived: Vec<u8>,
    have: RangeSet,
}

impl IdleMemory for CryptoStream {
    /// Gives the buffers back if nothing is under way.
    fn release_idle_memory(&mut self) {
        let Self {
            base: _,
            consumed: _,
            buffers,
        } = self;
        let is_busy = |buffers: &Buffers| {
            !(buffers.sent.is_empty() && buffers.arrived.is_empty() && buffers.have.is_empty())
        };
        if !buffers.get().is_some_and(is_busy) {
            buffers.release();
        }
    }
}

impl CryptoStream {
    /// Where the session appends what it has to send; follow with `queue_written`.
    pub(crate) fn outgoing(&mut self) -> &mut Vec<u8> {
        &mut self.buffers.need().sent
    }

    /// Queues everything appended after the first `before` bytes.
    pub(crate) fn queue_written(&mut self, before: usize) {
        let fresh = self.base + before as u64..self.written();
        self.buffers.need().to_send.insert(fresh);
    }

    /// Bytes written so far.
    fn written(&self) -> u64 {
        let sent = self.buffers.get().map_or(0, |buffers| buffers.sent.len());
        self.base + sent as u64
    }

    /// Queues everything again.
    pub(crate) fn send_all_again(&mut self) {
        let all = self.base..self.written();
        let buffers = self.buffers.need();
        buffers.acked.clear();
        buffers.to_send.insert(all);
    }

    pub(crate) fn has_pending(&self) -> bool {
        (self.buffers.get()).is_some_and(|buffers| !buffers.to_send.is_empty())
    }

    /// Writes what waits and fits.
    pub(crate) fn fill(&mut self, writer: &mut FrameWriter<'_, '_>) {
        let Some(buffers) = self.buffers.get_mut() else {
            return;
        };
        while let Some(first) = buffers.to_send.first() {
            let room = writer.remaining();
            let want = first.end - first.start;
            let overhead = frame::crypto_header_size(first.start, want as usize);
            let len = want.min(room.saturating_sub(overhead) as u64);
            if len == 0 {
                return;
            }
            let Some(range) = buffers.to_send.take_first(len) else {
                return;
            };
            let from = (range.start - self.base) as usize;
            let data = &buffers.sent[from..from + len as usize];
            let out = writer.raw();
            frame::write_crypto_header(out, range.start, data.len());
            out.bytes(data);
            writer.wrote(
                Carried::Crypto {
                    offset: range.start,
                    len: len as u32,
                },
                true,
            );
        }
    }

    pub(crate) fn on_frame_fate(&mut self, offset: u64, len: u32, fate: Fate) {
        let range = offset..offset + u64::from(len);
        if range.start < self.base || range.end > self.written() {
            // A copy of what arrived, or bytes of an encryption level whose keys were discarded meanwhile.
            return;
        }
        let buffers = self.buffers.need();
        match fate {
            Fate::Acked => {
                buffers.acked.insert(range.clone());
                buffers.to_send.remove(range);
                self.discard_delivered();
            }
            Fate::Lost | Fate::Probed => {
                for gap in buffers.acked.gaps_in(range) {
                    buffers.to_send.insert(gap);
                }
            }
        }
    }

    /// Gives the memory back once the peer has everything.
    fn discard_delivered(&mut self) {
        let written = self.written();
        let buffers = self.buffers.need();
        if buffers.acked.first() == Some(self.base..written) {
            self.base = written;
            buffers.sent = Vec::new();
            buffers.to_send = RangeSet::new();
            buffers.acked = RangeSet::new();
        }
    }

    /// Takes received bytes; false if all of them were read before.
    pub(crate) fn receive(&mut self, offset: u64, data: &[u8]) -> Result<bool, TransportError> {
        let end = offset + data.len() as u64;
        if end <= self.consumed {
            return Ok(data.is_empty());
        }
        if end - self.consumed > MAX_BUFFERED {
            return Err(TransportError::new(
                ErrorCode::CRYPTO_BUFFER_EXCEEDED,
                "more handshake data than can be buffered",
            ));
        }
        let skip = self.consumed.saturating_sub(offset);
        let (offset, data) = (offset + skip, &data[skip as usize..]);
        let at = (offset - self.consumed) as usize;
        let Buffers { arrived, have, .. } = self.buffers.need();
        if arrived.len() < at + data.len() {
            arrived.resize(at + data.len(), 0);
        }
        arrived[at..at + data.len()].copy_from_slice(data);
        have.insert(offset..end);
        if have.len() > MAX_GAPS {
            return Err(TransportError::new(
                ErrorCode::CRYPTO_BUFFER_EXCEEDED,
                "handshake data in too many pieces",
            ));
        }
        Ok(true)
    }

    /// Bytes that can be consumed in order.
    pub(crate) fn readable(&self) -> &[u8] {
        let Some(buffers) = self.buffers.get() else {
            return &[];
        };
        let end = buffers
            .have
            .first()
            .filter(|first| first.start <= self.consumed)
            .map_or(self.consumed, |first| first.end);
        &buffers.arrived[..(end - self.consumed) as usize]
    }

    /// Drops the first `len` readable bytes.
    pub(crate) fn consume(&mut self, len: usize) {
        let Buffers { arrived, have, .. } = self.buffers.need();
        arrived.drain(..len);
        if arrived.is_empty() {
            *arrived = Vec::new();
        }
        self.consumed += len as u64;
        have.remove(0..self.consumed);
    }
}
