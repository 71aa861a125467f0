//! A local UDP address that leads to one target: each peer of the address gets a tunnel of its own.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::net::UdpSocket;
use tokio::select;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::task::JoinSet;

use super::datagram_relay::{DatagramRelay, ForwardCounters, ForwardStats, WAITING};
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
        let mut peers: HashMap<SocketAddr, mpsc::Sender<Bytes>> = HashMap::new();
        let mut tunnels = JoinSet::new();
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
                    let Some(payload) = self.pass_on(&peers, peer, payload) else {
                        continue;
                    };
                    if peers.len() >= MAX_PEERS {
                        self.counters.on_drop();
                        continue;
                    }
                    let (to_tunnel, payloads) = mpsc::channel(WAITING);
                    // It has room for one.
                    let _ = to_tunnel.try_send(payload);
                    peers.insert(peer, to_tunnel);
                    let tunnel = self.tunnel(peer, payloads);
                    tunnels.spawn(async move {
                        tunnel.run().await;
                        peer
                    });
                }
                Some(ended) = tunnels.join_next() => {
                    // Unless the peer has another one since.
                    if let Ok(peer) = ended
                        && peers.get(&peer).is_some_and(mpsc::Sender::is_closed)
                    {
                        peers.remove(&peer);
                    }
                }
            }
        }
    }

    /// Passes a payload on to the tunnel of its peer; returns it if there is none.
    fn pass_on(
        &self,
        peers: &HashMap<SocketAddr, mpsc::Sender<Bytes>>,
        peer: SocketAddr,
        payload: Bytes,
    ) -> Option<Bytes> {
        let Some(to_tunnel) = peers.get(&peer) else {
            return Some(payload);
        };
        match to_tunnel.try_send(payload) {
            Ok(()) => None,
            Err(TrySendError::Full(_)) => {
                self.counters.on_drop();
                None
            }
            // Its tunnel has ended at this moment.
            Err(TrySendError::Closed(payload)) => Some(payload),
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
