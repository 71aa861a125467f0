//! A local UDP address that leads to one target: each peer of the address gets a tunnel of its own.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::net::UdpSocket;
use tokio::select;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::error::OpenError;
use super::tunnel_client::TunnelClient;
use crate::MAX_UDP_PAYLOAD;
use crate::target::Target;

/// Datagrams of one peer that wait for the tunnel; more are dropped, as by a full socket.
const WAITING: usize = 256;

/// Peers at once; datagrams of further ones are dropped.
const MAX_PEERS: usize = 1024;

/// A forward from a local address.
#[derive(Debug)]
pub struct LocalForward {
    socket: Arc<UdpSocket>,
    client: TunnelClient,
    target: Target,
    idle_timeout: Duration,
    counters: Arc<Counters>,
}

/// What a forward has done.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct ForwardStats {
    /// Tunnels opened.
    pub opened: u64,
    /// Tunnels that the proxy refused, or that could not be asked for.
    pub failed: u64,
    /// Datagrams to the target, and from it.
    pub sent: u64,
    /// Datagrams from the target.
    pub received: u64,
    /// Datagrams that did not fit, or came faster than the tunnel carries them.
    pub dropped: u64,
}

#[derive(Debug, Default)]
struct Counters {
    opened: AtomicU64,
    failed: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    dropped: AtomicU64,
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
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ForwardStats {
            opened: get(&self.counters.opened),
            failed: get(&self.counters.failed),
            sent: get(&self.counters.sent),
            received: get(&self.counters.received),
            dropped: get(&self.counters.dropped),
        }
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
                        add(&self.counters.dropped);
                        continue;
                    }
                    let (to_tunnel, payloads) = mpsc::channel(WAITING);
                    // It has room for one.
                    let _ = to_tunnel.try_send(payload);
                    peers.insert(peer, to_tunnel);
                    tunnels.spawn(self.tunnel(peer, payloads).run());
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
                add(&self.counters.dropped);
                None
            }
            // Its tunnel has ended at this moment.
            Err(TrySendError::Closed(payload)) => Some(payload),
        }
    }

    fn tunnel(&self, peer: SocketAddr, payloads: mpsc::Receiver<Bytes>) -> PeerTunnel {
        PeerTunnel {
            peer,
            payloads,
            socket: Arc::clone(&self.socket),
            client: self.client.clone(),
            target: self.target.clone(),
            idle_timeout: self.idle_timeout,
            counters: Arc::clone(&self.counters),
        }
    }
}

/// The tunnel of one peer.
struct PeerTunnel {
    peer: SocketAddr,
    payloads: mpsc::Receiver<Bytes>,
    socket: Arc<UdpSocket>,
    client: TunnelClient,
    target: Target,
    idle_timeout: Duration,
    counters: Arc<Counters>,
}

impl PeerTunnel {
    async fn run(mut self) -> SocketAddr {
        if let Err(error) = self.forward().await {
            add(&self.counters.failed);
            tracing::warn!(target = %self.target, %error, "no tunnel");
        }
        self.peer
    }

    async fn forward(&mut self) -> Result<(), OpenError> {
        let opening = self.client.begin(&self.target).await?;
        // What is known now goes ahead of the answer.
        while let Ok(payload) = self.payloads.try_recv() {
            add(&self.counters.sent);
            opening.send(&payload);
        }
        let mut tunnel = opening.opened().await?;
        add(&self.counters.opened);
        let sender = tunnel.sender();
        let mut last = Instant::now();
        loop {
            select! {
                payload = self.payloads.recv() => {
                    let Some(payload) = payload else { return Ok(()) };
                    last = Instant::now();
                    let sent = sender.send(&payload).await;
                    add(if sent.is_ok() { &self.counters.sent } else { &self.counters.dropped });
                }
                received = tunnel.recv() => {
                    let payload = match received {
                        Ok(payload) => payload,
                        Err(end) => {
                            tracing::debug!(target = %self.target, %end, "tunnel ended");
                            return Ok(());
                        }
                    };
                    last = Instant::now();
                    add(&self.counters.received);
                    if self.socket.send_to(&payload, self.peer).await.is_err() {
                        add(&self.counters.dropped);
                    }
                }
                () = sleep_until(last + self.idle_timeout) => return Ok(()),
            }
        }
    }
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
