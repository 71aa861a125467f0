//! What a worker does with its messages.

use swiftwater_quic::{LocalAddress, SocketId};
use swiftwater_units::{Instant, Side};

use crate::handed_over::HandedOver;

use super::Worker;

impl Worker {
    /// Takes the messages from the inbox and acts on them.
    pub(super) fn take_messages(&mut self, now: Instant) -> bool {
        let mut messages = std::mem::take(&mut self.messages);
        self.shared.inbox.take(&mut messages);
        let mut busy = !messages.added.is_empty() || !messages.touched.is_empty();
        for (id, bound) in messages.sockets.drain(..) {
            busy = true;
            if let Some(socket) = self.sockets.add(id, bound) {
                self.shared.lock().sockets.set_sender(id, socket);
            }
        }
        for id in messages.closed_sockets.drain(..) {
            self.sockets.remove(id);
        }
        for (handle, shared) in messages.added.drain(..) {
            self.table.insert(handle, shared, false);
        }
        for index in messages.touched.drain(..) {
            if let Some(entry) = self.table.get(index) {
                entry.shared.clear_touched();
                self.table.mark(index);
            }
        }
        busy |= self.take_handed_over(&mut messages.handed_over, now);
        if let Some(socket) = messages.rebind.take() {
            busy = true;
            self.rebind(socket, now);
        }
        if std::mem::take(&mut messages.state_changed) {
            busy = true;
            self.close_if_asked(now);
        }
        messages.discarded.clear();
        self.messages = messages;
        busy
    }

    /// Takes what other workers received for this one.
    fn take_handed_over(&mut self, datagrams: &mut HandedOver, now: Instant) -> bool {
        if datagrams.is_empty() {
            return false;
        }
        self.route(now, datagrams);
        self.process(now, datagrams);
        datagrams.clear();
        true
    }

    /// Moves every connection that was opened here to another socket, at once.
    fn rebind(&mut self, socket: SocketId, now: Instant) {
        for index in self.table.indices() {
            let Some(entry) = self.table.get(index) else {
                continue;
            };
            let mut state = entry.shared.lock();
            if state.connection.side() == Side::Server {
                continue;
            }
            if let Err(error) = state.connection.rebind(now, LocalAddress::any(socket)) {
                tracing::debug!(%error, "a connection stays at the old socket");
            }
            state.begin_migration(None);
            drop(state);
            entry.shared.signals.state.notify_waiters();
            self.table.mark(index);
        }
    }

    /// Closes every connection if the endpoint is closing.
    fn close_if_asked(&mut self, now: Instant) {
        let Some((code, reason)) = self.shared.lock().closing.clone() else {
            return;
        };
        for index in self.table.indices() {
            let Some(entry) = self.table.get(index) else {
                continue;
            };
            let wakeups = &mut self.scratch.wakeups;
            entry.shared.lock().close(now, code, &reason, wakeups);
            wakeups.deliver(&entry.shared.signals);
            self.table.mark(index);
        }
    }
}
