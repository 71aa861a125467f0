//! Where received datagrams go: to a connection of this worker, a new one, another worker, the receiver of a virtual
//! connection ID, or nowhere but for an answer of the endpoint.
//!
//! A batch is routed first, under the endpoint's lock, and processed afterwards, without it: opening and closing of
//! connections, accepting and statistics wait for look-ups, never for packet protection.

use std::iter;
use std::sync::Arc;

use swiftwater_quic::wire::ConnectionId;
use swiftwater_quic::{Connection as Core, ConnectionHandle, Routed, Transmit};
use swiftwater_units::Instant;

use crate::connection_shared::ConnectionShared;
use crate::connection_table::ConnectionTable;
use crate::endpoint_shared::{EndpointShared, count};
use crate::recv_batch::DatagramBatch;
use crate::socket::Parcel;
use crate::virtual_ids::{VirtualIdReceiver, VirtualIds, VirtualPacket};
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
    /// The receiver of a virtual connection ID, by its place among those of the batch.
    Virtual(usize),
    /// It was dropped or answered.
    None,
}

/// What a worker needs to route datagrams, reused between batches to allocate nothing.
pub(crate) struct DatagramRouter {
    shared: Arc<EndpointShared>,
    /// All workers of the endpoint, this one included.
    workers: Arc<[Arc<EndpointShared>]>,
    response: Box<ResponseRoom>,
    /// The virtual connection IDs of a batch, in the order of their packets.
    receivers: Vec<(ConnectionId, Arc<dyn VirtualIdReceiver>)>,
}

impl DatagramRouter {
    /// For the worker that shares `shared`, one of `workers`.
    pub(crate) fn new(shared: Arc<EndpointShared>, workers: Arc<[Arc<EndpointShared>]>) -> Self {
        Self {
            shared,
            workers,
            response: Box::new([0; size_of::<ResponseRoom>()]),
            receivers: Vec::new(),
        }
    }

    /// Appends to `destinations` where each datagram of `batch` goes. New connections are in the table afterwards,
    /// answers of the endpoint are sent, and what is for other workers or virtual connection IDs is handed over.
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
        let mut has_others = false;
        let mut locked = None;
        for (meta, datagram) in batch.datagrams() {
            let endpoint = locked.get_or_insert_with(|| self.shared.lock());
            if let Some(place) = virtual_place(&mut self.receivers, &endpoint.virtual_ids, datagram)
            {
                destinations.push(Destination::Virtual(place));
                continue;
            }
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
                    has_others = true;
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
        if has_others {
            self.hand_over(batch, destinations);
        }
        if !self.receivers.is_empty() {
            self.hand_to_receivers(batch, destinations);
        }
    }

    /// Puts an accepted connection into the table.
    fn add(&self, table: &mut ConnectionTable, handle: ConnectionHandle, connection: Box<Core>) {
        let shared = ConnectionShared::new(handle.index(), connection, self.shared.clone());
        table.insert(handle, shared, true);
    }

    /// Leaves datagrams to other workers; what those have no room for is dropped.
    fn hand_over(&self, batch: &mut impl DatagramBatch, destinations: &[Destination]) {
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
                worker.inbox.hand_over(run)
            } else {
                run.for_each(drop);
                0
            };
            count(&self.shared.counters.handed_over, taken);
            count(&self.shared.counters.handovers_dropped, offered - taken);
        }
    }

    /// Hands packets with virtual connection IDs to their receivers.
    fn hand_to_receivers(&mut self, batch: &mut impl DatagramBatch, destinations: &[Destination]) {
        let datagrams = batch.datagrams().zip(destinations);
        let mut packets = datagrams
            .filter_map(|((meta, packet), destination)| match destination {
                Destination::Virtual(place) => Some((*place, meta, packet)),
                _ => None,
            })
            .peekable();
        let mut taken = 0;
        while let Some(&(place, ..)) = packets.peek() {
            let receiver = self.receivers.get(place);
            let id_len = receiver.map_or(0, |(id, _)| id.len());
            let mut run = iter::from_fn(|| {
                let (_, meta, packet) = packets.next_if(|(to, ..)| *to == place)?;
                taken += 1;
                Some(VirtualPacket {
                    packet,
                    id_len,
                    remote: meta.remote,
                    ecn: meta.ecn,
                })
            });
            if let Some((_, receiver)) = receiver {
                receiver.receive(&mut run);
            }
            // What it left is dropped.
            run.for_each(drop);
        }
        count(&self.shared.counters.virtual_packets, taken);
        self.receivers.clear();
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

/// The place in `receivers` of who takes a datagram; `None` if it has no virtual connection ID. A train of packets with
/// one ID takes one look-up.
fn virtual_place(
    receivers: &mut Vec<(ConnectionId, Arc<dyn VirtualIdReceiver>)>,
    ids: &VirtualIds,
    datagram: &[u8],
) -> Option<usize> {
    if let [.., (last, _)] = receivers.as_slice()
        && let [first, rest @ ..] = datagram
        && first & 0x80 == 0
        && rest.starts_with(last.as_bytes())
    {
        return Some(receivers.len() - 1);
    }
    let (id, receiver) = ids.find(datagram)?;
    receivers.push((id, Arc::clone(receiver)));
    Some(receivers.len() - 1)
}
