//! The connections of a host by handle, and the list of those with pending work.

use std::collections::VecDeque;
use std::net::SocketAddr;

use swiftwater_quic::{Connection, ConnectionHandle};
use swiftwater_units::Instant;

use crate::event_queue::{EventQueue, Task};
use crate::totals::HostTotals;

#[derive(Debug)]
struct Slot {
    handle: ConnectionHandle,
    connection: Box<Connection>,
    /// It is in the list of connections with pending work.
    busy: bool,
    /// When the event queue visits its timer next.
    armed: Option<Instant>,
}

/// Connections by [`ConnectionHandle`].
#[derive(Debug, Default)]
pub(crate) struct ConnectionTable {
    places: Vec<Option<Slot>>,
    busy: VecDeque<u32>,
    /// Drained connections, if kept for inspection.
    drained: Vec<(ConnectionHandle, Box<Connection>)>,
    keep_drained: bool,
    /// Totals of removed connections.
    totals: HostTotals,
}

impl ConnectionTable {
    pub(crate) fn new(keep_drained: bool) -> Self {
        Self {
            keep_drained,
            ..Self::default()
        }
    }

    /// Adds a new connection, which has pending work.
    pub(crate) fn insert(&mut self, handle: ConnectionHandle, connection: Box<Connection>) {
        let index = handle.index();
        if self.places.len() <= index {
            self.places.resize_with(index + 1, || None);
        }
        self.places[index] = Some(Slot {
            handle,
            connection,
            busy: true,
            armed: None,
        });
        self.busy.push_back(index as u32);
    }

    /// The connection, or a drained one that was kept.
    pub(crate) fn get(&self, handle: ConnectionHandle) -> Option<&Connection> {
        let slot = self.places.get(handle.index()).and_then(Option::as_ref);
        if let Some(slot) = slot.filter(|slot| slot.handle == handle) {
            return Some(&slot.connection);
        }
        let mut drained = self.drained.iter();
        let (_, connection) = drained.find(|(each, _)| *each == handle)?;
        Some(connection)
    }

    /// The connection, marked as having pending work.
    pub(crate) fn get_mut(&mut self, handle: ConnectionHandle) -> Option<&mut Connection> {
        let slot = self.places.get_mut(handle.index()).and_then(Option::as_mut);
        if let Some(slot) = slot.filter(|slot| slot.handle == handle) {
            if !slot.busy {
                slot.busy = true;
                self.busy.push_back(handle.index() as u32);
            }
            return Some(&mut slot.connection);
        }
        let mut drained = self.drained.iter_mut();
        let (_, connection) = drained.find(|(each, _)| *each == handle)?;
        Some(connection)
    }

    /// Gives a report about the path to `remote` to the connections with that peer.
    pub(crate) fn on_path_report(&mut self, now: Instant, remote: SocketAddr, report: &[u8]) {
        let handles: Vec<_> = self.handles().collect();
        for handle in handles {
            let is_peer = |connection: &Connection| connection.remote() == remote;
            if self.get(handle).is_some_and(is_peer)
                && let Some(connection) = self.get_mut(handle)
            {
                connection.on_path_report(now, report);
            }
        }
    }

    pub(crate) fn is_busy(&self) -> bool {
        !self.busy.is_empty()
    }

    /// The next connection with pending work.
    pub(crate) fn next_busy(&mut self) -> Option<ConnectionHandle> {
        while let Some(index) = self.busy.pop_front() {
            if let Some(Some(slot)) = self.places.get_mut(index as usize)
                && slot.busy
            {
                slot.busy = false;
                return Some(slot.handle);
            }
        }
        None
    }

    /// The connection of a handle returned by [`ConnectionTable::next_busy`], without marking it again.
    pub(crate) fn serve(&mut self, handle: ConnectionHandle) -> Option<&mut Connection> {
        let slot = self.places.get_mut(handle.index())?.as_mut()?;
        (slot.handle == handle).then_some(&mut *slot.connection)
    }

    /// Whether the connection is in the list of those with pending work.
    pub(crate) fn is_waiting(&self, handle: ConnectionHandle) -> bool {
        let slot = self.places.get(handle.index()).and_then(Option::as_ref);
        slot.is_some_and(|slot| slot.busy)
    }

    /// Schedules a visit of the connection when its next timer expires.
    pub(crate) fn arm(
        &mut self,
        handle: ConnectionHandle,
        host: u32,
        event_queue: &mut EventQueue,
    ) {
        let index = handle.index();
        let Some(Some(slot)) = self.places.get_mut(index) else {
            return;
        };
        // A timer that was postponed is visited at its original time, and rescheduled then.
        if let Some(deadline) = slot.connection.poll_timeout()
            && slot.armed.is_none_or(|at| deadline < at)
        {
            slot.armed = Some(deadline);
            let slot = index as u32;
            event_queue.push(deadline, Task::Connection { host, slot });
        }
    }

    /// Handles the visit of the connection in slot `index` at `now`: its timer expires, or is
    /// rescheduled.
    pub(crate) fn expire(
        &mut self,
        now: Instant,
        index: u32,
        host: u32,
        event_queue: &mut EventQueue,
    ) {
        let Some(Some(slot)) = self.places.get_mut(index as usize) else {
            return;
        };
        if slot.armed.is_none_or(|at| at > now) {
            return;
        }
        slot.armed = None;
        let handle = slot.handle;
        if slot
            .connection
            .poll_timeout()
            .is_some_and(|deadline| deadline <= now)
        {
            slot.connection.handle_timeout(now);
            self.get_mut(handle);
        } else {
            self.arm(handle, host, event_queue);
        }
    }

    /// Removes a drained connection.
    pub(crate) fn remove(&mut self, handle: ConnectionHandle) {
        let Some(place) = self.places.get_mut(handle.index()) else {
            return;
        };
        if let Some(slot) = place.take_if(|slot| slot.handle == handle) {
            self.totals.add(&slot.connection.stats());
            if self.keep_drained {
                self.drained.push((handle, slot.connection));
            }
        }
    }

    /// Removes all connections, as a crash would.
    pub(crate) fn clear(&mut self) {
        for place in &mut self.places {
            if let Some(slot) = place.take() {
                self.totals.add(&slot.connection.stats());
            }
        }
        self.busy.clear();
    }

    /// Totals of all connections so far.
    pub(crate) fn totals(&self) -> HostTotals {
        let mut totals = self.totals;
        for slot in self.places.iter().flatten() {
            totals.add(&slot.connection.stats());
        }
        totals
    }

    /// The connections that aren't drained, in slot order.
    pub(crate) fn handles(&self) -> impl Iterator<Item = ConnectionHandle> {
        self.places.iter().flatten().map(|slot| slot.handle)
    }
}
