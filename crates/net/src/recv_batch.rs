//! Buffers of received datagrams, one batch of a socket or a carrier.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;

use bytes::Bytes;
use quinn_udp::{BATCH_SIZE, RecvMeta};
use swiftwater_quic::{DatagramMeta, EcnCodepoint, SocketId};

/// Room for one GRO batch; the kernel makes none larger than an IP packet can be.
const RECV_SLOT: usize = 65_535;

/// Received datagrams that are handled together.
pub(crate) trait DatagramBatch {
    /// The datagrams, in the order of their arrival, each with where it came from; the same ones at each call.
    fn datagrams(&mut self) -> impl Iterator<Item = (DatagramMeta, &mut [u8])>;
}

/// Buffers for one batch of received datagrams, allocated once. The default has no room: it is what is left
/// in the place of one that is in use.
#[derive(Default)]
pub(crate) struct RecvBatch {
    data: Box<[u8]>,
    metas: Box<[RecvMeta]>,
    filled: usize,
    /// What a carrier says of its datagrams, one each; of the system's sockets there is nothing.
    tags: Vec<Option<u64>>,
    /// What a carrier reports, and of the way from where.
    reports: Vec<(SocketAddr, Bytes)>,
    /// Where they were received.
    socket: SocketId,
}

impl RecvBatch {
    pub(crate) fn new() -> Self {
        Self {
            data: vec![0; RECV_SLOT * BATCH_SIZE].into_boxed_slice(),
            metas: vec![RecvMeta::default(); BATCH_SIZE].into_boxed_slice(),
            filled: 0,
            tags: Vec::new(),
            reports: Vec::new(),
            socket: SocketId::default(),
        }
    }

    /// Discards what is there.
    pub(crate) fn clear(&mut self) {
        self.filled = 0;
        self.tags.clear();
        self.reports.clear();
    }

    /// True if nothing is there.
    pub(crate) fn is_empty(&self) -> bool {
        self.filled == 0 && self.reports.is_empty()
    }

    /// True if there is no room for another message.
    pub(crate) fn is_full(&self) -> bool {
        self.filled.max(self.reports.len()) >= BATCH_SIZE
    }

    /// Adds a datagram of a carrier; the batch is not full.
    pub(crate) fn push(&mut self, remote: SocketAddr, tag: Option<u64>, payload: &[u8]) {
        let slot = self.data.chunks_exact_mut(RECV_SLOT).nth(self.filled);
        let (Some(slot), Some(meta)) = (slot, self.metas.get_mut(self.filled)) else {
            return;
        };
        let len = payload.len().min(slot.len());
        slot[..len].copy_from_slice(&payload[..len]);
        *meta = RecvMeta::default();
        (meta.addr, meta.len, meta.stride) = (remote, len, len);
        self.tags.push(tag);
        self.filled += 1;
    }

    /// Adds a report of a carrier.
    pub(crate) fn push_report(&mut self, remote: SocketAddr, report: Bytes) {
        self.reports.push((remote, report));
    }

    /// Exchanges what carriers say of the datagrams, one each, and what they report, for the empty `tags` and `reports`.
    pub(crate) fn swap_notes(
        &mut self,
        tags: &mut Vec<Option<u64>>,
        reports: &mut Vec<(SocketAddr, Bytes)>,
    ) {
        std::mem::swap(&mut self.tags, tags);
        std::mem::swap(&mut self.reports, reports);
    }

    /// Notes the socket that the datagrams were received on.
    pub(crate) fn set_socket(&mut self, socket: SocketId) {
        self.socket = socket;
    }

    /// Lets `receive` fill the batch, and notes how many messages it brought.
    pub(crate) fn fill(
        &mut self,
        receive: impl FnOnce(&mut [IoSliceMut<'_>], &mut [RecvMeta]) -> io::Result<usize>,
    ) -> io::Result<()> {
        let mut slots = self.data.chunks_exact_mut(RECV_SLOT);
        let mut slots: [IoSliceMut<'_>; BATCH_SIZE] = std::array::from_fn(|_| {
            IoSliceMut::new(slots.next().expect("the buffer has a slot per message"))
        });
        self.filled = receive(&mut slots, &mut self.metas)?;
        Ok(())
    }
}

impl DatagramBatch for RecvBatch {
    fn datagrams(&mut self) -> impl Iterator<Item = (DatagramMeta, &mut [u8])> {
        let socket = self.socket;
        let slots = self.data.chunks_exact_mut(RECV_SLOT);
        self.metas[..self.filled]
            .iter()
            .zip(slots)
            .flat_map(move |(meta, slot)| {
                let about = DatagramMeta {
                    remote: canonical(meta.addr),
                    local_ip: meta.dst_ip.map(|ip| ip.to_canonical()),
                    socket,
                    ecn: meta.ecn.map(from_udp),
                };
                let len = meta.len.min(slot.len());
                let stride = meta.stride.max(1);
                slot[..len]
                    .chunks_mut(stride)
                    .map(move |datagram| (about, datagram))
            })
    }
}

/// IPv4 addresses as such, not in their mapped form.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(v4) => (v4, v6.port()).into(),
            None => address,
        },
        SocketAddr::V4(_) => address,
    }
}

fn from_udp(ecn: quinn_udp::EcnCodepoint) -> EcnCodepoint {
    match ecn {
        quinn_udp::EcnCodepoint::Ect0 => EcnCodepoint::Ect0,
        quinn_udp::EcnCodepoint::Ect1 => EcnCodepoint::Ect1,
        quinn_udp::EcnCodepoint::Ce => EcnCodepoint::Ce,
    }
}
