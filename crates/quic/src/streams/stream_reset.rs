//! Resets of sending streams: `RESET_STREAM` (RFC 9000, section 3.1) and
//! `RESET_STREAM_AT`, which still delivers the first bytes (draft-ietf-quic-reliable-stream-reset-09).

use swiftwater_units::StreamId;
use swiftwater_wire::VarInt;

use super::send_stream::SendHalf;
use super::{StreamNotice, Streams};
use crate::control::{ControlKey, ControlValue};
use crate::error::WriteError;
use crate::observe::ResetCause;

/// The values of a `RESET_STREAM` or `RESET_STREAM_AT` frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct ResetValues {
    /// The application's error code.
    pub(super) code: u64,
    /// Final size, bytes.
    pub(super) final_size: u64,
    /// Bytes from the start that are delivered all the same; 0 with `RESET_STREAM`.
    pub(super) reliable_size: u64,
}

impl Streams {
    /// Resets the stream: what isn't acknowledged is dropped. The reset carries `code` (cut to 2^62 - 1),
    /// or that of an earlier [`Streams::reset_at`].
    pub(crate) fn reset(&mut self, id: StreamId, code: u64) -> Result<(), WriteError> {
        let (key, send) = self.sending(id)?;
        send.check_resettable()?;
        let code = VarInt::saturating(code).get();
        self.reset_sending(key, id, code, ResetCause::Application);
        Ok(())
    }

    /// Resets the stream except for its first `reliable_size` bytes, which are still delivered. Later
    /// calls can only lower that number.
    pub(crate) fn reset_at(
        &mut self,
        id: StreamId,
        code: u64,
        reliable_size: u64,
    ) -> Result<(), WriteError> {
        let (key, send) = self.sending(id)?;
        send.check_resettable()?;
        if reliable_size == 0 {
            return self.reset(id, code);
        }
        if !self.peer_resets_at {
            return Err(WriteError::ResetAtUnsupported);
        }
        let code = VarInt::saturating(code).get();
        self.reset_but(key, id, code, reliable_size, ResetCause::Application);
        Ok(())
    }

    /// Drops what the stream of `key` has to send and resets it with `code`, or with the code of an
    /// earlier partial reset.
    pub(super) fn reset_sending(&mut self, key: u32, id: StreamId, code: u64, cause: ResetCause) {
        let reset = self.with_send(key, |send, pool| {
            let earlier = send.reset_at_code();
            send.buffer.discard(pool);
            let stopped = (cause == ResetCause::StopSending && earlier.is_none()).then_some(code);
            send.set_reset(stopped);
            (
                earlier.unwrap_or(code),
                send.buffer.sent(),
                send.expiry.take(),
            )
        });
        let Some((code, final_size, expiry)) = reset else {
            return;
        };
        self.outgoing.expiries.replace(key, expiry, None);
        let value = ControlValue::Reset {
            error: code,
            final_size,
        };
        if let Some(history) = self.history.get_mut() {
            history.on_reset(id);
        }
        self.cancel(ControlKey::StreamDataBlocked(id));
        self.discard_unlimited(key);
        self.set_control(ControlKey::ResetStream(id), value);
        let reset = ResetValues {
            code,
            final_size,
            reliable_size: 0,
        };
        self.note_reset(id, cause, reset);
        self.wake_writers();
    }

    /// Drops what the stream of `key` has to send beyond its first `reliable_size` bytes, not zero; the
    /// `RESET_STREAM_AT` follows as soon as these were sent. Where nothing was written there is nothing to
    /// keep.
    pub(super) fn reset_but(
        &mut self,
        key: u32,
        id: StreamId,
        code: u64,
        reliable_size: u64,
        cause: ResetCause,
    ) {
        let written = self.with_send(key, |send, _| send.buffer.end());
        if written == Some(0) {
            return self.reset_sending(key, id, code, cause);
        }
        let reset = self.with_send(key, |send, pool| {
            if send.reset_at_code().is_some() && send.buffer.kept() <= reliable_size {
                return None;
            }
            send.set_reset_at(code, reliable_size, pool);
            let reset = ResetValues {
                code: send.reset_at_code().unwrap_or(code),
                final_size: send.buffer.end(),
                reliable_size: send.buffer.kept(),
            };
            Some((reset, send.expiry.take()))
        });
        let Some((reset, expiry)) = reset.flatten() else {
            return;
        };
        self.outgoing.expiries.replace(key, expiry, None);
        if let Some(history) = self.history.get_mut() {
            history.on_truncated(id, reset.reliable_size);
        }
        self.cancel(ControlKey::StreamDataBlocked(id));
        self.discard_unlimited(key);
        self.announce_reset_at(key);
        self.note_reset(id, cause, reset);
        self.wake_writers();
    }

    /// Queues the `RESET_STREAM_AT` of `key`, if it can be sent now.
    pub(super) fn announce_reset_at(&mut self, key: u32) {
        let Some(stream) = self.slab.get_mut(key) else {
            return;
        };
        let id = stream.id;
        let due = stream.send.as_mut().and_then(SendHalf::take_reset_at);
        if let Some(reset) = due {
            let value = ControlValue::ResetAt {
                error: reset.code,
                final_size: reset.final_size,
                reliable_size: reset.reliable_size,
            };
            self.set_control(ControlKey::ResetStream(id), value);
        }
    }

    /// Records a reset for observers.
    pub(super) fn note_reset(&mut self, id: StreamId, cause: ResetCause, reset: ResetValues) {
        let ResetValues {
            code,
            final_size,
            reliable_size,
        } = reset;
        match cause {
            ResetCause::Peer => self.stats.resets_received += 1,
            _ => self.stats.resets_sent += 1,
        }
        self.notices.need().push_back(StreamNotice {
            id,
            cause,
            code,
            final_size,
            reliable_size,
        });
    }
}
