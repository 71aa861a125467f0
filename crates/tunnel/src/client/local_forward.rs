//! A local UDP address that leads to one target: each peer of the address gets a tunnel of its own.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::net::UdpSocket;
use tokio::select;
use tokio::sync::mpsc;

use super::datagram_relay::{DatagramRelay, ForwardCounters, ForwardStats};
use super::datagram_relays::DatagramRelays;
use super::tunnel_client::TunnelClient;
use crate::MAX_UDP_PAYLOAD;
use crate::target::Target;

/// Peers at once; datagrams of further ones are dropped.
const MAX_PEERS: usize = 1024;

/// A forward from a local address.
#[derive(Debug)]
pub struct LocalForward {
    socket: Arc<UdpSocket>,
    client: TunnelClient,
    target: Target,
    idle_timeout: Duration,
    counters: Arc<ForwardCounters>,
}

impl LocalForward {
    /// Binds `local`, whose peers' datagrams are to go to `target`. A tunnel without datagrams ends after
    /// `idle_timeout`.
    pub async fn bind(
        local: SocketAddr,
        client: TunnelClient,
        target: Target,
        idle_timeout: Duration,
    ) -> io::Result<Self> {
        Ok(Self {
            socket: Arc::new(UdpSocket::bind(local).await?),
            client,
            target,
            idle_timeout,
            counters: Arc::default(),
        })
    }

    /// The address that it is bound to.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Counters so far.
    pub fn stats(&self) -> ForwardStats {
        self.counters.stats()
    }

    /// Forwards until the future is dropped, or the socket fails.
    pub async fn run(&self) -> io::Error {
        let mut tunnels = DatagramRelays::new(MAX_PEERS, Arc::clone(&self.counters));
        let mut buffer = vec![0; MAX_UDP_PAYLOAD];
        loop {
            select! {
                received = self.socket.recv_from(&mut buffer) => {
                    let (len, peer) = match received {
                        Ok(received) => received,
                        // Of an earlier datagram to a peer that is gone.
                        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => continue,
                        Err(error) => return error,
                    };
                    let payload = Bytes::copy_from_slice(&buffer[..len]);
                    tunnels.pass_on(&peer, payload, |payloads| self.tunnel(peer, payloads));
                }
                Some(()) = tunnels.next_ended() => {}
            }
        }
    }

    fn tunnel(
        &self,
        peer: SocketAddr,
        payloads: mpsc::Receiver<Bytes>,
    ) -> DatagramRelay<impl Fn(Bytes) -> Bytes + use<>> {
        DatagramRelay {
            peer,
            payloads,
            socket: Arc::clone(&self.socket),
            wrap: |payload| payload,
            client: self.client.clone(),
            target: self.target.clone(),
            idle_timeout: self.idle_timeout,
            counters: Arc::clone(&self.counters),
        }
    }
}
