//! The workers of an endpoint: how they start, and operations on all of them.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use swiftwater_quic::{Endpoint as Core, PreferredAddresses, SocketId, Worker as Slot};
use tokio::runtime;

use crate::carrier::DatagramCarrier;
use crate::clock::Clock;
use crate::connection::Connection;
use crate::endpoint_options::EndpointOptions;
use crate::endpoint_shared::{EndpointShared, EndpointSignals};
use crate::error::BindError;
use crate::faults::SocketFaults;
use crate::socket::{Bound, CAN_SHARE, Sharing, Socket, SocketBuffers};
use crate::worker::Worker;
use crate::worker_runtime::{OwnRuntime, WorkerRuntime};
use crate::worker_socket::WorkerSocket;

/// All workers of an endpoint, one at least.
pub(crate) struct WorkerPool {
    workers: Arc<[Arc<EndpointShared>]>,
    buffers: SocketBuffers,
    faults: Option<Arc<dyn SocketFaults>>,
    /// Held while sockets are added, so that they have the same number with all workers.
    adding: Mutex<()>,
    /// Which worker opens the next connection.
    opener: AtomicUsize,
    /// Which worker's accepted connections come first the next time.
    acceptor: AtomicUsize,
    /// Handles of the application.
    pub(crate) handles: AtomicUsize,
}

/// What there is to accept.
pub(crate) enum Accepted {
    Connection(Connection),
    /// Nothing yet.
    None,
    /// Nothing any more.
    Never,
}

impl WorkerPool {
    /// Binds a socket for each worker and starts them.
    pub(crate) fn start(address: SocketAddr, options: &EndpointOptions) -> Result<Self, BindError> {
        let here = runtime::Handle::try_current()
            .map_err(|error| BindError::NoRuntime(error.to_string()))?;
        let count = worker_count(options)?;
        let mut runtimes = Vec::with_capacity(usize::from(count));
        let (preferred, extra) = bind_preferred(options, count)?;
        let mut sockets: Vec<WorkerSocket> = Vec::with_capacity(usize::from(count));
        for _ in 0..count {
            let runtime = if count == 1 {
                WorkerRuntime::Here(here.clone())
            } else {
                WorkerRuntime::Thread(OwnRuntime::new()?)
            };
            let _context = runtime.enter();
            let first = sockets.first().map(WorkerSocket::local_addr);
            let socket = bind(address, options, count, first)?;
            sockets.push(WorkerSocket::Udp(Arc::new(socket)));
            runtimes.push(runtime);
        }
        Self::run(options, preferred, extra, runtimes, sockets)
    }

    /// Starts a worker whose datagrams `carrier` carries.
    pub(crate) fn over(
        carrier: Arc<dyn DatagramCarrier>,
        options: &EndpointOptions,
    ) -> Result<Self, BindError> {
        let here = runtime::Handle::try_current()
            .map_err(|error| BindError::NoRuntime(error.to_string()))?;
        let preferred = options.endpoint.preferred_address;
        let runtimes = vec![WorkerRuntime::Here(here)];
        let sockets = vec![WorkerSocket::Carrier(carrier)];
        Self::run(options, preferred, Vec::new(), runtimes, sockets)
    }

    /// Starts a worker for each of `sockets`, with the sockets of further addresses.
    fn run(
        options: &EndpointOptions,
        preferred: PreferredAddresses,
        extra: Vec<Vec<Bound>>,
        runtimes: Vec<WorkerRuntime>,
        sockets: Vec<WorkerSocket>,
    ) -> Result<Self, BindError> {
        let pool = Self {
            workers: share(options, preferred, &runtimes, &sockets),
            buffers: buffers(options),
            faults: options.faults.clone(),
            adding: Mutex::new(()),
            opener: AtomicUsize::new(0),
            acceptor: AtomicUsize::new(0),
            handles: AtomicUsize::new(0),
        };
        for bound in extra {
            pool.adopt(bound)?;
        }
        for (index, (runtime, socket)) in runtimes.into_iter().zip(sockets).enumerate() {
            let worker = {
                let _context = runtime.enter();
                Worker::new(Arc::clone(&pool.workers), index, socket)
            };
            if let Err(error) = runtime.run(worker, index) {
                // Those that run have nothing to do and end.
                pool.release();
                return Err(error);
            }
        }
        Ok(pool)
    }

    pub(crate) fn workers(&self) -> &[Arc<EndpointShared>] {
        &self.workers
    }

    /// A worker for what concerns none in particular.
    pub(crate) fn first(&self) -> &Arc<EndpointShared> {
        &self.workers[0]
    }

    pub(crate) fn signals(&self) -> &EndpointSignals {
        &self.first().signals
    }

    /// Binds one more socket for each worker.
    pub(crate) fn add_socket(&self, address: SocketAddr) -> Result<SocketId, BindError> {
        self.adopt(bind_more(address, self.buffers, self.workers.len())?)
    }

    /// Gives each worker one more socket.
    fn adopt(&self, bound: Vec<Bound>) -> Result<SocketId, BindError> {
        let _guard = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        let mut added = Err(BindError::TooManySockets);
        for (worker, mut bound) in self.workers.iter().zip(bound) {
            bound.set_faults(self.faults.clone());
            let mut state = worker.lock();
            let (local, family) = (bound.local_addr(), bound.family());
            let id = state
                .sockets
                .add(local, family)
                .ok_or(BindError::TooManySockets)?;
            worker
                .inbox
                .post(|messages| messages.sockets.push((id, bound)));
            added = Ok(id);
        }
        added
    }

