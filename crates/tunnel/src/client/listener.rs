//! What local TCP addresses have in common: the socket, limits, counters, and the bytes between a local connection and
//! its tunnel.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::counted::Counted;
use super::datagram_relay::ForwardStats;
use super::tcp_tunnel::TcpTunnel;

/// Wait after an error of the socket that may pass, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// Limits of a local address for TCP.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ListenerLimits {
    /// Connections at once; further ones are closed at once. Default 256.
    pub connections: usize,
    /// How long a connection may take to say where it leads. Default 10 s.
    pub handshake: Duration,
    /// Targets of one UDP association at once; datagrams to further ones are dropped. Default 64.
    pub udp_targets: usize,
    /// How long a tunnel for UDP lasts without a datagram. Default two minutes.
    pub idle_timeout: Duration,
}

impl Default for ListenerLimits {
    fn default() -> Self {
        Self {
            connections: 256,
            handshake: Duration::from_secs(10),
            udp_targets: 64,
            idle_timeout: Duration::from_secs(120),
        }
    }
}

/// What a local address for TCP has done.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct ListenerStats {
    /// Connections beyond the limit, and those that did not say in time, or intelligibly, where they lead.
    pub rejected: u64,
    /// Tunnels for TCP opened.
    pub opened: u64,
    /// Tunnels for TCP that the proxy refused, or that could not be asked for.
    pub failed: u64,
    /// Bytes to targets over TCP.
    pub bytes_sent: u64,
    /// Bytes from targets over TCP.
    pub bytes_received: u64,
    /// Tunnels for UDP, and their datagrams.
    pub udp: ForwardStats,
}

#[derive(Debug, Default)]
pub(super) struct ListenerCounters {
    pub(super) rejected: AtomicU64,
    pub(super) opened: AtomicU64,
    pub(super) failed: AtomicU64,
    bytes_sent: AtomicU64,
    bytes_received: AtomicU64,
}

impl ListenerCounters {
    pub(super) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn stats(&self, udp: ForwardStats) -> ListenerStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ListenerStats {
            rejected: get(&self.rejected),
            opened: get(&self.opened),
            failed: get(&self.failed),
            bytes_sent: get(&self.bytes_sent),
            bytes_received: get(&self.bytes_received),
            udp,
        }
    }

    /// Forwards between a local connection, of which `early` was read already, and its tunnel until both directions
    /// have ended. After a failure the local program sees a reset, so that it does not take what it has for all.
    pub(super) async fn forward(&self, local: TcpStream, early: &[u8], mut tunnel: TcpTunnel) {
        Self::add(&self.opened);
        let sent = &self.bytes_sent;
        sent.fetch_add(early.len() as u64, Ordering::Relaxed);
        let mut local = Counted::new(local, sent, &self.bytes_received);
        let forwarded = async {
            tunnel.write_all(early).await?;
            copy_bidirectional(&mut local, &mut tunnel).await
        };
        if let Err(error) = forwarded.await {
            tracing::debug!(%error, "a tunnel for TCP broke off");
            reset(&local.into_inner());
        }
    }
}

/// Makes the end of a connection a reset.
pub(super) fn reset(stream: &TcpStream) {
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

/// A local TCP address.
#[derive(Debug)]
pub(super) struct Listener {
    socket: TcpListener,
    room: Arc<Semaphore>,
}

impl Listener {
    pub(super) async fn bind(local: SocketAddr, limits: ListenerLimits) -> io::Result<Self> {
        Ok(Self {
            socket: TcpListener::bind(local).await?,
            room: Arc::new(Semaphore::new(limits.connections)),
        })
    }

    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Serves each connection with `serve`, all of which end when the future is dropped, or the socket fails.
    pub(super) async fn run<F>(
        &self,
        counters: &ListenerCounters,
        serve: impl Fn(TcpStream, SocketAddr) -> F,
    ) -> io::Error
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.socket.accept() => match accepted {
                    Ok((stream, peer)) => {
                        let Some(place) = self.place() else {
                            ListenerCounters::add(&counters.rejected);
                            continue;
                        };
                        // Not needed for it to work.
                        let _ = stream.set_nodelay(true);
                        let served = serve(stream, peer);
                        connections.spawn(async move {
                            served.await;
                            drop(place);
                        });
                    }
                    Err(error) if is_passing(&error) => sleep(PAUSE).await,
                    Err(error) => return error,
                },
                Some(_) = connections.join_next() => {}
            }
        }
    }

    fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.room).try_acquire_owned().ok()
    }
}

/// Whether the socket is still of use after `error`: it is of one connection, or the machine is short of something.
fn is_passing(error: &io::Error) -> bool {
    !matches!(
        error.kind(),
        io::ErrorKind::InvalidInput | io::ErrorKind::NotConnected | io::ErrorKind::Unsupported
    )
}
