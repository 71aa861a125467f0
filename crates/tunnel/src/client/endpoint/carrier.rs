//! Carries the datagrams of an endpoint in tunnels, one to each address that something is sent to.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::future::Future;
use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use swiftwater_http::h3::DatagramError;
use swiftwater_net::quic::SendDatagramError;
use swiftwater_net::{Carried, DatagramCarrier, Refusal, too_large};
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use super::target_names::TargetNames;
use super::tunnel_flow::{self, Flow, MAX_WAITING};
use crate::client::REFUSED_FOR;
use crate::client::error::{MIN_QUIC_DATAGRAM, OpenError, TunnelError};
use crate::client::tunnel_client::TunnelClient;
use crate::client::udp_tunnel::UdpSender;
use crate::target::Target;

/// Arrivals that wait for the endpoint; then the tunnels wait, which drop what is too much.
const ARRIVALS: usize = 256;

/// Tunnels at once.
const MAX_FLOWS: usize = 1024;

/// Datagrams that are forwarded at once: as many as Linux takes in one system call (`UDP_MAX_SEGMENTS`).
const MAX_RUN: usize = 64;

/// Something that a tunnel has no room for yet.
type Sending = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Carries datagrams through a proxy, in a tunnel of its own for each target.
///
/// A tunnel opens with the first datagram, which does not wait for the proxy's answer, ends after two minutes without
/// datagrams, and opens again when there are more: the server then sees the connection at another port. There are 1024
/// tunnels at most.
pub struct TunnelCarrier {
    client: TunnelClient,
    names: Mutex<TargetNames>,
    flows: Arc<Flows>,
    arrivals: Mutex<mpsc::Receiver<Carried>>,
    /// A datagram that was taken, and waits for room.
    sending: Mutex<Option<Sending>>,
    runtime: Handle,
}

/// The tunnels, by the address that stands for their target.
pub(super) struct Flows {
    table: Mutex<BTreeMap<SocketAddr, Flow>>,
    arrivals: mpsc::Sender<Carried>,
    refused: Notify,
}

impl TunnelCarrier {
    /// Tunnels through the proxy of `client`.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub fn new(client: TunnelClient) -> Self {
        let (sender, arrivals) = mpsc::channel(ARRIVALS);
        Self {
            client,
            names: Mutex::default(),
            flows: Arc::new(Flows {
                table: Mutex::default(),
                arrivals: sender,
                refused: Notify::new(),
            }),
            arrivals: Mutex::new(arrivals),
            sending: Mutex::default(),
            runtime: Handle::current(),
        }
    }

    /// The address that stands for `target` at the endpoint: its own, or for a name one that leads nowhere else.
    pub fn address_of(&self, target: &Target) -> SocketAddr {
        let ip = lock(&self.names).address_of(target.host());
        SocketAddr::new(ip, target.port())
    }

    /// Waits until the tunnel to `remote`, an address of [`TunnelCarrier::address_of`], is refused, or turns out to be too
    /// small for QUIC.
    pub async fn refusal(&self, remote: SocketAddr) -> Arc<OpenError> {
        loop {
            let ticket = self.flows.refused.notified();
            if let Some(failure) = self.flows.lock().get(&remote).and_then(Flow::failure) {
                return failure;
            }
            ticket.await;
        }
    }

    fn open(&self, remote: SocketAddr, first: &[u8]) -> io::Result<()> {
        let target = lock(&self.names).target_of(remote);
        let target = target.ok_or(io::ErrorKind::AddrNotAvailable)?;
        let waiting = VecDeque::from([first.to_vec()]);
        let mut table = self.flows.lock();
        if table.len() >= MAX_FLOWS {
            table.retain(|_, flow| match flow {
                Flow::Refused { at, .. } => at.elapsed() < REFUSED_FOR,
                _ => true,
            });
        }
        if table.len() >= MAX_FLOWS && !table.contains_key(&remote) {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        }
        table.insert(remote, Flow::Opening(waiting));
        drop(table);
        let (client, flows) = (self.client.clone(), Arc::clone(&self.flows));
        self.runtime
            .spawn(tunnel_flow::run(client, flows, target, remote));
        Ok(())
    }

    /// Waits until the datagram that was taken has left.
    fn poll_sending(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut sending = lock(&self.sending);
        if let Some(sending) = sending.as_mut() {
            ready!(sending.as_mut().poll(cx));
        }
        *sending = None;
        Poll::Ready(())
    }

    fn send(
        &self,
        cx: &mut Context<'_>,
        (destination, sender): (SocketAddr, &UdpSender),
        payload: &[u8],
    ) -> Poll<io::Result<()>> {
        let error = match sender.try_send(payload) {
            Ok(()) => return Poll::Ready(Ok(())),
            Err(TunnelError::Datagram(DatagramError::Transport(error))) => error,
            Err(error) => return Poll::Ready(Err(io::Error::other(error))),
        };
        match error {
            SendDatagramError::TooLarge { .. } => {
                if payload.len() <= MIN_QUIC_DATAGRAM {
                    self.flows.is_small(destination);
                }
                Poll::Ready(Err(too_large()))
            }
            SendDatagramError::Blocked => {
                let (sender, payload) = (sender.clone(), payload.to_vec());
                let mut sending: Sending = Box::pin(async move {
                    // What fails now is lost, as UDP may.
                    let _ = sender.send(&payload).await;
                });
                if sending.as_mut().poll(cx).is_pending() {
                    *lock(&self.sending) = Some(sending);
                }
                Poll::Ready(Ok(()))
            }
            error => Poll::Ready(Err(io::Error::other(error))),
        }
    }
}

