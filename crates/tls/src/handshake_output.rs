//! Queue of handshake bytes and keys that a session produces, in the order of
//! [`Session::write_handshake`](swiftwater_quic::crypto::Session::write_handshake).

use std::collections::VecDeque;

use swiftwater_quic::crypto::NewKeys;

/// Flights to be written, each with the keys that follow it.
#[derive(Default)]
pub(crate) struct HandshakeOutput {
    flights: VecDeque<(Vec<u8>, Option<NewKeys>)>,
}

impl HandshakeOutput {
    /// Queues `bytes`, to be sent with the keys queued before, and then `keys`.
    pub(crate) fn push(&mut self, bytes: Vec<u8>, keys: Option<NewKeys>) {
        self.flights.push_back((bytes, keys));
    }

    /// True if the queue is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.flights.is_empty()
    }

    /// Appends bytes up to the next change of keys, which is returned.
    pub(crate) fn take(&mut self, out: &mut Vec<u8>) -> Option<NewKeys> {
        while let Some((bytes, keys)) = self.flights.pop_front() {
            out.extend_from_slice(&bytes);
            if keys.is_some() {
                return keys;
            }
        }
        None
    }
}
