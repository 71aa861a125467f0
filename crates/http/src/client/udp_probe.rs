//! Detects an unreachable UDP port, which hosts and firewalls report by ICMP (RFC 1122, section 4.1.3.3).
//!
//! Operating systems report these messages on connected sockets only. The endpoint's socket is
//! unconnected, so a separate connected socket is used.

use std::future::pending;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::UdpSocket;

/// Too short for any QUIC packet, so a server discards it (RFC 9000, section 5.2.2).
const QUESTION: [u8; 1] = [0];

/// Completes when the system reports that `remote` is unreachable from `local`; pending forever
/// otherwise. Sends one datagram.
pub(super) async fn refusal(local: IpAddr, remote: SocketAddr) -> io::Error {
    let local = match (local, remote) {
        (IpAddr::V4(_), SocketAddr::V4(_)) | (IpAddr::V6(_), SocketAddr::V6(_)) => local,
        (_, SocketAddr::V4(_)) => Ipv4Addr::UNSPECIFIED.into(),
        (_, SocketAddr::V6(_)) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // A failure to create the socket is not evidence about the port.
    let Ok(socket) = UdpSocket::bind((local, 0)).await else {
        return pending().await;
    };
    match ask(&socket, remote).await {
        Ok(never) => match never {},
        Err(error) => error,
    }
}

async fn ask(
    socket: &UdpSocket,
    remote: SocketAddr,
) -> Result<std::convert::Infallible, io::Error> {
    socket.connect(remote).await?;
    socket.send(&QUESTION).await?;
    let mut answer = [0; 1];
    loop {
        match socket.recv(&mut answer).await {
            // Any answer shows that the port is in use.
            Ok(_) => {}
            // A datagram longer than the buffer is an error on some systems.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
            Err(error) => return Err(error),
        }
    }
}
