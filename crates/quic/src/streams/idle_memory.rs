//! What a connection gives back when nothing has happened on it for a while.

use std::collections::VecDeque;

use super::Streams;

impl Streams {
    /// Gives back all memory that the present state of streams doesn't need. Whoever needs some again
    /// allocates it.
    pub(crate) fn release_idle_memory(&mut self) {
        for key in self.slab.keys() {
            if let Some(send) = self
                .slab
                .get_mut(key)
                .and_then(|stream| stream.send.as_mut())
            {
                send.buffer.release_idle_memory();
            }
            self.with_recv(key, |recv, _| recv.release_idle_memory());
        }
        self.slab.release_idle_memory();
        self.ids.release_idle_memory();
        self.outgoing.release_idle_memory();
        self.incoming.release_idle_memory();
        if let Some(repairs) = self.history.get_mut() {
            repairs.release_idle_memory();
        }
        self.events.shrink_to_fit();
        self.control.shrink_to_fit();
        if self.notices.get().is_some_and(VecDeque::is_empty) {
            self.notices.give_up();
        }
    }
}
