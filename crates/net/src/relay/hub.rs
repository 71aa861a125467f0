//! The sockets of a relay, and the addresses of its clients.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use swiftwater_units::Instant;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::flow::{Flow, Frame, link_ecn};
use super::shaper::{Direction, Shaper};
use super::{Command, RelayConfig, RelayCounts, Started};
use crate::error::BindError;
use crate::receive_errors::ReceiveErrors;
use crate::recv_batch::{DatagramBatch, RecvBatch};
use crate::socket::{Socket, SocketBuffers};

const BUFFERS: SocketBuffers = SocketBuffers {
    send: 2 << 20,
    receive: 4 << 20,
};

/// A client for which nothing has passed for this long makes room for a new one when there is none.
const REPLACEABLE_AFTER: Duration = Duration::from_secs(1);

/// One receive buffer for all sockets of the relay: they are read one at a time.
type SharedBatch = Arc<Mutex<RecvBatch>>;

/// Owns the listening socket and the clients.
pub(super) struct Hub {
    config: RelayConfig,
    shaper: Arc<Shaper<Frame>>,
    /// Links of clients with certain addresses.
    diverted: HashMap<IpAddr, Arc<Shaper<Frame>>>,
    counts: Arc<Mutex<RelayCounts>>,
    listener: Arc<Socket>,
    clients: HashMap<SocketAddr, Client>,
    /// While all places are taken, none can be taken away before this time.
    full_until: Instant,
    batch: SharedBatch,
    /// Set by the first datagram of a client.
    using: watch::Sender<bool>,
}

struct Client {
    flow: Arc<Flow>,
    /// Reads what the server sends to this client.
    reader: JoinHandle<()>,
}

impl Drop for Client {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// Runs a hub in a runtime of this thread's own until it is stopped.
pub(super) fn run(
    config: RelayConfig,
    shaper: &Arc<Shaper<Frame>>,
    counts: Arc<Mutex<RelayCounts>>,
    commands: UnboundedReceiver<Command>,
    started: &Started,
    using: watch::Sender<bool>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build();
    // The caller waits for each of these answers.
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return drop(started.send(Err(error.into()))),
    };
    runtime.block_on(async {
        let listener = match Socket::bind(config.listen, BUFFERS) {
            Ok(listener) => Arc::new(listener),
            Err(error) => return drop(started.send(Err(error.into()))),
        };
        let _ = started.send(Ok(listener.local_addr()));
        let mut hub = Hub {
            config,
            shaper: Arc::clone(shaper),
            diverted: HashMap::new(),
            counts,
            listener,
            clients: HashMap::new(),
            full_until: Instant::ZERO,
            batch: Arc::new(Mutex::new(RecvBatch::new())),
            using,
        };
        hub.run(commands).await;
    });
}

