//! Where received datagrams go: to a connection of this worker, a new one, another worker, or nowhere but for an
//! answer of the endpoint.
//!
//! A batch is routed first, under the endpoint's lock, and processed afterwards, without it: opening and closing of
//! connections, accepting and statistics wait for look-ups, never for packet protection.

use std::iter;
use std::sync::Arc;

use swiftwater_quic::{Connection as Core, ConnectionHandle, Routed, Transmit};
use swiftwater_units::Instant;

use crate::connection_shared::ConnectionShared;
use crate::connection_table::ConnectionTable;
use crate::endpoint_shared::{EndpointShared, count};
use crate::recv_batch::DatagramBatch;
use crate::socket::Parcel;
use crate::worker_sockets::WorkerSockets;

/// Room for answers of the endpoint itself.
type ResponseRoom = [u8; 1500];

/// Where a datagram of a batch goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Destination {
    /// The connection with this index.
    Connection(usize),
    /// The worker with this index.
    Worker { index: u8, established: bool },
    /// It was dropped or answered.
    None,
}

/// What a worker needs to route datagrams, reused between batches to allocate nothing.
pub(crate) struct DatagramRouter {
    shared: Arc<EndpointShared>,
    /// All workers of the endpoint, this one included.
    workers: Arc<[Arc<EndpointShared>]>,
    response: Box<ResponseRoom>,
}

impl DatagramRouter {
    /// For the worker that shares `shared`, one of `workers`.
    pub(crate) fn new(shared: Arc<EndpointShared>, workers: Arc<[Arc<EndpointShared>]>) -> Self {
        Self {
            shared,
            workers,
            response: Box::new([0; size_of::<ResponseRoom>()]),
        }
    }

    /// Appends to `destinations` where each datagram of `batch` goes. New connections are in the table afterwards,
    /// answers of the endpoint are sent, and what is for other workers is forwarded.
    ///
    /// The endpoint's lock is released after each datagram that takes more than a look-up.
    pub(crate) fn route(
        &mut self,
        now: Instant,
        batch: &mut impl DatagramBatch,
        sockets: &WorkerSockets,
        table: &mut ConnectionTable,
        destinations: &mut Vec<Destination>,
    ) {
        let mut forwards = false;
        let mut locked = None;
        for (meta, datagram) in batch.datagrams() {
            let endpoint = locked.get_or_insert_with(|| self.shared.lock());
            endpoint.limit_backlog();
            let routed = endpoint
                .core
                .route(now, &meta, datagram, &mut self.response[..]);
            destinations.push(match routed {
                Routed::Connection(handle) => Destination::Connection(handle.index()),
                Routed::NewConnection { handle, connection } => {
                    endpoint.connections += 1;
                    endpoint.handshakes += 1;
                    locked = None;
                    self.add(table, handle, connection);
                    Destination::Connection(handle.index())
                }
                Routed::OtherWorker {
                    worker,
                    established,
                } => {
                    forwards = true;
                    Destination::Worker {
                        index: worker,
                        established,
                    }
                }
                Routed::Response(transmit) => {
                    locked = None;
                    self.respond(sockets, &transmit);
                    Destination::None
                }
                _ => Destination::None,
            });
        }
        drop(locked);
        if forwards {
            self.forward(batch, destinations);
        }
    }

    /// Puts an accepted connection into the table.
    fn add(&self, table: &mut ConnectionTable, handle: ConnectionHandle, connection: Box<Core>) {
        let shared = ConnectionShared::new(handle.index(), connection, self.shared.clone());
        table.insert(handle, shared, true);
    }

    /// Leaves datagrams to other workers; what those have no room for is dropped.
    fn forward(&self, batch: &mut impl DatagramBatch, destinations: &[Destination]) {
        let datagrams = batch.datagrams().zip(destinations);
        let mut datagrams = datagrams
            .filter_map(|((meta, datagram), destination)| match destination {
                Destination::Worker { index, established } => {
                    Some((*index, meta, &*datagram, *established))
                }
                _ => None,
            })
            .peekable();
        while let Some(&(worker, ..)) = datagrams.peek() {
            let mut offered = 0;
            let run = iter::from_fn(|| {
                let (_, meta, datagram, established) =
                    datagrams.next_if(|(to, ..)| *to == worker)?;
                offered += 1;
                Some((meta, datagram, established))
            });
            let taken = if let Some(worker) = self.workers.get(usize::from(worker)) {
                worker.inbox.forward(run)
            } else {
                run.for_each(drop);
                0
            };
            count(&self.shared.counters.forwarded, taken);
            count(&self.shared.counters.forwards_dropped, offered - taken);
        }
    }

    /// Sends an answer of the endpoint. The peer relies on none; a full socket drops them.
    fn respond(&self, sockets: &WorkerSockets, transmit: &Transmit) {
        let contents = &self.response[..transmit.size.min(self.response.len())];
        let parcel = Parcel::of(transmit, contents, None);
        let counters = &self.shared.counters;
        let socket = sockets.get(transmit.socket);
        match socket.map(|socket| socket.try_send(&parcel)) {
            Some(Ok(())) => count(&counters.datagrams_sent, 1),
            _ => count(&counters.send_errors, 1),
        }
    }
}
