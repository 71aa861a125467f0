//! A quiet connection gives back the memory that only busy ones need.

use super::Connection;

impl Connection {
    /// Gives back all memory that the present state doesn't need: room in queues and rings, and what is
    /// kept so that no packet allocates. For drivers of many connections, to be called when nothing has
    /// happened on this one for a while and after [`Connection::poll_transmit`] had nothing to send; what it
    /// does next allocates anew.
    ///
    /// While something is in flight nothing else changes. Otherwise sent packets are forgotten, too: that a late
    /// ACK covers packets of ours with nothing but ACKs is no news then, nor that it covers one that was never
    /// sent.
    pub fn rest(&mut self) {
        for space in self.early.iter_mut().flatten() {
            space.rest();
        }
        for entry in self.paths.iter_mut() {
            entry.path.rest();
            if self.handshake.is_confirmed() {
                entry.path.ecn.rest();
            }
            entry.recovery.rest();
            entry.space.rest();
        }
        self.handshake.rest();
        self.streams.rest();
        self.control.rest();
        self.datagrams.rest();
        self.outbox.events.shrink_to_fit();
        self.outbox.endpoint_events.shrink_to_fit();
        self.policies.reinjections.shrink_to_fit();
        self.scratch.give_up();
        self.rng.rest();
    }
}
