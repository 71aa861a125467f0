//! Where a received datagram goes: to a connection of this worker, a new one, another worker, or
//! nowhere but for an answer.

use std::sync::Arc;

use swiftwater_quic::{DatagramMeta, Routed, Transmit};
use swiftwater_units::Instant;

use crate::endpoint_shared::{EndpointShared, EndpointState, count};
use crate::shared::Shared;
use crate::socket::Parcel;
use crate::sockets::Sockets;
use crate::table::Table;

/// Room for answers of the endpoint itself.
pub(crate) type ResponseRoom = [u8; 1500];

/// The parts of a worker that a datagram may concern.
pub(crate) struct Dispatch<'a> {
    shared: &'a Arc<EndpointShared>,
    workers: &'a [Arc<EndpointShared>],
    sockets: &'a Sockets,
    table: &'a mut Table,
    response: &'a mut ResponseRoom,
}

impl<'a> Dispatch<'a> {
    /// For the datagrams of one batch.
    pub(crate) fn new(
        shared: &'a Arc<EndpointShared>,
        workers: &'a [Arc<EndpointShared>],
        sockets: &'a Sockets,
        table: &'a mut Table,
        response: &'a mut ResponseRoom,
    ) -> Self {
        Self {
            shared,
            workers,
            sockets,
            table,
            response,
        }
    }

    /// Hands one datagram to whom it concerns. `endpoint` is the locked state of the worker.
    pub(crate) fn deliver(
        &mut self,
        endpoint: &mut EndpointState,
        now: Instant,
        meta: &DatagramMeta,
        datagram: &mut [u8],
    ) {
        let full = endpoint.accept.len() + endpoint.handshakes >= endpoint.backlog;
        endpoint.core.set_refusing(full);
        match endpoint.core.route(now, meta, datagram, self.response) {
            Routed::Connection(handle) => {
                let index = handle.index();
                if let Some(entry) = self.table.get(index) {
                    entry
                        .shared
                        .lock()
                        .connection
                        .handle_datagram(now, meta, datagram);
                    self.table.mark(index);
                }
            }
            Routed::NewConnection {
                handle,
                mut connection,
            } => {
                endpoint.connections += 1;
                endpoint.handshakes += 1;
                connection.handle_datagram(now, meta, datagram);
                let shared = Shared::new(handle.index(), connection, Arc::clone(self.shared));
                self.table.insert(handle, shared, true);
            }
            Routed::OtherWorker(index) => self.forward(usize::from(index), meta, datagram),
            Routed::Response(transmit) => {
                self.respond(&transmit);
            }
            _ => {}
        }
    }

    /// Leaves the datagram to another worker, or drops it if that one doesn't keep up.
    fn forward(&self, index: usize, meta: &DatagramMeta, datagram: &[u8]) {
        let taken = self
            .workers
            .get(index)
            .is_some_and(|worker| worker.inbox.forward(*meta, datagram));
        let counters = &self.shared.counters;
        count(
            if taken {
                &counters.forwarded
            } else {
                &counters.forwards_dropped
            },
            1,
        );
    }

    /// Sends an answer of the endpoint. Nobody relies on these; a full socket drops them.
    fn respond(&self, transmit: &Transmit) {
        let parcel = Parcel {
            destination: transmit.destination,
            source_ip: transmit.source_ip,
            ecn: transmit.ecn,
            contents: &self.response[..transmit.size.min(self.response.len())],
            segment_size: None,
        };
        let counters = &self.shared.counters;
        let socket = self.sockets.get(transmit.socket);
        match socket.map(|socket| socket.try_send(&parcel)) {
            Some(Ok(())) => count(&counters.datagrams_sent, 1),
            _ => count(&counters.send_errors, 1),
        }
    }
}
