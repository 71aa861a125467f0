//! What comes of input: events to the application, endpoint events to the endpoint, the next deadline to the timers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use swiftwater_quic::{CidCollision, ConnectionHandle, EndpointEvent};
use swiftwater_units::{Instant, Side};

use crate::connection::Connection;
use crate::connection_shared::{ConnectionRef, ConnectionShared};
use crate::connection_signals::Wakeups;

use super::Worker;

impl Worker {
    /// Delivers the events of connections that had input. All the rest can wait until they have sent what they have
    /// to say to it, but for what the end of a handshake entails.
    pub(super) fn deliver_all(&mut self, now: Instant) {
        for at in 0..self.table.unsettled.len() {
            let index = self.table.unsettled[at];
            let Some(entry) = self.table.get(index) else {
                continue;
            };
            if entry.handshaking {
                let shared = Arc::clone(&entry.shared);
                self.settle(now, index, &shared);
            } else if entry.unsettled {
                deliver_events(now, &entry.shared, &mut self.scratch.wakeups);
            }
        }
    }

    /// Settles connections that had input, or sent something, since that was done last.
    pub(super) fn settle_all(&mut self, now: Instant) {
        let mut unsettled = std::mem::take(&mut self.table.unsettled);
        for index in unsettled.drain(..) {
            if let Some(entry) = self.table.get(index)
                && entry.unsettled
            {
                let shared = Arc::clone(&entry.shared);
                self.settle(now, index, &shared);
            }
        }
        // Settling may unsettle nothing, so the list is still empty.
        self.table.unsettled = unsettled;
    }

    /// Takes events and the next deadline of connection `index`, and acts on them.
    fn settle(&mut self, now: Instant, index: usize, shared: &Arc<ConnectionShared>) {
        let wakeups = &mut self.scratch.wakeups;
        let events = &mut self.scratch.events;
        let deadline = {
            let mut state = shared.lock();
            state.drain_events(now, wakeups);
            while let Some(event) = state.connection.poll_endpoint_event() {
                events.push(event);
            }
            state.next_timeout()
        };
        self.table.set_deadline(index, now, deadline);
        let usable = wakeups.usable;
        wakeups.deliver(&shared.signals);
        let Some(entry) = self.table.get_mut(index) else {
            return;
        };
        entry.unsettled = false;
        let established = usable && std::mem::take(&mut entry.handshaking);
        if !established && events.is_empty() {
            return;
        }
        let gone = events.contains(&EndpointEvent::Drained);
        let failed = gone && std::mem::take(&mut entry.handshaking);
        let handle = entry.handle;
        if failed {
            let failures = &self.shared.counters.handshakes_failed;
            failures.fetch_add(1, Ordering::Relaxed);
        }
        let established =
            established.then(|| Connection::new(ConnectionRef::new(Arc::clone(shared))));
        debug_assert!(
            established
                .as_ref()
                .is_none_or(|c| c.side() == Side::Server)
        );
        self.update_endpoint(handle, established, failed);
        if gone {
            self.table.remove(index);
        }
    }

    /// Brings the endpoint up to date about one connection: its endpoint events in `scratch`, whether it is now
    /// established and waits to be accepted, whether its handshake failed.
    fn update_endpoint(
        &mut self,
        handle: ConnectionHandle,
        established: Option<Connection>,
        failed: bool,
    ) {
        let events = &mut self.scratch.events;
        let gone = events.contains(&EndpointEvent::Drained);
        let mut endpoint = self.shared.lock();
        if established.is_some() || failed {
            endpoint.handshakes -= 1;
        }
        let accepts = endpoint.closing.is_none() && !endpoint.released;
        let refused = match established {
            Some(connection) if accepts => {
                endpoint.accept.push_back(connection);
                self.shared.wake_acceptors();
                None
            }
            other => other,
        };
        let collisions: Vec<_> = events
            .drain(..)
            .filter_map(|event| endpoint.core.handle_event(handle, event))
            .collect();
        if gone {
            endpoint.connections -= 1;
            if endpoint.connections == 0 {
                self.shared.signals.idle.notify_waiters();
            }
        }
        drop(endpoint);
        // Both take the connection's lock: never under the endpoint's.
        drop(refused);
        self.resolve_collisions(handle, &collisions);
    }
}

impl Worker {
    /// Has a connection issue other connection IDs than those that another connection has.
    fn resolve_collisions(&mut self, handle: ConnectionHandle, collisions: &[CidCollision]) {
        let index = handle.index();
        if collisions.is_empty() {
            return;
        }
        if let Some(entry) = self.table.get(index) {
            let mut state = entry.shared.lock();
            for collision in collisions {
                state.connection.handle_cid_collision(collision);
            }
            drop(state);
            self.table.mark(index);
        }
    }
}

/// Delivers the events of a connection; true if it has stream data to send, perhaps in answer to them.
pub(super) fn deliver_events(
    now: Instant,
    shared: &ConnectionShared,
    wakeups: &mut Wakeups,
) -> bool {
    let mut state = shared.lock();
    state.drain_events(now, wakeups);
    let has_data = state.connection.has_stream_data();
    drop(state);
    wakeups.deliver(&shared.signals);
    has_data
}
