//! Sockets with the buffer sizes of all programs.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use socket2::{Domain, Protocol, Socket, Type};

use crate::SOCKET_BUFFER;

/// A non-blocking socket bound to `address`, with buffers of [`SOCKET_BUFFER`] if `tuned`.
pub fn udp_socket(address: SocketAddr, tuned: bool) -> io::Result<UdpSocket> {
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
    if tuned {
        socket.set_send_buffer_size(SOCKET_BUFFER)?;
        socket.set_recv_buffer_size(SOCKET_BUFFER)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}