impl DatagramCarrier for TunnelCarrier {
    fn local_addr(&self) -> SocketAddr {
        (Ipv6Addr::UNSPECIFIED, 0).into()
    }

    fn poll_recv(&self, cx: &mut Context<'_>) -> Poll<io::Result<Carried>> {
        // The endpoint may have nothing more to send, and what was taken is to leave all the same.
        let _ = self.poll_sending(cx);
        match ready!(lock(&self.arrivals).poll_recv(cx)) {
            Some(carried) => Poll::Ready(Ok(carried)),
            // The sender is held by this very carrier.
            None => Poll::Pending,
        }
    }

    fn poll_send(
        &self,
        cx: &mut Context<'_>,
        destination: SocketAddr,
        payload: &[u8],
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_sending(cx));
        let mut table = self.flows.lock();
        let sender = match table.get_mut(&destination) {
            Some(Flow::Open {
                sender, is_used, ..
            }) => {
                *is_used = true;
                sender.clone()
            }
            Some(Flow::Opening(waiting)) => {
                if waiting.len() < MAX_WAITING {
                    waiting.push_back(payload.to_vec());
                }
                return Poll::Ready(Ok(()));
            }
            Some(Flow::Refused { at, .. }) if at.elapsed() < REFUSED_FOR => {
                return Poll::Ready(Err(io::ErrorKind::HostUnreachable.into()));
            }
            Some(Flow::Refused { .. }) | None => {
                drop(table);
                return Poll::Ready(self.open(destination, payload));
            }
        };
        drop(table);
        self.send(cx, (destination, &sender), payload)
    }

    fn max_segments(&self) -> usize {
        if self.client.asks_for_forwarding() {
            MAX_RUN
        } else {
            1
        }
    }

    /// Runs pass beside the connection to the proxy, if they may; in the tunnel each datagram is by itself.
    fn poll_send_run(
        &self,
        _cx: &mut Context<'_>,
        destination: SocketAddr,
        run: &[u8],
        size: usize,
    ) -> Poll<io::Result<()>> {
        let mut table = self.flows.lock();
        let is_sent = match table.get_mut(&destination) {
            Some(Flow::Open {
                sender, is_used, ..
            }) => {
                *is_used = true;
                sender.forwards_run(run, size)
            }
            _ => false,
        };
        let unsupported = || io::ErrorKind::Unsupported.into();
        Poll::Ready(is_sent.then_some(()).ok_or_else(unsupported))
    }

    fn refusal(&self, remote: SocketAddr) -> Refusal<'_> {
        Box::pin(async move { io::Error::other(self.refusal(remote).await) })
    }
}

impl Flows {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, Flow>> {
        lock(&self.table)
    }

    /// Takes the payloads that wait for the tunnel to `remote`.
    pub(super) fn take_waiting(&self, remote: SocketAddr) -> VecDeque<Vec<u8>> {
        match self.lock().get_mut(&remote) {
            Some(Flow::Opening(waiting)) => std::mem::take(waiting),
            _ => VecDeque::new(),
        }
    }

    /// The tunnel to `remote` is open. What has waited goes ahead.
    pub(super) fn open(&self, remote: SocketAddr, sender: UdpSender) {
        let mut table = self.lock();
        if let Some(Flow::Opening(waiting)) = table.get(&remote) {
            for payload in waiting {
                // What does not fit is lost, as UDP may.
                let _ = sender.try_send(payload);
            }
        }
        // What was sent ahead did not fit then either.
        let is_small = sender.max_payload() < MIN_QUIC_DATAGRAM;
        let open = Flow::Open {
            sender,
            is_used: true,
            is_small_since: is_small.then(Instant::now),
        };
        table.insert(remote, open);
    }

    /// A datagram that QUIC can't make smaller did not fit into the tunnel to `remote`.
    fn is_small(&self, remote: SocketAddr) {
        if let Some(Flow::Open { is_small_since, .. }) = self.lock().get_mut(&remote) {
            is_small_since.get_or_insert_with(Instant::now);
        }
        self.refused.notify_waiters();
    }

    /// There is no tunnel to `remote`.
    pub(super) fn refuse(&self, remote: SocketAddr, error: OpenError) {
        let refused = Flow::Refused {
            error: Arc::new(error),
            at: Instant::now(),
        };
        self.lock().insert(remote, refused);
        self.refused.notify_waiters();
    }

    /// The tunnel to `remote` has ended.
    pub(super) fn end(&self, remote: SocketAddr) {
        self.lock().remove(&remote);
    }

    /// Whether something was sent to `remote` since the last call.
    pub(super) fn take_use(&self, remote: SocketAddr) -> bool {
        match self.lock().get_mut(&remote) {
            Some(Flow::Open { is_used, .. }) => std::mem::take(is_used),
            _ => false,
        }
    }

    /// Waits until the endpoint is gone.
    pub(super) async fn endpoint_gone(&self) {
        self.arrivals.closed().await;
    }

    /// Hands something to the endpoint; fails once that is gone.
    pub(super) async fn arrived(
        &self,
        carried: Carried,
    ) -> Result<(), mpsc::error::SendError<Carried>> {
        self.arrivals.send(carried).await
    }
}

impl fmt::Debug for TunnelCarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TunnelCarrier")
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
