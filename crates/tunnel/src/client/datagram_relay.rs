//! The tunnel for UDP between one local peer and one target, and what is counted of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::net::UdpSocket;
use tokio::select;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use super::error::OpenError;
use super::tunnel_client::TunnelClient;
use crate::target::Target;

/// Datagrams of one peer that wait for the tunnel; more are dropped, as by a full socket.
pub(super) const WAITING: usize = 256;

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
pub(super) struct ForwardCounters {
    opened: AtomicU64,
    failed: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    dropped: AtomicU64,
}

impl ForwardCounters {
    pub(super) fn on_drop(&self) {
        add(&self.dropped);
    }

    pub(super) fn stats(&self) -> ForwardStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ForwardStats {
            opened: get(&self.opened),
            failed: get(&self.failed),
            sent: get(&self.sent),
            received: get(&self.received),
            dropped: get(&self.dropped),
        }
    }
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// The proxy refused a tunnel, or can't be reached.
#[derive(Clone, Copy, Debug)]
pub(super) struct NoTunnel;

/// The tunnel of one peer. `wrap` makes the datagrams for the peer of the payloads of the target.
pub(super) struct DatagramRelay<W> {
    pub(super) peer: SocketAddr,
    pub(super) payloads: mpsc::Receiver<Bytes>,
    pub(super) socket: Arc<UdpSocket>,
    pub(super) wrap: W,
    pub(super) client: TunnelClient,
    pub(super) target: Target,
    pub(super) idle_timeout: Duration,
    pub(super) counters: Arc<ForwardCounters>,
}

impl<W: Fn(Bytes) -> Bytes + Send + Sync> DatagramRelay<W> {
    /// Opens the tunnel and forwards until it ends, is idle for too long, or no more payloads can come. Fails if there is
    /// no tunnel.
    pub(super) async fn run(mut self) -> Result<(), NoTunnel> {
        self.forward().await.map_err(|error| {
            add(&self.counters.failed);
            tracing::warn!(target = %self.target, %error, "no tunnel");
            NoTunnel
        })
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
                    let datagram = (self.wrap)(payload);
                    if self.socket.send_to(&datagram, self.peer).await.is_err() {
                        add(&self.counters.dropped);
                    }
                }
                () = sleep_until(last + self.idle_timeout) => return Ok(()),
            }
        }
    }
}