impl Hub {
    fn counts(&self) -> MutexGuard<'_, RelayCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn run(&mut self, mut commands: UnboundedReceiver<Command>) {
        let period = (self.config.client_timeout / 4).max(Duration::from_millis(10));
        let mut tick = tokio::time::interval(period);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut errors = ReceiveErrors::default();
        loop {
            tokio::select! {
                () = errors.receive(|cx| self.poll_listen(cx)) => {}
                command = commands.recv() => match command {
                    Some(Command::Rebind(answer)) => {
                        // The caller may wait no longer.
                        let _ = answer.send(self.rebind());
                    }
                    Some(Command::Divert(from, shaper)) => {
                        self.diverted.insert(from, shaper);
                    }
                    Some(Command::Stop) | None => return,
                },
                _ = tick.tick() => self.discard_idle(),
            }
        }
    }

    /// Takes one batch from clients and puts it on the link up.
    fn poll_listen(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let batch = Arc::clone(&self.batch);
        let mut batch = batch.lock().unwrap_or_else(PoisonError::into_inner);
        ready!(self.listener.poll_recv(cx, &mut batch))?;
        let mut refused = 0;
        let now = self.shaper.clock.now();
        // Nearly always one run: a batch of one client.
        let mut datagrams = batch.datagrams().peekable();
        while let Some((first, _)) = datagrams.peek() {
            let ip = first.remote.ip();
            let shaper = self.shaper_of(ip);
            let run = std::iter::from_fn(|| datagrams.next_if(|(meta, _)| meta.remote.ip() == ip));
            let run = run.filter_map(|(meta, datagram)| {
                let flow = self.flow(meta.remote, meta.local_ip);
                refused += u64::from(flow.is_none());
                let flow = flow?;
                flow.touch(now);
                Some((flow, link_ecn(meta.ecn), datagram))
            });
            shaper.enqueue(Direction::Up, run);
        }
        drop(datagrams);
        if !*self.using.borrow() {
            self.using.send_replace(true);
        }
        let clients = self.clients.len();
        let mut counts = self.counts();
        counts.refused += refused;
        counts.clients = clients;
        Poll::Ready(Ok(()))
    }

    /// The links of clients with this address.
    fn shaper_of(&self, client: IpAddr) -> Arc<Shaper<Frame>> {
        let shaper = self.diverted.get(&client).unwrap_or(&self.shaper);
        Arc::clone(shaper)
    }

    /// The flow of this client, made now if it is new and there is room.
    fn flow(
        &mut self,
        client: SocketAddr,
        local_ip: Option<std::net::IpAddr>,
    ) -> Option<Arc<Flow>> {
        if let Some(known) = self.clients.get(&client) {
            return Some(Arc::clone(&known.flow));
        }
        if self.clients.len() >= self.config.max_clients && !self.replace_idlest() {
            return None;
        }
        let upstream = match self.open_upstream() {
            Ok(upstream) => upstream,
            Err(error) => {
                tracing::warn!(%error, "relay: no socket for a new client");
                return None;
            }
        };
        let flow = Arc::new(Flow::new(
            client,
            local_ip,
            Arc::clone(&self.listener),
            Arc::clone(&upstream),
            self.config.to,
        ));
        let shaper = self.shaper_of(client.ip());
        let reader = self.spawn_reader(Arc::clone(&flow), upstream, shaper);
        let known = Client {
            flow: Arc::clone(&flow),
            reader,
        };
        self.clients.insert(client, known);
        Some(flow)
    }

    /// Removes the client for which nothing has passed for the longest time, if that is long enough; false
    /// if all are active.
    fn replace_idlest(&mut self) -> bool {
        let now = self.shaper.clock.now();
        if now < self.full_until {
            // Not searched for every datagram of a flood.
            return false;
        }
        let idlest = self.clients.iter();
        let idlest = idlest.min_by_key(|(_, client)| client.flow.active());
        let Some((&address, client)) = idlest else {
            return false;
        };
        let replaceable = client.flow.active() + REPLACEABLE_AFTER;
        if replaceable > now {
            self.full_until = replaceable;
            return false;
        }
        self.clients.remove(&address);
        self.counts().replaced += 1;
        true
    }

    fn open_upstream(&self) -> Result<Arc<Socket>, BindError> {
        let any: SocketAddr = match self.config.to {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        Socket::bind(any, BUFFERS).map(Arc::new)
    }

    /// Reads what the server sends to a client, and puts it on the link down.
    fn spawn_reader(
        &self,
        flow: Arc<Flow>,
        upstream: Arc<Socket>,
        shaper: Arc<Shaper<Frame>>,
    ) -> JoinHandle<()> {
        let batch = Arc::clone(&self.batch);
        let clock = self.shaper.clock;
        let server = self.config.to;
        let mut poll_upstream = move |cx: &mut Context<'_>| {
            let mut batch = batch.lock().unwrap_or_else(PoisonError::into_inner);
            ready!(upstream.poll_recv(cx, &mut batch))?;
            let now = clock.now();
            let datagrams = batch
                .datagrams()
                .filter(|(meta, _)| meta.remote == server)
                .map(|(meta, datagram)| {
                    flow.touch(now);
                    (Arc::clone(&flow), link_ecn(meta.ecn), datagram)
                });
            shaper.enqueue(Direction::Down, datagrams);
            Poll::Ready(Ok(()))
        };
        tokio::spawn(async move {
            let mut errors = ReceiveErrors::default();
            loop {
                errors.receive(&mut poll_upstream).await;
            }
        })
    }

    /// Gives every client a new socket towards the server.
    fn rebind(&mut self) -> Result<(), BindError> {
        let known: Vec<SocketAddr> = self.clients.keys().copied().collect();
        for address in known {
            let upstream = self.open_upstream()?;
            let Some(client) = self.clients.get(&address) else {
                continue;
            };
            let flow = Arc::clone(&client.flow);
            flow.set_upstream(Arc::clone(&upstream));
            let shaper = self.shaper_of(address.ip());
            let reader = self.spawn_reader(Arc::clone(&flow), upstream, shaper);
            // The old reader ends with the old entry, and with it the old socket.
            self.clients.insert(address, Client { flow, reader });
        }
        self.counts().rebinds += 1;
        Ok(())
    }

    /// Removes clients for which nothing has passed for too long.
    fn discard_idle(&mut self) {
        let now = self.shaper.clock.now();
        let timeout = self.config.client_timeout;
        self.clients
            .retain(|_, client| now.saturating_since(client.flow.active()) < timeout);
        self.counts().clients = self.clients.len();
    }
}
