//! The sending half of a stream (RFC 9000, section 3.1).

use std::ops::Range;

use super::chunk_pool::ChunkPool;
use super::expiry::Expiry;
use super::range_hints::RangeHintMap;
use super::send_buffer::SendBuffer;
use super::stream_reset::ResetValues;
use crate::error::WriteError;
use crate::idle_memory::IdleMemory;
use crate::lazy_box::LazyBox;

/// Where the sending half is. "Ready", "Send", "Data Sent" and "Data Recvd" follow from the buffer;
/// a half that is "Data Recvd" or "Reset Recvd" exists no more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum SendState {
    Sending,
    /// Reset, but for the first bytes.
    ResetAt {
        /// The application's error code.
        code: u64,
        /// `RESET_STREAM_AT` is on its way.
        told: bool,
        /// The peer has the latest one.
        acked: bool,
    },
    /// Reset by this end, and `RESET_STREAM` is on its way.
    Reset,
    /// The peer asked this end to stop with this code, and `RESET_STREAM` is on its way.
    Stopped(u64),
}

/// The sending half.
#[derive(Debug)]
pub(super) struct SendHalf {
    pub(super) buffer: SendBuffer,
    state: SendState,
    /// The peer's limit (`MAX_STREAM_DATA`).
    limit: u64,
    /// The limit of the last `STREAM_DATA_BLOCKED`.
    reported_blocked_at: Option<u64>,
    /// A write fell short: an event is due when there is room.
    pub(super) awaits_event: bool,
    /// When the data expires; listed in `ConnectionSend::expiries` too.
    pub(super) expiry: Option<Expiry>,
    /// Listed among the writers that wait for room in the connection's send window.
    pub(super) is_listed: bool,
    /// Hints of the application about ranges that were not delivered.
    pub(super) range_hints: LazyBox<RangeHintMap>,
}

impl SendHalf {
    pub(super) fn new(limit: u64) -> Self {
        Self {
            buffer: SendBuffer::new(),
            state: SendState::Sending,
            limit,
            reported_blocked_at: None,
            awaits_event: false,
            expiry: None,
            is_listed: false,
            range_hints: LazyBox::default(),
        }
    }

    /// A copy of `range`, with the FIN if `fin`, was acknowledged.
    pub(super) fn on_acked(&mut self, range: Range<u64>, fin: bool, pool: &mut ChunkPool) {
        self.buffer.on_acked(range, fin, pool);
        if let Some(hints) = self.range_hints.get_mut() {
            hints.discard_before(self.buffer.delivered());
        }
    }

    /// Bytes that flow control lets the application write.
    pub(super) fn credit(&self) -> u64 {
        self.limit.saturating_sub(self.buffer.end())
    }

    /// Unsent bytes that the peer's limit permits; all of them, unless the limit was discarded.
    pub(super) fn sendable(&self) -> u64 {
        self.buffer
            .unsent()
            .min(self.limit.saturating_sub(self.buffer.sent()))
    }

    /// The peer's limit is unknown again.
    pub(super) fn discard_limit(&mut self) {
        self.limit = 0;
        self.reported_blocked_at = None;
    }

    /// Raises the peer's limit; false if it is no more than before.
    pub(super) fn raise_limit(&mut self, limit: u64) -> bool {
        let raised = limit > self.limit;
        self.limit = self.limit.max(limit);
        raised
    }

    /// The limit to send in `STREAM_DATA_BLOCKED`, if the writer waits for more than the limit, all
    /// that it permits was sent, and that was not reported before.
    pub(super) fn blocked_at(&mut self) -> Option<u64> {
        let is_news = self.reported_blocked_at != Some(self.limit);
        (is_news && self.is_flow_limited()).then(|| *self.reported_blocked_at.insert(self.limit))
    }

    /// True if the writer waits for more than the peer's limit, and all that it permits was sent.
    pub(super) fn is_flow_limited(&self) -> bool {
        self.awaits_event && self.state == SendState::Sending && self.buffer.sent() == self.limit
    }

