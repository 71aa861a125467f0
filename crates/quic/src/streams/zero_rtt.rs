//! Stream data in 0-RTT packets: marks of what came so, and sending all of it anew after a rejection
//! (RFC 9001, section 4.6.2).

use swiftwater_units::{Dir, StreamId};

use super::send_stream::SendHalf;
use super::{InitialLimits, Streams};
use crate::control::ControlKey;

impl Streams {
    /// Sets whether the frames that follow came in a 0-RTT packet.
    pub(crate) fn set_receiving_zero_rtt(&mut self, zero_rtt: bool) {
        self.receiving_zero_rtt = zero_rtt;
    }

    /// True if a frame about `id` came in a 0-RTT packet.
    pub(crate) fn is_early_data(&self, id: StreamId) -> bool {
        self.stream(id)
            .is_some_and(|(_, stream)| stream.is_zero_rtt)
    }

    /// Streams of a kind that this end opened so far.
    pub(crate) fn opened(&self, dir: Dir) -> u64 {
        self.ids.opened_by_us(dir)
    }

    /// Streams of a kind that the peer was permitted to open so far.
    pub(crate) fn permitted(&self, dir: Dir) -> u64 {
        self.ids.remote_limit(dir)
    }

    /// Bytes of new data that were sent, streams that were reset included: what counts against the
    /// peer's limit for the connection.
    pub(crate) fn sent_against_limit(&self) -> u64 {
        self.outgoing.sent()
    }

    /// Nothing of what was sent has arrived or ever will, and the peer's limits are unknown again:
    /// all that was written waits to be sent for the first time.
    pub(crate) fn send_anew(&mut self) {
        self.initial_limits = InitialLimits::default();
        self.ids.discard_local_limits();
        let mut reset_bytes = 0;
        for key in self.slab.keys() {
            let Some(id) = self.slab.get(key).map(|stream| stream.id) else {
                continue;
            };
            if let Some(history) = self.history.get_mut() {
                history.on_reset(id);
            }
            self.cancel(ControlKey::StreamDataBlocked(id));
            let reset = self.with_send(key, |send, _| {
                send.discard_sent();
                if send.is_reset() {
                    send.buffer.sent()
                } else {
                    0
                }
            });
            reset_bytes += reset.unwrap_or(0);
        }
        self.outgoing.discard_sent(reset_bytes);
        self.cancel(ControlKey::DataBlocked);
        for dir in Dir::ALL {
            self.cancel(ControlKey::StreamsBlocked(dir));
        }
    }
}

impl SendHalf {
    /// Nothing was sent, and nothing may be. Returns the bytes that count as sent all the same: the
    /// final size of a stream that was reset stays what it is.
    fn discard_sent(&mut self) -> u64 {
        self.discard_limit();
        if self.is_whole() {
            self.buffer.discard_sent();
            return 0;
        }
        let sent = self.buffer.sent();
        if !self.is_reset() {
            self.buffer.on_lost(0..sent, false);
        }
        sent
    }
}
