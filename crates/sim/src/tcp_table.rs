//! The TCP connections of a host by handle and by addresses, and the list of those with pending work.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use swiftwater_units::Instant;

use crate::event_queue::{EventQueue, Task};
use crate::tcp::{Config, Connection, Event, reset_segment};

/// First port of connections that a host opens (RFC 6335, section 6).
const FIRST_PORT: u16 = 49_152;

/// Connections that are over and kept for inspection.
const KEPT_OVER: usize = 4_096;

/// A TCP connection of a host.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct TcpHandle(u32);

#[derive(Debug)]
struct Slot {
    connection: Connection,
    interface: u32,
    remote: SocketAddr,
    port: u16,
    /// It is in the list of connections with pending work.
    busy: bool,
    /// When the event queue visits its timer next.
    armed: Option<Instant>,
}

/// A segment to send.
pub(crate) struct Outgoing<'a> {
    pub(crate) interface: u32,
    pub(crate) remote: SocketAddr,
    pub(crate) port: u16,
    pub(crate) data: &'a [u8],
}

/// Connections by [`TcpHandle`].
#[derive(Debug, Default)]
pub(crate) struct TcpTable {
    slots: BTreeMap<u32, Slot>,
    /// Connections by interface, peer and port.
    flows: BTreeMap<(u32, SocketAddr, u16), u32>,
    next: u32,
    next_port: u16,
    busy: VecDeque<u32>,
    /// Handles of those that are over, the earliest first.
    over: VecDeque<u32>,
    listens: Option<Config>,
    /// Answers to segments without a connection.
    resets: VecDeque<(u32, SocketAddr, u16)>,
    buffer: Vec<u8>,
}

impl TcpTable {
    pub(crate) fn listen(&mut self, config: Option<Config>) {
        self.listens = config;
    }

    pub(crate) fn connect(
        &mut self,
        now: Instant,
        config: &Config,
        interface: u32,
        remote: SocketAddr,
    ) -> TcpHandle {
        let port = FIRST_PORT + self.next_port % (u16::MAX - FIRST_PORT);
        self.next_port = self.next_port.wrapping_add(1);
        self.insert(Connection::connect(now, config), interface, remote, port)
    }

    fn insert(
        &mut self,
        connection: Connection,
        interface: u32,
        remote: SocketAddr,
        port: u16,
    ) -> TcpHandle {
        let handle = self.next;
        self.next += 1;
        self.flows.insert((interface, remote, port), handle);
        self.slots.insert(
            handle,
            Slot {
                connection,
                interface,
                remote,
                port,
                busy: true,
                armed: None,
            },
        );
        self.busy.push_back(handle);
        TcpHandle(handle)
    }

    /// Passes a segment to its connection; returns a new one's handle if it opens one.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        (interface, remote, port): (u32, SocketAddr, u16),
        data: &[u8],
    ) -> Option<TcpHandle> {
        let key = (interface, remote, port);
        let known = self.flows.get(&key).map(|handle| TcpHandle(*handle));
        if let Some(connection) = known.and_then(|handle| self.get_mut(handle)) {
            connection.on_datagram(now, data);
            return None;
        }
        let config = self.listens.as_ref();
        if let Some(connection) = config.and_then(|config| Connection::accept(now, config, data)) {
            return Some(self.insert(connection, interface, remote, port));
        }
        if Connection::calls_for_reset(data) {
            self.resets.push_back(key);
        }
        None
    }

    /// A connection, also one that is over.
    pub(crate) fn get(&self, handle: TcpHandle) -> Option<&Connection> {
        self.slots.get(&handle.0).map(|slot| &slot.connection)
    }

    /// A connection, marked as having pending work.
    pub(crate) fn get_mut(&mut self, handle: TcpHandle) -> Option<&mut Connection> {
        let slot = self.slots.get_mut(&handle.0)?;
        if !slot.busy {
            slot.busy = true;
            self.busy.push_back(handle.0);
        }
        Some(&mut slot.connection)
    }

    pub(crate) fn handles(&self) -> impl Iterator<Item = TcpHandle> {
        self.slots.keys().map(|handle| TcpHandle(*handle))
    }

    pub(crate) fn is_busy(&self) -> bool {
        !self.busy.is_empty() || !self.resets.is_empty()
    }

    /// The next connection with pending work.
    pub(crate) fn next_busy(&mut self) -> Option<TcpHandle> {
        let handle = self.busy.pop_front()?;
        if let Some(slot) = self.slots.get_mut(&handle) {
            slot.busy = false;
        }
        Some(TcpHandle(handle))
    }

    /// The next answer to a segment without a connection.
    pub(crate) fn next_reset(&mut self, now: Instant) -> Option<Outgoing<'_>> {
        let (interface, remote, port) = self.resets.pop_front()?;
        self.buffer.clear();
        reset_segment(now).encode(&[], &mut self.buffer);
        Some(Outgoing {
            interface,
            remote,
            port,
            data: &self.buffer,
        })
    }

    /// The next segment of a connection.
    pub(crate) fn transmit(&mut self, now: Instant, handle: TcpHandle) -> Option<Outgoing<'_>> {
        let slot = self.slots.get_mut(&handle.0)?;
        self.buffer.clear();
        let has_segment = slot.connection.poll_transmit(now, &mut self.buffer);
        has_segment.then_some(Outgoing {
            interface: slot.interface,
            remote: slot.remote,
            port: slot.port,
            data: &self.buffer,
        })
    }

    pub(crate) fn poll_event(&mut self, handle: TcpHandle) -> Option<Event> {
        self.slots.get_mut(&handle.0)?.connection.poll_event()
    }

    /// Arms the timer of a connection that was driven, or closes it if it is over.
    pub(crate) fn settle(&mut self, handle: TcpHandle, host: u32, event_queue: &mut EventQueue) {
        let Some(slot) = self.slots.get_mut(&handle.0) else {
            return;
        };
        if slot.busy {
            // It is driven again at once.
            return;
        }
        if slot.connection.is_over() {
            let key = (slot.interface, slot.remote, slot.port);
            if self.flows.get(&key) == Some(&handle.0) {
                self.flows.remove(&key);
                self.over.push_back(handle.0);
            }
            if self.over.len() > KEPT_OVER
                && let Some(oldest) = self.over.pop_front()
            {
                self.slots.remove(&oldest);
            }
            return;
        }
        if let Some(at) = slot.connection.next_timer()
            && slot.armed.is_none_or(|armed| at < armed)
        {
            slot.armed = Some(at);
            let task = Task::Tcp {
                host,
                slot: handle.0,
            };
            event_queue.push(at, task);
        }
    }

    /// The time has come that the event queue was to visit a connection's timer.
    pub(crate) fn expire(
        &mut self,
        now: Instant,
        slot: u32,
        host: u32,
        event_queue: &mut EventQueue,
    ) {
        let handle = TcpHandle(slot);
        let Some(state) = self.slots.get_mut(&slot) else {
            return;
        };
        if state.armed.is_some_and(|at| at <= now) {
            state.armed = None;
        }
        if state.connection.next_timer().is_some_and(|at| at <= now) {
            if let Some(connection) = self.get_mut(handle) {
                connection.on_timer(now);
            }
        } else {
            self.settle(handle, host, event_queue);
        }
    }

    /// Forgets all connections, as after a crash.
    pub(crate) fn clear(&mut self) {
        self.slots.clear();
        self.flows.clear();
        self.busy.clear();
        self.over.clear();
        self.resets.clear();
    }
}
