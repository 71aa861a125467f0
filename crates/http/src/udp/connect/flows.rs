//! The requests of one connection that have HTTP datagrams, under the lock of the engine.

use std::collections::BTreeMap;
use std::task::Waker;

use bytes::Bytes;
use swiftwater_net::quic::DatagramFate;
use swiftwater_units::StreamId;

use crate::udp::datagram_buffer::DatagramBuffer;

/// Bytes of datagrams of one request that wait to be read, each counted as its payload and 64 bytes.
const MAX_WAITING: usize = 256 << 10;

/// The datagrams of one request.
#[derive(Debug, Default)]
pub(super) struct Flow {
    pub(super) buffer: DatagramBuffer,
    /// The request was reset, or its connection has ended.
    pub(super) is_over: bool,
}

/// The datagrams of all requests.
#[derive(Debug, Default)]
pub(in crate::udp) struct DatagramFlows {
    flows: BTreeMap<StreamId, Flow>,
    /// Tasks that wait for room in the datagram queue.
    pub(super) writers: Vec<Waker>,
}

impl DatagramFlows {
    /// A request that may have datagrams was received or sent.
    pub(in crate::udp) fn begin(&mut self, id: StreamId) {
        self.flows.entry(id).or_default();
    }

    /// The application has dropped the handle of a request's datagrams.
    pub(in crate::udp) fn discard(&mut self, id: StreamId) {
        self.flows.remove(&id);
    }

    pub(super) fn flow(&mut self, id: StreamId) -> Option<&mut Flow> {
        self.flows.get_mut(&id)
    }

    /// A datagram was received.
    pub(in crate::udp) fn on_datagram(
        &mut self,
        id: StreamId,
        payload: Bytes,
        wakers: &mut Vec<Waker>,
    ) {
        if let Some(flow) = self.flows.get_mut(&id) {
            flow.buffer.push(payload, MAX_WAITING, wakers);
        }
    }

    /// The fate of a datagram that was sent with a key is known.
    pub(in crate::udp) fn on_datagram_fate(
        &mut self,
        id: StreamId,
        key: u64,
        fate: DatagramFate,
        wakers: &mut Vec<Waker>,
    ) {
        if let Some(flow) = self.flows.get_mut(&id) {
            flow.buffer.push_fate(key, fate, wakers);
        }
    }

    /// The datagram queue has room again.
    pub(in crate::udp) fn on_datagrams_unblocked(&mut self, wakers: &mut Vec<Waker>) {
        wakers.append(&mut self.writers);
    }

    /// A request was reset.
    pub(in crate::udp) fn on_reset(&mut self, id: StreamId, wakers: &mut Vec<Waker>) {
        if let Some(flow) = self.flows.get_mut(&id) {
            flow.is_over = true;
            flow.buffer.finish(wakers);
            wakers.append(&mut self.writers);
        }
    }

    /// The connection has ended.
    pub(in crate::udp) fn on_closed(&mut self, wakers: &mut Vec<Waker>) {
        for flow in self.flows.values_mut() {
            flow.is_over = true;
            flow.buffer.finish(wakers);
        }
        wakers.append(&mut self.writers);
    }
}
