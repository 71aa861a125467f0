//! Whether the peer still has stream data to send, judged by what has arrived (RFC 9000, section 3.2).

use swiftwater_units::Dir;

use super::{Stream, Streams};

/// Bytes from which on an unfinished stream of the peer counts as a transfer: more than a control stream
/// of HTTP/3 begins with.
const LEAST_TRANSFER: u64 = 1200;

impl Streams {
    /// A number that rises with all that can make this end expect data: data sent, received, streams
    /// opened.
    pub(crate) fn progress(&self) -> u64 {
        let stats = &self.stats;
        stats.received_bytes + stats.new_bytes + stats.opened
    }

    /// True if data are missing: a request has no complete response, a stream has a gap, or the stream
    /// whose data arrived last has not ended. Looks at every stream.
    pub(crate) fn is_awaiting_data(&self) -> bool {
        let mut keys = self.slab.keys();
        keys.any(|key| {
            let stream = self.slab.get(key);
            stream.is_some_and(|stream| self.is_awaiting(key, stream))
        })
    }

    fn is_awaiting(&self, key: u32, stream: &Stream) -> bool {
        let Some(recv) = &stream.recv else {
            return false;
        };
        if recv.is_stopped() || !recv.is_expecting_data() {
            return false;
        }
        let is_interrupted = self.incoming.latest == key && recv.highest() > LEAST_TRANSFER;
        recv.has_gap() || is_interrupted || self.is_request(stream)
    }

    /// True for a locally opened stream on which the peer sends next.
    fn is_request(&self, stream: &Stream) -> bool {
        let is_local_bidi = stream.id.dir() == Dir::Bi && self.ids.is_local(stream.id);
        let unanswered = stream.recv.as_ref().is_some_and(|it| it.highest() == 0);
        let is_asked = stream
            .send
            .as_ref()
            .is_none_or(|send| send.buffer.is_finished() || (unanswered && send.buffer.sent() > 0));
        is_local_bidi && is_asked
    }
}
