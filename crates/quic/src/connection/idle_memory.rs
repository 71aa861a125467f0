//! An idle connection gives back the memory that only busy ones need.

use crate::idle_memory::IdleMemory as _;

use super::Connection;

impl Connection {
    /// Gives back all memory that the present state doesn't need: room in queues and rings, keys that can be
    /// derived again, and buffers that keep packets from allocating. For drivers of many connections, to
    /// be called when nothing has happened on this one for a while and after
    /// [`Connection::poll_transmit`] had nothing to send; its next event allocates anew.
    ///
    /// While something is in flight nothing else changes. Otherwise sent packets are discarded, too: a late
    /// ACK that covers packets of this end with nothing but ACKs then acknowledges nothing new, and neither does one
    /// that covers a packet that was never sent.
    pub fn release_idle_memory(&mut self) {
        let Self {
            identity,
            handshake,
            establishment: _,
            paths,
            multipath,
            streams,
            control,
            datagrams,
            policies,
            lifecycle: _,
            outbox,
            monitor: _,
            workspace,
        } = self;
        identity.random.release_idle_memory();
        handshake.release_idle_memory();
        paths.release_idle_memory();
        if let Some(multipath) = multipath {
            multipath.release_idle_memory();
        }
        streams.release_idle_memory();
        control.release_idle_memory();
        datagrams.release_idle_memory();
        policies.release_idle_memory();
        outbox.release_idle_memory();
        workspace.buffers.release();
    }
}
