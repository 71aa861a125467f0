//! Whether nobody listens at a UDP port, which hosts and firewalls say by ICMP (RFC 1122, section 4.1.3.3).
//!
//! Systems report these answers on connected sockets only. The endpoint's socket serves many peers and is
//! connected to none, so a socket of its own asks.

use std::future::pending;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::UdpSocket;

/// Too short for any QUIC packet, so a server drops it (RFC 9000, section 5.2.2).
const QUESTION: [u8; 1] = [0];

/// Waits until the system reports that `remote` can't be reached from `local`; for ever if it
/// doesn't. One datagram is sent.
pub(super) async fn refusal(local: IpAddr, remote: SocketAddr) -> io::Error {
    let local = match (local, remote) {
        (IpAddr::V4(_), SocketAddr::V4(_)) | (IpAddr::V6(_), SocketAddr::V6(_)) => local,
        (_, SocketAddr::V4(_)) => Ipv4Addr::UNSPECIFIED.into(),
        (_, SocketAddr::V6(_)) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // A failure to make a socket says nothing of the port.
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
            // Whatever it is, somebody is there.
            Ok(_) => {}
            // Longer than the buffer, on some systems an error.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
            Err(error) => return Err(error),
        }
    }
}
