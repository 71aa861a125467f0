//! Datagrams in: one batch of one socket, or of another worker.

use std::iter;
use std::task::{Context, Poll};

use swiftwater_quic::DatagramMeta;
use swiftwater_units::Instant;

use crate::connection_table::ConnectionTable;
use crate::datagram_router::Destination;
use crate::endpoint_shared::count;
use crate::recv_batch::DatagramBatch;

use super::Worker;
use super::settling::deliver_events;

/// Datagrams that are answered at once. Of a larger batch each half is, by applications inside the worker: the
/// peer has something to do while this end takes in the second one, and there are no more packets and system
/// calls than that needs.
const ANSWERED_TOGETHER: usize = 8;

impl Worker {
    /// Reads one batch and hands its datagrams to their connections.
    pub(super) fn receive(&mut self, cx: &mut Context<'_>, now: Instant) -> bool {
        self.receive_errors.go_on();
        match self.sockets.poll_recv(cx, &mut self.received) {
            Poll::Pending => return false,
            Poll::Ready(Ok(())) => self.receive_errors.succeeded(),
            Poll::Ready(Err(error)) => {
                tracing::debug!(%error, "receiving failed");
                count(&self.shared.counters.receive_errors, 1);
                self.receive_errors.failed();
                // During a pause the timer wakes the task, not the socket.
                return !self.receive_errors.needs_pause();
            }
        }
        let mut batch = std::mem::take(&mut self.received);
        let mut tags = std::mem::take(&mut self.scratch.tags);
        batch.swap_notes(&mut tags, &mut self.scratch.reports);
        self.route(now, &mut batch);
        let destinations = std::mem::take(&mut self.scratch.destinations);
        count(
            &self.shared.counters.datagrams_received,
            destinations.len() as u64,
        );
        let part = ANSWERED_TOGETHER.max(destinations.len().div_ceil(2));
        let tagged = tags.iter().copied().chain(iter::repeat(None));
        let datagrams = batch.datagrams().zip(&destinations).zip(tagged);
        let mut datagrams = datagrams.peekable();
        while datagrams.peek().is_some() {
            process(now, datagrams.by_ref().take(part), &mut self.table);
            if datagrams.peek().is_some() {
                self.answer(cx, now);
            }
        }
        drop(datagrams);
        self.pass_reports(now);
        tags.clear();
        self.scratch.tags = tags;
        self.scratch.destinations = destinations;
        self.received = batch;
        true
    }

    /// Finds out where each datagram of a batch goes, and sends on what is not for this worker.
    pub(super) fn route(&mut self, now: Instant, batch: &mut impl DatagramBatch) {
        let destinations = &mut self.scratch.destinations;
        destinations.clear();
        let (sockets, table) = (&self.sockets, &mut self.table);
        self.router.route(now, batch, sockets, table, destinations);
    }

    /// Hands the datagrams of the batch that was routed last to their connections.
    pub(super) fn process(&mut self, now: Instant, batch: &mut impl DatagramBatch) {
        let datagrams = batch.datagrams().zip(&self.scratch.destinations);
        let datagrams = datagrams.zip(iter::repeat(None));
        process(now, datagrams, &mut self.table);
    }

    /// Hands the reports of a carrier to the connections with a path to where they come from. There are few: a carrier is
    /// that of one client.
    fn pass_reports(&mut self, now: Instant) {
        for (remote, report) in self.scratch.reports.drain(..) {
            for index in self.table.indices() {
                let Some(entry) = self.table.get(index) else {
                    continue;
                };
                let mut state = entry.shared.lock();
                let connection = &mut state.connection;
                let mut paths = connection.open_paths();
                let goes_there = paths.any(|path| {
                    let address = connection.address_of(path);
                    address.is_some_and(|address| address.remote == remote)
                });
                drop(paths);
                if goes_there {
                    connection.on_path_report(now, &report);
                    drop(state);
                    self.table.mark(index);
                }
            }
        }
    }

    /// Delivers what has come so far to applications inside the worker, and sends what they answer.
    fn answer(&mut self, cx: &mut Context<'_>, now: Instant) {
        let mut answered = false;
        for at in 0..self.table.unsettled.len() {
            let index = self.table.unsettled[at];
            if let Some(entry) = self.table.get(index)
                && entry.unsettled
                && entry.shared.hosts()
            {
                // Acknowledgements alone can wait for the rest of the batch.
                answered |= deliver_events(now, &entry.shared, &mut self.scratch.wakeups);
            }
        }
        if answered {
            self.transmit(cx);
        }
    }
}

/// Hands datagrams to their connections. No lock of the endpoint is held meanwhile.
fn process<'a>(
    now: Instant,
    datagrams: impl Iterator<Item = (((DatagramMeta, &'a mut [u8]), &'a Destination), Option<u64>)>,
    table: &mut ConnectionTable,
) {
    for (((meta, datagram), destination), tag) in datagrams {
        let Destination::Connection(index) = *destination else {
            continue;
        };
        if let Some(entry) = table.get(index) {
            let mut state = entry.shared.lock();
            let connection = &mut state.connection;
            connection.handle_tagged_datagram(now, &meta, tag, datagram);
            drop(state);
            table.mark(index);
        }
    }
}
