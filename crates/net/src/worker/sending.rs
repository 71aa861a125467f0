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
        self.outgoing.retry(cx, sockets, counters, |socket, index| {
            busy = true;
            if let Some(entry) = table.get_mut(index)
                && entry.waits_for == Some(socket)
            {
                entry.waits_for = None;
            }
            table.mark(index);
        });
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
        let socket = state.connection.path_address().local.socket;
        let blocked = self.outgoing.is_blocked(socket);
        let connection = &mut state.connection;
        let filled = self
            .outgoing
            .fill(&self.sockets, entry.handle, |segments, buffer| {
                if blocked {
                    connection.poll_transmit_off_path(now, buffer)
                } else {
                    connection.poll_transmit(now, segments, buffer)
                }
            });
        if !filled && !blocked {
            state.on_sent_all(now);
        }
        drop(state);
        if filled {
            let counters = &self.shared.counters;
            self.outgoing.send(cx, &self.sockets, counters);
            self.report_failures();
            return true;
        }
        if blocked && entry.waits_for.replace(socket) != Some(socket) {
            self.outgoing.wait_for(socket, index);
        }
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
                SendFailureReason::Unreachable(socket, kind) => {
                    entry.shared.note_unreachable(socket, kind);
                }
                SendFailureReason::TooLarge(size) => {
                    let now = self.shared.clock.now();
                    let mut state = entry.shared.lock();
                    state.connection.on_datagram_too_large(now, size);
                    drop(state);
                    self.table.mark(failure.sender.index());
                }
            }
        }
    }
}