    /// Ok if the application may write.
    pub(super) fn check_writable(&self) -> Result<(), WriteError> {
        match self.state {
            SendState::Sending if !self.buffer.is_finished() => Ok(()),
            SendState::Stopped(code) => Err(WriteError::Stopped(code)),
            SendState::Sending | SendState::ResetAt { .. } | SendState::Reset => {
                Err(WriteError::Closed)
            }
        }
    }

    /// Ok if the application may reset.
    pub(super) fn check_resettable(&self) -> Result<(), WriteError> {
        match self.state {
            SendState::Sending | SendState::ResetAt { .. } => Ok(()),
            SendState::Stopped(code) => Err(WriteError::Stopped(code)),
            SendState::Reset => Err(WriteError::Closed),
        }
    }

    /// The code of the peer's `STOP_SENDING`.
    pub(super) fn stopped_code(&self) -> Option<u64> {
        match self.state {
            SendState::Stopped(code) => Some(code),
            SendState::Sending | SendState::ResetAt { .. } | SendState::Reset => None,
        }
    }

    /// True once `RESET_STREAM` is on its way; frames in flight matter no more.
    pub(super) fn is_reset(&self) -> bool {
        matches!(self.state, SendState::Reset | SendState::Stopped(_))
    }

    /// True while none of the data was abandoned.
    pub(super) fn is_whole(&self) -> bool {
        self.state == SendState::Sending
    }

    /// The code of a reset but for the first bytes; it can't change any more
    /// (draft-ietf-quic-reliable-stream-reset-09, section 5.2).
    pub(super) fn reset_at_code(&self) -> Option<u64> {
        match self.state {
            SendState::ResetAt { code, .. } => Some(code),
            _ => None,
        }
    }

    /// Abandons all but the first `reliable` bytes, or less of them than before. `RESET_STREAM_AT` is
    /// due, see [`SendHalf::take_reset_at`].
    pub(super) fn set_reset_at(&mut self, code: u64, reliable: u64, pool: &mut ChunkPool) {
        self.buffer.keep_only(reliable, pool);
        self.state = SendState::ResetAt {
            code: self.reset_at_code().unwrap_or(code),
            told: false,
            acked: false,
        };
        self.awaits_event = false;
    }

    /// The `RESET_STREAM_AT` to send now: once all that must arrive was
    /// sent, so that the final size keeps to the credit that the connection has.
    pub(super) fn take_reset_at(&mut self) -> Option<ResetValues> {
        let unsent = self.buffer.unsent();
        let SendState::ResetAt { code, told, .. } = &mut self.state else {
            return None;
        };
        if unsent > 0 || std::mem::replace(told, true) {
            return None;
        }
        Some(ResetValues {
            code: *code,
            final_size: self.buffer.end(),
            reliable_size: self.buffer.kept(),
        })
    }

    /// True if the data end with a `RESET_STREAM_AT`.
    pub(super) fn is_reset_at(&self) -> bool {
        matches!(self.state, SendState::ResetAt { .. })
    }

    /// The peer has the latest `RESET_STREAM_AT`.
    pub(super) fn on_reset_at_acked(&mut self) {
        if let SendState::ResetAt { acked, .. } = &mut self.state {
            *acked = true;
        }
    }

    /// `RESET_STREAM` is being sent, because of `STOP_SENDING` if `stopped` has its code.
    pub(super) fn set_reset(&mut self, stopped: Option<u64>) {
        self.state = stopped.map_or(SendState::Reset, SendState::Stopped);
        self.awaits_event = false;
    }

    /// True if everything that must arrive was acknowledged, FIN or reset included.
    pub(super) fn is_complete(&self) -> bool {
        match self.state {
            SendState::Sending => self.buffer.is_complete(),
            SendState::ResetAt { acked, .. } => acked && self.buffer.is_delivered(),
            SendState::Reset | SendState::Stopped(_) => false,
        }
    }
}

impl IdleMemory for SendHalf {
    fn release_idle_memory(&mut self) {
        let Self {
            buffer,
            state: _,
            limit: _,
            reported_blocked_at: _,
            awaits_event: _,
            expiry: _,
            is_listed: _,
            range_hints,
        } = self;
        buffer.release_idle_memory();
        if range_hints.get().is_some_and(RangeHintMap::is_empty) {
            range_hints.release();
        }
    }
}
