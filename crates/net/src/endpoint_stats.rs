//! What an endpoint counts.

use std::ops::AddAssign;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::endpoint_shared::EndpointShared;

/// What an endpoint has done so far, and has now.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct EndpointStats {
    /// Connections that are not gone, the closing ones included.
    pub connections: usize,
    /// Incoming connections that wait for [`Endpoint::accept`](crate::Endpoint::accept).
    pub waiting: usize,
    /// First packets of clients that were refused because too many waited. A client may send more
    /// than one.
    pub overflows: u64,
    /// Datagrams received.
    pub datagrams_received: u64,
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// System calls that sent them; fewer thanks to segmentation offload.
    pub sends: u64,
    /// Errors while receiving, none of which ends the endpoint.
    pub receive_errors: u64,
    /// Datagrams or batches that the system refused to send; they count as lost.
    pub send_errors: u64,
    /// Times that the endpoint's task ran.
    pub wakeups: u64,
    /// Packets received with virtual connection IDs, which are of no connection
    /// ([`Connection::issue_virtual_id`](crate::Connection::issue_virtual_id)).
    pub virtual_packets: u64,
    /// Datagrams received for a connection of another worker and handed to it: the client's address
    /// changed since the connection began.
    pub handed_over: u64,
    /// Datagrams for other workers that were dropped because those didn't keep up; they count as
    /// lost.
    pub handovers_dropped: u64,
    /// Incoming connections that were over before their handshake was complete.
    pub handshakes_failed: u64,
    /// Routing: Retry, Version Negotiation, resets, refusals, drops.
    pub routing: swiftwater_quic::EndpointStats,
}

impl EndpointStats {
    /// Those of one worker.
    pub(crate) fn of(worker: &EndpointShared) -> Self {
        let counters = &worker.counters;
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let state = worker.lock();
        let routing = state.core.stats();
        Self {
            connections: state.connections,
            waiting: state.accept.len(),
            overflows: routing.turned_away,
            datagrams_received: get(&counters.datagrams_received),
            datagrams_sent: get(&counters.datagrams_sent),
            sends: get(&counters.sends),
            receive_errors: get(&counters.receive_errors),
            send_errors: get(&counters.send_errors),
            wakeups: get(&counters.wakeups),
            virtual_packets: get(&counters.virtual_packets),
            handed_over: get(&counters.handed_over),
            handovers_dropped: get(&counters.handovers_dropped),
            handshakes_failed: get(&counters.handshakes_failed),
            routing,
        }
    }
}

impl AddAssign for EndpointStats {
    /// Adds those of another worker.
    fn add_assign(&mut self, other: Self) {
        self.connections += other.connections;
        self.waiting += other.waiting;
        self.overflows += other.overflows;
        self.datagrams_received += other.datagrams_received;
        self.datagrams_sent += other.datagrams_sent;
        self.sends += other.sends;
        self.receive_errors += other.receive_errors;
        self.send_errors += other.send_errors;
        self.wakeups += other.wakeups;
        self.virtual_packets += other.virtual_packets;
        self.handed_over += other.handed_over;
        self.handovers_dropped += other.handovers_dropped;
        self.handshakes_failed += other.handshakes_failed;
        self.routing += other.routing;
    }
}
