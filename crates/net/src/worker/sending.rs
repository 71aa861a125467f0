//! Datagrams out: connections send in turn, a batch each.

use std::task::Context;

use crate::outgoing::SendFailureReason;

use super::Worker;

/// Batches sent in a turn before the socket is read again.
const SENDS_PER_TURN: usize = 16;

impl Worker {
    /// Lets connections send, one batch each in turn.
    pub(super) fn transmit(&mut self, cx: &mut Context<'_>) -> bool {
        let mut busy = self.retry_blocked(cx);
        for _ in 0..SENDS_PER_TURN {
            let Some(index) = self.table.pop_ready() else {
                break;
            };
            busy = true;
            if self.serve(cx, index) {
                self.table.make_ready(index);
            }
        }
        busy
    }

    /// Tries blocked sockets again; true if one takes datagrams, and connections that waited for it may go on.
    fn retry_blocked(&mut self, cx: &mut Context<'_>) -> bool {
        let mut busy = false;
        let (sockets, table) = (&self.sockets, &mut self.table);
        let counters = &self.shared.counters;
        self.outgoing.retry(cx, sockets, counters, |index| {
            busy = true;
            table.mark(index);
        });
        self.outgoing
            .blocked_sockets(&mut self.scratch.blocked_sockets);
        self.report_failures();
        busy
    }

    /// Sends one batch of connection `index`. False if it had nothing to send, or nothing that can leave now; then it
    /// is to be settled.
    fn serve(&mut self, cx: &mut Context<'_>, index: usize) -> bool {
        let Some(entry) = self.table.get_mut(index) else {
            return false;
        };
        let now = self.shared.clock.now();
        let mut state = entry.shared.lock();
        let blocked = &mut self.scratch.blocked_sockets;
        let connection = &mut state.connection;
        let filled = self
            .outgoing
            .fill(&self.sockets, entry.handle, |segments, buffer| {
                if blocked.is_empty() {
                    connection.poll_transmit(now, segments, buffer)
                } else {
                    connection.poll_transmit_around(now, segments, buffer, blocked)
                }
            });
        if filled {
            drop(state);
            let counters = &self.shared.counters;
            self.outgoing.send(cx, &self.sockets, counters);
            self.outgoing.blocked_sockets(blocked);
            self.report_failures();
            return true;
        }
        let waits = !blocked.is_empty() && {
            let connection = &state.connection;
            let addresses = connection
                .open_paths()
                .filter_map(|path| connection.address_of(path));
            let sockets = addresses.map(|address| address.local.socket);
            self.outgoing.wait_for(sockets, index)
        };
        if !waits {
            state.on_sent_all(now);
        }
        drop(state);
        self.table.unsettle(index);
        false
    }

    /// Reports refused datagrams to the connections that sent them.
    fn report_failures(&mut self) {
        while let Some(failure) = self.outgoing.take_failure() {
            let Some(entry) = self.table.find(failure.sender) else {
                continue;
            };
            match failure.reason {
                SendFailureReason::Unreachable(path, socket, kind) => {
                    let now = self.shared.clock.now();
                    entry.shared.note_unreachable(now, path, socket, kind);
                    self.table.mark(failure.sender.index());
                }
                SendFailureReason::TooLarge(path, size) => {
                    let now = self.shared.clock.now();
                    let mut state = entry.shared.lock();
                    state.connection.on_datagram_too_large(now, path, size);
                    drop(state);
                    self.table.mark(failure.sender.index());
                }
            }
        }
    }
}
