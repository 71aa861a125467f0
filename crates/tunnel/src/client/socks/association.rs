//! UDP of one client of SOCKS (RFC 1928, section 7): a socket, and a tunnel for each target.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use tokio::net::UdpSocket;
use tokio::select;

use super::message::{Address, UdpMessage};
use crate::MAX_UDP_PAYLOAD;
use crate::client::datagram_relay::{DatagramRelay, ForwardCounters};
use crate::client::datagram_relays::DatagramRelays;
use crate::client::listener::ListenerLimits;
use crate::client::tunnel_client::TunnelClient;

/// The socket of one client. The first datagram from the client's address determines its port; datagrams from
/// elsewhere, fragments and what is no message are dropped.
#[derive(Debug)]
pub(super) struct Association {
    socket: Arc<UdpSocket>,
    /// The address of the client's TCP connection.
    owner: IpAddr,
}

impl Association {
    /// A socket at `local` for the client at `owner`, and the address that the client is to send to.
    pub(super) async fn bind(local: IpAddr, owner: IpAddr) -> io::Result<(Self, SocketAddr)> {
        // Of a socket for both families, an IPv4 client has an address of IPv6.
        let (local, owner) = (local.to_canonical(), owner.to_canonical());
        let socket = UdpSocket::bind((local, 0)).await?;
        let address = socket.local_addr()?;
        let socket = Arc::new(socket);
        Ok((Self { socket, owner }, address))
    }

    /// Forwards until the future is dropped, or the socket fails.
    pub(super) async fn run(
        &self,
        client: &TunnelClient,
        limits: ListenerLimits,
        counters: &Arc<ForwardCounters>,
    ) -> io::Error {
        let mut tunnels = DatagramRelays::new(limits.udp_targets, Arc::clone(counters));
        let mut from = None;
        let mut buffer = vec![0; MAX_UDP_PAYLOAD];
        loop {
            select! {
                received = self.socket.recv_from(&mut buffer) => {
                    let (len, peer) = match received {
                        Ok(received) => received,
                        // Of an earlier datagram to a client that is gone.
                        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => continue,
                        Err(error) => return error,
                    };
                    let is_owner = peer.ip() == self.owner && from.is_none_or(|known| known == peer);
                    let message = UdpMessage::decode(&buffer[..len]);
                    let message = message.ok().filter(|message| is_owner && message.fragment == 0);
                    let target = message.as_ref().and_then(|message| message.address.target().ok());
                    let (Some(message), Some(target)) = (message, target) else {
                        counters.on_drop();
                        continue;
                    };
                    from = Some(peer);
                    let payload = Bytes::copy_from_slice(message.payload);
                    tunnels.pass_on(&target, payload, |payloads| DatagramRelay {
                        peer,
                        payloads,
                        socket: Arc::clone(&self.socket),
                        wrap: from_target(message.address),
                        client: client.clone(),
                        target: target.clone(),
                        idle_timeout: limits.idle_timeout,
                        counters: Arc::clone(counters),
                    });
                }
                Some(()) = tunnels.next_ended() => {}
            }
        }
    }
}

/// Names the target in its datagrams as the client did.
fn from_target(address: Address) -> impl Fn(Bytes) -> Bytes {
    move |payload| {
        let message = UdpMessage {
            fragment: 0,
            address: address.clone(),
            payload: &payload,
        };
        message.encode().into()
    }
}