    /// The worker that opens the next connection: each in turn.
    pub(crate) fn next(&self) -> &Arc<EndpointShared> {
        &self.workers[self.turn(&self.opener)]
    }

    fn turn(&self, counter: &AtomicUsize) -> usize {
        counter.fetch_add(1, Ordering::Relaxed) % self.workers.len()
    }

    /// A connection that waits to be accepted; no worker's come first always.
    pub(crate) fn take_accepted(&self) -> Accepted {
        let first = self.turn(&self.acceptor);
        let mut over = true;
        for offset in 0..self.workers.len() {
            let worker = &self.workers[(first + offset) % self.workers.len()];
            let mut state = worker.lock();
            if let Some(connection) = state.accept.pop_front() {
                return Accepted::Connection(connection);
            }
            over &= state.accepts_no_more();
        }
        if over {
            Accepted::Never
        } else {
            Accepted::None
        }
    }

    /// The last handle of the endpoint is dropped: the workers end with their last connections.
    pub(crate) fn release(&self) {
        for worker in &*self.workers {
            let waiting = {
                let mut state = worker.lock();
                state.released = true;
                state.core.set_server_config(None);
                std::mem::take(&mut state.accept)
            };
            // They can't be accepted any more: they close.
            drop(waiting);
            worker.wake_acceptors();
            worker.inbox.post(|messages| messages.state_changed = true);
        }
    }
}

/// How many workers there are to be, if they can be.
fn worker_count(options: &EndpointOptions) -> Result<u8, BindError> {
    let workers = match options.workers {
        0 => thread::available_parallelism().map_or(1, usize::from),
        workers => workers,
    };
    if workers == 1 {
        return Ok(1);
    }
    if !CAN_SHARE {
        return if options.workers == 0 {
            Ok(1)
        } else {
            Err(BindError::NoSharing)
        };
    }
    let cids = options.endpoint.cids.as_ref();
    let distinct = cids.map_or(u8::MAX, |cids| cids.max_workers());
    u8::try_from(workers)
        .ok()
        .filter(|&workers| workers <= distinct)
        .ok_or(BindError::ConnectionIds {
            workers,
            distinct: usize::from(distinct),
        })
}

/// The socket of a worker, at the address of the `first` one if that exists already.
fn bind(
    address: SocketAddr,
    options: &EndpointOptions,
    count: u8,
    first: Option<SocketAddr>,
) -> Result<Socket, BindError> {
    let buffers = buffers(options);
    let mut socket = match first {
        None if count == 1 => Socket::bind(address, buffers)?,
        None => Socket::bind_as(address, buffers, Sharing::First)?,
        Some(first) => {
            // The system may have chosen the port.
            let address = SocketAddr::new(address.ip(), first.port());
            Socket::bind_as(address, buffers, Sharing::Further)?
        }
    };
    socket.set_faults(options.faults.clone());
    Ok(socket)
}

fn buffers(options: &EndpointOptions) -> SocketBuffers {
    SocketBuffers {
        send: options.send_buffer,
        receive: options.receive_buffer,
    }
}

/// A socket at `address` for each of `count` workers.
fn bind_more(
    address: SocketAddr,
    buffers: SocketBuffers,
    count: usize,
) -> Result<Vec<Bound>, BindError> {
    let sharing = if count == 1 {
        Sharing::Alone
    } else {
        Sharing::First
    };
    let mut bound = vec![Bound::new(address, buffers, sharing)?];
    // The system may have chosen the port.
    let address = SocketAddr::new(address.ip(), bound[0].local_addr().port());
    for _ in 1..count {
        bound.push(Bound::new(address, buffers, Sharing::Further)?);
    }
    Ok(bound)
}

/// Binds the addresses that the server prefers; what is to be declared, and the sockets.
fn bind_preferred(
    options: &EndpointOptions,
    count: u8,
) -> Result<(PreferredAddresses, Vec<Vec<Bound>>), BindError> {
    let mut declared = options.endpoint.preferred_address;
    let mut all = Vec::new();
    for &address in &options.preferred {
        if address.ip().is_unspecified() {
            return Err(BindError::Unspecified(address));
        }
        let bound = bind_more(address, buffers(options), usize::from(count))?;
        declared = declared.with(bound[0].local_addr());
        all.push(bound);
    }
    Ok((declared, all))
}

/// What each worker shares with the application.
fn share(
    options: &EndpointOptions,
    preferred: PreferredAddresses,
    runtimes: &[WorkerRuntime],
    sockets: &[WorkerSocket],
) -> Arc<[Arc<EndpointShared>]> {
    let count = runtimes.len() as u8;
    // Tokens bear times: one clock for all makes them good everywhere.
    let clock = Clock::start();
    let signals = Arc::new(EndpointSignals::default());
    let backlog = options.accept_backlog.div_ceil(usize::from(count));
    (0..count)
        .zip(runtimes.iter().zip(sockets))
        .map(|(index, (runtime, socket))| {
            let mut config = options.endpoint.clone();
            config.worker = Slot { index, count };
            config.preferred_address = preferred;
            let core = Core::new(config, options.server.clone(), options.seed);
            let signals = Arc::clone(&signals);
            let runtime = runtime.handle().clone();
            Arc::new(EndpointShared::new(
                core, socket, backlog, clock, signals, runtime,
            ))
        })
        .collect()
}
