//! The ordered byte stream that carries TLS in one epoch (RFC 9000, sections 7.5 and 19.6).

use swiftwater_wire::{ErrorCode, frame};

use crate::error::TransportError;
use crate::frame_writer::{Carried, Fate, FrameWriter};
use crate::ranges::RangeSet;

/// Bytes that may arrive ahead of the next one expected; RFC 9000, section 7.5 asks for 4096 at
/// least, and a certificate chain with post-quantum signatures needs more.
const MAX_BUFFERED: u64 = 64 * 1024;
/// Gaps that may be open at once, so that one-byte frames can't make every insertion slow.
const MAX_GAPS: usize = 128;

/// Both directions of one epoch's crypto stream.
#[derive(Debug, Default)]
pub(crate) struct CryptoStream {
    /// Bytes from `base` on; all before them were acknowledged.
    sent: Vec<u8>,
    base: u64,
    to_send: RangeSet,
    acked: RangeSet,
    /// Bytes from `consumed` on; holes hold zeros.
    arrived: Vec<u8>,
    have: RangeSet,
    consumed: u64,
}

impl CryptoStream {
    /// Where the session appends what it wants to send; follow with `queue_written`.
    pub(crate) fn outgoing(&mut self) -> &mut Vec<u8> {
        &mut self.sent
    }

    /// Queues everything appended after the first `before` bytes.
    pub(crate) fn queue_written(&mut self, before: usize) {
        self.to_send
            .insert(self.base + before as u64..self.written());
    }

    /// Bytes written so far.
    fn written(&self) -> u64 {
        self.base + self.sent.len() as u64
    }

    /// Queues everything again.
    pub(crate) fn send_all_again(&mut self) {
        self.acked.clear();
        self.to_send.insert(self.base..self.written());
    }

    pub(crate) fn has_pending(&self) -> bool {
        !self.to_send.is_empty()
    }

    /// Writes what waits and fits.
    pub(crate) fn fill(&mut self, writer: &mut FrameWriter<'_, '_>) {
        while let Some(first) = self.to_send.first() {
            let room = writer.remaining();
            let want = first.end - first.start;
            let overhead = frame::crypto_header_size(first.start, want as usize);
            let len = want.min(room.saturating_sub(overhead) as u64);
            if len == 0 {
                return;
            }
            let Some(range) = self.to_send.take_first(len) else {
                return;
            };
            let from = (range.start - self.base) as usize;
            let data = &self.sent[from..from + len as usize];
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
            // A copy of what arrived, or bytes of an epoch whose keys were discarded meanwhile.
            return;
        }
        match fate {
            Fate::Acked => {
                self.acked.insert(range.clone());
                self.to_send.remove(range);
                self.forget_delivered();
            }
            Fate::Lost | Fate::Probed => {
                for gap in self.acked.gaps_in(range) {
                    self.to_send.insert(gap);
                }
            }
        }
    }

    /// Gives the memory back once the peer has everything.
    fn forget_delivered(&mut self) {
        let written = self.written();
        if self.acked.first() == Some(self.base..written) {
            *self = Self {
                base: written,
                arrived: std::mem::take(&mut self.arrived),
                have: std::mem::take(&mut self.have),
                consumed: self.consumed,
                ..Self::default()
            };
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
        if self.arrived.len() < at + data.len() {
            self.arrived.resize(at + data.len(), 0);
        }
        self.arrived[at..at + data.len()].copy_from_slice(data);
        self.have.insert(offset..end);
        if self.have.len() > MAX_GAPS {
            return Err(TransportError::new(
                ErrorCode::CRYPTO_BUFFER_EXCEEDED,
                "handshake data in too many pieces",
            ));
        }
        Ok(true)
    }

    /// Bytes that can be consumed in order.
    pub(crate) fn readable(&self) -> &[u8] {
        let end = self
            .have
            .first()
            .filter(|first| first.start <= self.consumed)
            .map_or(self.consumed, |first| first.end);
        &self.arrived[..(end - self.consumed) as usize]
    }

    /// Drops the first `len` readable bytes.
    pub(crate) fn consume(&mut self, len: usize) {
        self.arrived.drain(..len);
        if self.arrived.is_empty() {
            self.arrived = Vec::new();
        }
        self.consumed += len as u64;
        self.have.remove(0..self.consumed);
    }
}
