//! The peer's flow control limits on what is sent: higher ones, and reports that they block
//! (RFC 9000, sections 4.1, 19.12 and 19.13).

use super::send_stream::SendHalf;
use super::{Stream, Streams, WRITABLE};
use crate::control::{ControlKey, ControlValue};

impl Streams {
    /// Raises the peer's limit on a stream.
    pub(super) fn raise_stream_limit(&mut self, key: u32, limit: u64) {
        let Some(id) = self.slab.get(key).map(|stream| stream.id) else {
            return;
        };
        if self.with_send(key, |send, _| send.raise_limit(limit)) == Some(true) {
            self.cancel(ControlKey::StreamDataBlocked(id));
            self.announce_writable(key);
            self.discard_unlimited(key);
        }
    }

    /// Sends `STREAM_DATA_BLOCKED`, once for each limit, if a stream's limit keeps its writer from
    /// writing.
    pub(super) fn note_stream_blocked(&mut self, key: u32) {
        let Some(stream) = self.slab.get_mut(key) else {
            return;
        };
        let id = stream.id;
        if let Some(limit) = stream.send.as_mut().and_then(SendHalf::blocked_at) {
            self.outgoing.limited_streams.insert(key);
            self.set_control(
                ControlKey::StreamDataBlocked(id),
                ControlValue::Limit(limit),
            );
        }
    }

    /// True if the peer's flow control, of the connection or of a stream, holds data back. A stream
    /// counts until the event that there is room for it was polled.
    pub(crate) fn is_flow_limited(&self) -> bool {
        let mut limited = self.outgoing.limited_streams.iter();
        self.outgoing.is_blocked()
            || limited.any(|&key| self.slab.get(key).is_some_and(Stream::is_flow_limited))
    }

    /// Removes the stream of `key` from the limited ones if it is none any more.
    pub(super) fn discard_unlimited(&mut self, key: u32) {
        if !self.outgoing.limited_streams.is_empty()
            && !self.slab.get(key).is_some_and(Stream::is_flow_limited)
        {
            self.outgoing.limited_streams.remove(&key);
        }
    }

    /// Sends `DATA_BLOCKED`, once for each limit, if the connection's limit keeps data from being sent.
    pub(super) fn note_connection_blocked(&mut self) {
        let outgoing = &mut self.outgoing;
        if outgoing.is_blocked() && outgoing.reported_blocked_at != Some(outgoing.limit) {
            let limit = *outgoing.reported_blocked_at.insert(outgoing.limit);
            self.set_control(ControlKey::DataBlocked, ControlValue::Limit(limit));
        }
    }
}

impl Stream {
    /// True if the peer's limit on the stream holds data back, or did until an event that waits to be
    /// polled.
    fn is_flow_limited(&self) -> bool {
        let event_waits = self.queued_events & WRITABLE != 0;
        event_waits || self.send.as_ref().is_some_and(SendHalf::is_flow_limited)
    }
}
