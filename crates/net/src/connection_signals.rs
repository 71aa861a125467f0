//! What tasks wait for on a connection, and the wake-ups that its events lead to.

use std::sync::OnceLock;
use std::task::Waker;

use swiftwater_units::Dir;
use tokio::sync::Notify;

/// What tasks wait for, streams apart. A task that is woken looks for itself, so that what is rare
/// can share a signal.
#[derive(Default)]
pub(crate) struct ConnectionSignals {
    /// A change of the connection's state: connected, confirmed, moved elsewhere, unable to reach the peer,
    /// closed.
    pub(crate) state: Notify,
    opened: [Notify; 2],
    /// Made when a task first waits: that task sees what changed before.
    flow: OnceLock<Box<FlowSignals>>,
}

/// What tasks wait for on few connections.
#[derive(Default)]
struct FlowSignals {
    available: [Notify; 2],
    datagram_received: Notify,
    datagram_room: Notify,
    datagram_fate: Notify,
}

impl ConnectionSignals {
    /// The peer opened streams of this kind.
    pub(crate) fn opened(&self, dir: Dir) -> &Notify {
        &self.opened[dir as usize]
    }

    /// The peer permits more streams of this kind.
    pub(crate) fn available(&self, dir: Dir) -> &Notify {
        &self.flow.get_or_init(Box::default).available[dir as usize]
    }

    /// A datagram waits to be read.
    pub(crate) fn datagram_received(&self) -> &Notify {
        &self.flow.get_or_init(Box::default).datagram_received
    }

    /// There is room for another datagram.
    pub(crate) fn datagram_room(&self) -> &Notify {
        &self.flow.get_or_init(Box::default).datagram_room
    }

    /// The fate of a datagram is known.
    pub(crate) fn datagram_fate(&self) -> &Notify {
        &self.flow.get_or_init(Box::default).datagram_fate
    }

    /// Wakes all that wait for anything.
    fn notify_all(&self) {
        self.state.notify_waiters();
        self.opened.iter().for_each(Notify::notify_waiters);
        if let Some(flow) = self.flow.get() {
            flow.available.iter().for_each(Notify::notify_waiters);
            flow.datagram_received.notify_waiters();
            flow.datagram_room.notify_waiters();
            flow.datagram_fate.notify_waiters();
        }
    }
}

/// What came out of draining a connection's events, to be acted on without its lock.
#[derive(Default)]
pub(crate) struct Wakeups {
    pub(crate) wakers: Vec<Waker>,
    pub(crate) opened: [bool; 2],
    pub(crate) available: [bool; 2],
    pub(crate) datagram_received: bool,
    pub(crate) datagram_room: bool,
    pub(crate) datagram_fate: bool,
    /// A change of the connection's state.
    pub(crate) state: bool,
    pub(crate) closed: bool,
    /// The application may have it: the handshake has just completed, or early data may flow.
    pub(crate) usable: bool,
    /// Tasks were woken to read. Stays until it is taken.
    pub(crate) readers_woken: bool,
    /// Tasks were woken, or a connection's state changed, which some wait for. Stays until it is taken.
    pub(crate) tasks_woken: bool,
}

impl Wakeups {
    /// Wakes all tasks and empties itself.
    pub(crate) fn deliver(&mut self, signals: &ConnectionSignals) {
        self.tasks_woken |= self.state || self.closed || !self.wakers.is_empty();
        for waker in self.wakers.drain(..) {
            waker.wake();
        }
        for dir in Dir::ALL {
            if std::mem::take(&mut self.opened[dir as usize]) {
                signals.opened(dir).notify_waiters();
            }
        }
        let available = std::mem::take(&mut self.available);
        let received = std::mem::take(&mut self.datagram_received);
        let room = std::mem::take(&mut self.datagram_room);
        let fate = std::mem::take(&mut self.datagram_fate);
        if let Some(flow) = signals.flow.get() {
            let [bi, uni] = &flow.available;
            let fired = [
                (available[0], bi),
                (available[1], uni),
                (received, &flow.datagram_received),
                (room, &flow.datagram_room),
                (fate, &flow.datagram_fate),
            ];
            for (_, signal) in fired.into_iter().filter(|(fired, _)| *fired) {
                signal.notify_waiters();
            }
        }
        if std::mem::take(&mut self.state) {
            signals.state.notify_waiters();
        }
        if std::mem::take(&mut self.closed) {
            signals.notify_all();
        }
        self.usable = false;
    }
}

/// Puts the waker of the running task into `slot`.
pub(crate) fn store_waker(slot: &mut Option<Waker>, waker: &Waker) {
    match slot {
        Some(old) => old.clone_from(waker),
        None => *slot = Some(waker.clone()),
    }
}
