//! Datagrams in transit, in reusable buffers.

use std::net::SocketAddr;

use swiftwater_link::{Ecn, Packet, Payload, flow_key};
use swiftwater_quic::{EcnCodepoint, SocketId};

/// A UDP datagram or TCP segment with its addresses.
#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    pub(crate) source: SocketAddr,
    pub(crate) destination: SocketAddr,
    /// The interface that owned the destination address when the datagram was sent.
    pub(crate) interface: u32,
    /// The client's port of a TCP segment; `None` for UDP. Interfaces have one port only, in their
    /// address.
    pub(crate) tcp_port: Option<u16>,
    pub(crate) note: DatagramNote,
    pub(crate) data: Vec<u8>,
}

/// What a host knows of a datagram beside its content, if it comes from a tunnel on the same machine.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum DatagramNote {
    /// Nothing.
    #[default]
    None,
    /// The number that the tunnel gave it
    /// ([`Connection::handle_tagged_datagram`](swiftwater_quic::Connection::handle_tagged_datagram)).
    Tag(u64),
    /// It is no datagram of the connection but a report about its path
    /// ([`Connection::on_path_report`](swiftwater_quic::Connection::on_path_report)).
    Report,
}

/// A datagram that an application sends from an interface of its host.
#[derive(Clone, Debug)]
pub(crate) struct OutgoingDatagram {
    pub(crate) socket: SocketId,
    pub(crate) destination: SocketAddr,
    pub(crate) ecn: Option<EcnCodepoint>,
    pub(crate) note: DatagramNote,
    pub(crate) data: Vec<u8>,
}

/// What links carry: a pointer, so that passing it on is cheap.
#[derive(Debug)]
pub(crate) struct Parcel(pub(crate) Box<Datagram>);

impl Payload for Parcel {
    fn len(&self) -> usize {
        self.0.data.len()
    }

    fn corrupt(&mut self, at: usize, mask: u8) {
        if let Some(byte) = self.0.data.get_mut(at) {
            *byte ^= mask;
        }
    }

    fn flow(&self) -> u64 {
        let key = flow_key(self.0.source, self.0.destination);
        match self.0.tcp_port {
            None => key,
            Some(port) => key ^ (u64::from(port) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        }
    }

    fn duplicate(&self) -> Self {
        Self(self.0.clone())
    }
}

/// Unused datagram buffers.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    #[allow(clippy::vec_box, reason = "the boxes are reused: links carry pointers")]
    free: Vec<Box<Datagram>>,
}

impl Pool {
    /// A datagram with this content.
    pub(crate) fn parcel(
        &mut self,
        source: SocketAddr,
        destination: SocketAddr,
        interface: u32,
        data: &[u8],
    ) -> Parcel {
        let mut datagram = self.free.pop().unwrap_or_else(|| {
            Box::new(Datagram {
                source,
                destination,
                interface,
                tcp_port: None,
                note: DatagramNote::None,
                data: Vec::with_capacity(data.len().max(1500)),
            })
        });
        datagram.source = source;
        datagram.destination = destination;
        datagram.interface = interface;
        datagram.tcp_port = None;
        datagram.note = DatagramNote::None;
        datagram.data.clear();
        datagram.data.extend_from_slice(data);
        Parcel(datagram)
    }

    /// Returns the buffer of a datagram that arrived or was dropped.
    pub(crate) fn recycle(&mut self, packet: Packet<Parcel>) {
        self.free.push(packet.payload.0);
    }
}

/// The ECN field as used by links.
pub(crate) fn ecn_to_link(ecn: Option<EcnCodepoint>) -> Ecn {
    match ecn {
        None => Ecn::NotEct,
        Some(EcnCodepoint::Ect0) => Ecn::Ect0,
        Some(EcnCodepoint::Ect1) => Ecn::Ect1,
        Some(EcnCodepoint::Ce) => Ecn::Ce,
    }
}

/// The ECN field as used by the stack.
pub(crate) fn ecn_from_link(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotEct => None,
        Ecn::Ect0 => Some(EcnCodepoint::Ect0),
        Ecn::Ect1 => Some(EcnCodepoint::Ect1),
        Ecn::Ce => Some(EcnCodepoint::Ce),
    }
}
