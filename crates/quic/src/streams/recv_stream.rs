//! The receiving half of a stream (RFC 9000, section 3.2).

use swiftwater_wire::{ErrorCode, VarInt};

use super::assembler::{Assembler, SpareRings};
use super::receive_window::{LimitStep, ReceiveWindow, WindowClock};
use crate::error::TransportError;
use crate::idle_memory::IdleMemory;

/// What the connection must account for after a frame or a call.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct ReceiptOutcome {
    /// Bytes discarded unread; they count as consumed for the connection's window.
    pub(super) discarded: u64,
    /// True if a read would bring something that it could not before.
    pub(super) readable: bool,
    /// True if this half is over.
    pub(super) done: bool,
}

/// A reset by the peer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct PeerReset {
    /// The application's code.
    pub(super) code: u64,
    /// Final size, bytes.
    pub(super) final_size: u64,
    /// Bytes that come all the same; 0 after a `RESET_STREAM`.
    pub(super) reliable_size: u64,
    /// It came in a `RESET_STREAM_AT`.
    pub(super) partial: bool,
}

/// The receiving half. It exists until the reader has seen the end (data, reset) or, after
/// [`RecvHalf::stop`], until the final size is known.
#[derive(Debug)]
pub(super) struct RecvHalf {
    assembler: Assembler,
    window: ReceiveWindow,
    /// Where the bytes received so far end; charged to the connection's window.
    highest: u64,
    final_size: Option<u64>,
    /// The peer's reset with the smallest reliable size, until the reader has seen it.
    reset: Option<PeerReset>,
    /// The application reads no more.
    stopped: bool,
    /// The last read found nothing: an event is due when there is something.
    pub(super) awaits_event: bool,
}

impl RecvHalf {
    pub(super) fn new(window: ReceiveWindow) -> Self {
        Self {
            assembler: Assembler::default(),
            window,
            highest: 0,
            final_size: None,
            reset: None,
            stopped: false,
            awaits_event: true,
        }
    }

    /// Bytes allocated for data.
    pub(super) fn capacity(&self) -> u64 {
        self.assembler.capacity() as u64
    }

    /// True if a read would not be blocked.
    pub(super) fn is_readable(&self) -> bool {
        !self.stopped
            && (self.reset_code().is_some() || self.assembler.readable() > 0 || self.is_at_end())
    }

    /// True once [`RecvHalf::stop`] was called.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// True if the peer reset the stream.
    pub(super) fn is_reset(&self) -> bool {
        self.reset.is_some()
    }

    /// The peer's code, if it reset the stream and all that comes in spite of that was read.
    pub(super) fn reset_code(&self) -> Option<u64> {
        let read = self.assembler.offset();
        let due = self.reset.filter(|reset| reset.reliable_size <= read)?;
        Some(due.code)
    }

    /// True if everything up to the final size was read.
    pub(super) fn is_at_end(&self) -> bool {
        self.final_size == Some(self.assembler.offset())
    }

    /// True if the stream ends, by no reset, `n` bytes behind what was read.
    pub(super) fn ends_after(&self, n: usize) -> bool {
        self.reset.is_none() && self.final_size == Some(self.assembler.offset() + n as u64)
    }

    /// Checks a STREAM or `RESET_STREAM` frame that ends at `end`, which is the final size if
    /// `last`, without changing anything; returns by how much the highest offset would grow.
    pub(super) fn check(&self, end: u64, last: bool) -> Result<u64, TransportError> {
        if end > VarInt::MAX.get() {
            return Err(TransportError::new(
                ErrorCode::FRAME_ENCODING_ERROR,
                "stream offset beyond 2^62",
            ));
        }
        let wrong_end = match self.final_size {
            Some(size) => end > size || (last && end != size),
            None => last && end < self.highest,
        };
        if wrong_end {
            return Err(TransportError::new(
                ErrorCode::FINAL_SIZE_ERROR,
                "data beyond the final size, or a final size that changes",
            ));
        }
        if end > self.window.limit() {
            return Err(TransportError::new(
                ErrorCode::FLOW_CONTROL_ERROR,
                "more data than the stream's limit",
            ));
        }
        Ok(end.saturating_sub(self.highest))
    }

    /// Checks the code of a reset. RFC 9000 lets it change, with `RESET_STREAM_AT` it must not
    /// (draft-ietf-quic-reliable-stream-reset-09, section 5.2).
    pub(super) fn check_code(&self, new: &PeerReset) -> Result<(), TransportError> {
        match self.reset {
            Some(old) if old.code != new.code && (old.partial || new.partial) => Err(
                TransportError::new(ErrorCode::STREAM_STATE_ERROR, "the code of a reset changed"),
            ),
            _ => Ok(()),
        }
    }

    /// Takes in the data of a frame that passed [`RecvHalf::check`].
    #[inline]
    pub(super) fn on_data(
        &mut self,
        offset: u64,
        data: &[u8],
        fin: bool,
    ) -> Result<ReceiptOutcome, TransportError> {
        let end = offset + data.len() as u64;
        self.highest = self.highest.max(end);
        if fin {
            self.final_size = Some(end);
        }
        if self.stopped {
            // The stop discarded what had come before.
            return Ok(ReceiptOutcome {
                discarded: self.discard(),
                readable: false,
                done: self.final_size.is_some(),
            });
        }
        // What a reset gave up was discarded, and credited, with the reset.
        let wanted = self.reset.map_or(u64::MAX, |reset| reset.reliable_size);
        let wanted = usize::try_from(wanted.saturating_sub(offset)).unwrap_or(usize::MAX);
        let data = &data[..data.len().min(wanted)];
        let limit = self.window.limit();
        self.assembler.insert(offset, data, limit).map_err(|_| {
            TransportError::new(ErrorCode::INTERNAL_ERROR, "stream data in too many pieces")
        })?;
        Ok(ReceiptOutcome {
            readable: self.is_readable(),
            ..ReceiptOutcome::default()
        })
    }

