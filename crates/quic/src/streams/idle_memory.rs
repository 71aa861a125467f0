//! Memory that streams give back while the connection is idle.

use std::collections::VecDeque;

use super::{Stream, Streams};
use crate::idle_memory::IdleMemory;

impl IdleMemory for Streams {
    fn release_idle_memory(&mut self) {
        for key in self.slab.keys() {
            if let Some(stream) = self.slab.get_mut(key) {
                stream.release_idle_memory();
            }
            // Rings are accounted for by the connection.
            self.with_recv(key, |recv, _| recv.release_idle_memory());
        }
        let Self {
            slab,
            ids,
            outgoing,
            history,
            incoming,
            initial_limits: _,
            knows_peer: _,
            receiving_zero_rtt: _,
            events,
            queued_opened: _,
            queued_available: _,
            control,
            notices,
            lifetimes,
            records_lifetimes: _,
            peer_resets_at: _,
            stats: _,
        } = self;
        slab.release_idle_memory();
        ids.release_idle_memory();
        outgoing.release_idle_memory();
        incoming.release_idle_memory();
        // Totals are kept there, too.
        if let Some(history) = history.get_mut() {
            history.release_idle_memory();
        }
        events.shrink_to_fit();
        control.shrink_to_fit();
        if notices.get().is_some_and(VecDeque::is_empty) {
            notices.release();
        }
        if lifetimes.get().is_some_and(VecDeque::is_empty) {
            lifetimes.release();
        }
    }
}

impl IdleMemory for Stream {
    fn release_idle_memory(&mut self) {
        let Self {
            id: _,
            priority: _,
            deadline: _,
            accepted: _,
            is_zero_rtt: _,
            queued_events: _,
            send,
            // Released by the connection, which accounts for its memory.
            recv: _,
        } = self;
        if let Some(send) = send {
            send.release_idle_memory();
        }
    }
}
