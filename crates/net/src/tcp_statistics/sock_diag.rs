//! Requests to Linux for one TCP connection over netlink (RFC 3549, `sock_diag(7)`), and the replies.
//!
//! The kernel replies within the system call that sends the request, so nothing here waits.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use netlink_packet_core::{
    NLM_F_REQUEST, NetlinkBuffer, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_sock_diag::inet::nlas::{Nla, TcpInfo};
use netlink_packet_sock_diag::inet::{
    ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags,
};
use netlink_packet_sock_diag::{AF_INET, AF_INET6, IPPROTO_TCP, SockDiagMessage};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use netlink_sys::{Socket, SocketAddr as NetlinkAddress};
use swiftwater_units::Bandwidth;

use super::TcpStatistics;

#[cfg(test)]
mod tests;

/// Longest reply that is read, bytes; they have about 500.
const REPLY_LIMIT: usize = 4096;

/// Messages that are read in search of a reply. Replies to earlier requests are only left over if reading
/// them failed.
const MESSAGE_LIMIT: usize = 16;

/// `INET_DIAG_NOCOOKIE`: the addresses alone identify the connection.
const NO_COOKIE: [u8; 8] = [0xff; 8];

/// A socket of `NETLINK_SOCK_DIAG`.
#[derive(Debug)]
pub(super) struct SockDiag {
    socket: Socket,
    sequence_number: u32,
    reply: Vec<u8>,
}

impl SockDiag {
    pub(super) fn open() -> io::Result<Self> {
        let socket = Socket::new(NETLINK_SOCK_DIAG)?;
        // Only the kernel, port 0, can send to a socket that is connected to it.
        socket.connect(&NetlinkAddress::new(0, 0))?;
        socket.set_non_blocking(true)?;
        Ok(Self {
            socket,
            sequence_number: 0,
            reply: vec![0; REPLY_LIMIT],
        })
    }

    pub(super) fn inspect(
        &mut self,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> io::Result<Option<TcpStatistics>> {
        let Some(connection) = Connection::between(local, remote) else {
            return Ok(None);
        };
        self.sequence_number = self.sequence_number.wrapping_add(1);
        self.socket
            .send(&connection.request(self.sequence_number), 0)?;
        for _ in 0..MESSAGE_LIMIT {
            let mut rest = &mut self.reply[..];
            let (length, from) = self.socket.recv_from(&mut rest, 0)?;
            let message = self.reply.get(..length).unwrap_or_default();
            if from.port_number() != 0 {
                continue;
            }
            match connection.read(message, self.sequence_number) {
                Reply::Other => {}
                Reply::Statistics(statistics) => return Ok(statistics),
                Reply::Error(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::InvalidData.into())
    }
}

/// What a message says about a connection.
#[derive(Debug)]
enum Reply {
    /// Nothing: it is no reply to the request.
    Other,
    /// `None`: there is no such connection, or nothing is known about it.
    Statistics(Option<TcpStatistics>),
    Error(io::Error),
}

/// The addresses of a connection, both of one family.
#[derive(Clone, Copy, Debug)]
struct Connection {
    local: (IpAddr, u16),
    remote: (IpAddr, u16),
    interface: u32,
}

impl Connection {
    /// `None` if the families differ.
    fn between(local: SocketAddr, remote: SocketAddr) -> Option<Self> {
        let interface = match local {
            SocketAddr::V4(_) => 0,
            SocketAddr::V6(address) => address.scope_id(),
        };
        let canonical = |address: SocketAddr| (address.ip().to_canonical(), address.port());
        let (local, remote) = (canonical(local), canonical(remote));
        (local.0.is_ipv4() == remote.0.is_ipv4()).then_some(Self {
            local,
            remote,
            interface,
        })
    }

    fn request(self, sequence_number: u32) -> Vec<u8> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST;
        header.sequence_number = sequence_number;
        let request = InetRequest {
            family: if self.local.0.is_ipv4() {
                AF_INET
            } else {
                AF_INET6
            },
            protocol: IPPROTO_TCP,
            extensions: ExtensionFlags::INFO,
            states: StateFlags::all(),
            socket_id: SocketId {
                source_port: self.local.1,
                destination_port: self.remote.1,
                source_address: self.local.0,
                destination_address: self.remote.0,
                interface_id: self.interface,
                cookie: NO_COOKIE,
            },
        };
        let payload = SockDiagMessage::InetRequest(request).into();
        let mut message = NetlinkMessage::new(header, payload);
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        bytes
    }

    /// Reads a message from the kernel.
    fn read(self, message: &[u8], sequence_number: u32) -> Reply {
        let header = NetlinkBuffer::new_checked(message);
        if !header.is_ok_and(|it| it.sequence_number() == sequence_number) {
            return Reply::Other;
        }
        // Older kernels describe connections with fewer fields, which can't be read.
        let Ok(message) = NetlinkMessage::<SockDiagMessage>::deserialize(message) else {
            return Reply::Statistics(None);
        };
        match message.payload {
            NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(response)) => {
                let known = self.is_of(&response).then(|| statistics(&response));
                Reply::Statistics(known.flatten())
            }
            NetlinkPayload::Error(error) => match error.to_io() {
                error if error.kind() == io::ErrorKind::NotFound => Reply::Statistics(None),
                error => Reply::Error(error),
            },
            _ => Reply::Other,
        }
    }

    /// Without such a connection, the kernel describes a listener at the local address.
    fn is_of(self, response: &InetResponse) -> bool {
        let id = &response.header.socket_id;
        (id.source_address.to_canonical(), id.source_port) == self.local
            && (id.destination_address.to_canonical(), id.destination_port) == self.remote
    }
}

/// `None` for connections that are closed but for the wait of RFC 9293, section 3.6.1 (TIME-WAIT).
fn statistics(response: &InetResponse) -> Option<TcpStatistics> {
    response.nlas.iter().find_map(|attribute| match attribute {
        Nla::TcpInfo(info) => Some(TcpStatistics::from(info)),
        _ => None,
    })
}

impl From<&TcpInfo> for TcpStatistics {
    fn from(info: &TcpInfo) -> Self {
        Self {
            smoothed_rtt: (info.rtt > 0).then(|| Duration::from_micros(info.rtt.into())),
            bytes_received: info.bytes_received,
            data_segments_received: info.data_segs_in,
            out_of_order_segments_received: info.rcv_ooopack,
            bytes_sent: info.bytes_sent,
            bytes_retransmitted: info.bytes_retrans,
            delivery_rate: (info.delivery_rate > 0)
                .then(|| Bandwidth::from_bytes_per_sec(info.delivery_rate)),
        }
    }
}