    /// Takes in a reset whose final size passed [`RecvHalf::check`].
    pub(super) fn on_reset(&mut self, new: PeerReset) -> ReceiptOutcome {
        if let Some(reset) = &mut self.reset {
            reset.partial |= new.partial;
            // A larger reliable size is an older one that was overtaken.
            reset.reliable_size = reset.reliable_size.min(new.reliable_size);
            return ReceiptOutcome {
                discarded: self.discard_unreliable(),
                readable: self.is_readable(),
                done: false,
            };
        }
        let complete = self.final_size.is_some() && self.is_whole();
        self.highest = self.highest.max(new.final_size);
        self.final_size = Some(new.final_size);
        if self.stopped {
            let discarded = self.discard();
            return ReceiptOutcome {
                discarded,
                readable: false,
                done: true,
            };
        }
        if complete {
            // "Data Recvd": the reader gets all of it, and the reset is ignored.
            return ReceiptOutcome::default();
        }
        self.reset = Some(new);
        ReceiptOutcome {
            discarded: self.discard_unreliable(),
            readable: self.is_readable(),
            done: false,
        }
    }

    /// The application reads no more. `done` if the final size is known; otherwise later frames are
    /// still counted.
    pub(super) fn stop(&mut self) -> ReceiptOutcome {
        self.stopped = true;
        let discarded = self.discard();
        ReceiptOutcome {
            discarded,
            readable: false,
            done: self.final_size.is_some(),
        }
    }

    /// True if `STOP_SENDING` is of use: the peer may still be sending.
    pub(super) fn is_expecting_data(&self) -> bool {
        match self.reset {
            Some(reset) => self.arrived() < reset.reliable_size,
            None => !(self.final_size.is_some() && self.is_whole()),
        }
    }

    /// True if bytes are missing before others that arrived, or before a known final size.
    pub(super) fn has_gap(&self) -> bool {
        !self.is_whole()
    }

    /// Where the bytes received so far end.
    pub(super) fn highest(&self) -> u64 {
        self.highest
    }

    /// The next contiguous bytes.
    pub(super) fn peek(&self) -> &[u8] {
        self.assembler.peek()
    }

    /// The reader took `n` of the bytes of [`RecvHalf::peek`]; returns how many it really was.
    pub(super) fn consume(&mut self, n: u64) -> u64 {
        let n = n.min(self.assembler.readable());
        self.assembler.consume(n);
        self.window.consume(n);
        n
    }

    /// Copies what is readable to `buf` and consumes it.
    pub(super) fn read(&mut self, buf: &mut [u8]) -> usize {
        let n = self.assembler.read(buf);
        self.window.consume(n as u64);
        n
    }

    /// Gives memory back that what is buffered doesn't need.
    pub(super) fn trim(&mut self) {
        self.assembler.trim();
    }

    /// Uses one of `spares` for data, if it has no ring.
    pub(super) fn borrow(&mut self, spares: &mut SpareRings) {
        self.assembler.borrow(spares, self.window.limit());
    }

    /// Gives memory away in which no data are left.
    pub(super) fn give_back(&mut self, spares: &mut SpareRings) {
        self.assembler.give_back(spares);
    }

    /// The limit to advertise now, if one is due: never once the final size is known.
    pub(super) fn raise_limit(&mut self, step: LimitStep, clock: WindowClock) -> Option<u64> {
        if self.stopped || self.final_size.is_some() {
            return None;
        }
        self.window.raise(step, clock)
    }

    /// True if a larger limit than the first was advertised.
    pub(super) fn has_raised_limit(&self) -> bool {
        self.window.is_raised()
    }

    /// True if everything up to the final size, or to the highest byte, was received.
    fn is_whole(&self) -> bool {
        self.arrived() == self.highest
    }

    /// Where the bytes that arrived without a gap end.
    fn arrived(&self) -> u64 {
        self.assembler.offset() + self.assembler.readable()
    }

    /// Drops what a reset gave up; returns the bytes received or announced that won't be read and
    /// that were not returned before.
    fn discard_unreliable(&mut self) -> u64 {
        let read = self.assembler.offset();
        let reliable_size = self.reset.map_or(0, |reset| reset.reliable_size);
        let wanted = reliable_size.saturating_sub(read);
        self.assembler.truncate(read + wanted);
        let unread = self.highest - self.window.consumed();
        let discarded = unread.saturating_sub(wanted);
        self.window.consume(discarded);
        discarded
    }

    /// Drops what is buffered; returns the bytes received or announced that won't be read.
    fn discard(&mut self) -> u64 {
        self.assembler.release();
        let unread = self.highest - self.window.consumed();
        self.window.consume(unread);
        unread
    }
}

impl IdleMemory for RecvHalf {
    fn release_idle_memory(&mut self) {
        let Self {
            assembler,
            window: _,
            highest: _,
            final_size: _,
            reset: _,
            stopped: _,
            awaits_event: _,
        } = self;
        assembler.release_idle_memory();
    }
}
