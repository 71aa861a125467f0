//! A quiet connection gives back the memory that only busy ones need.

use crate::idle_memory::IdleMemory as _;

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
    pub fn release_idle_memory(&mut self) {
        for space in self.early.iter_mut().flatten() {
            space.release_idle_memory();
        }
        for entry in self.paths.iter_mut() {
            entry.path.release_idle_memory();
            if self.handshake.is_confirmed() {
                entry.path.ecn.release_idle_memory();
            }
            entry.recovery.release_idle_memory();
            entry.space.release_idle_memory();
        }
        self.handshake.release_idle_memory();
        self.streams.release_idle_memory();
        self.control.release_idle_memory();
        self.datagrams.release_idle_memory();
        self.outbox.events.shrink_to_fit();
        self.outbox.endpoint_events.shrink_to_fit();
        self.policies.reinjections.shrink_to_fit();
        self.scratch.give_up();
        self.rng.release_idle_memory();
    }
}
