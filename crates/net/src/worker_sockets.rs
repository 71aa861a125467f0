//! The sockets of a worker: one at first, more when connections move between addresses.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use swiftwater_quic::SocketId;

use crate::recv_batch::RecvBatch;
use crate::socket::{Bound, Socket};
use crate::worker_socket::WorkerSocket;

/// After a non-blocking poll that found nothing, so many batches come without one.
const POLL_PAUSE: u8 = 8;

/// Non-blocking polls of the socket after a batch, before the runtime is asked to wait: while the peer is as busy as
/// this end, more has come meanwhile, and waiting would cost more than the poll.
#[derive(Default)]
struct NonBlockingPolls {
    is_due: bool,
    /// Batches until one is worth a try.
    pause: u8,
}

impl NonBlockingPolls {
    fn on_batch(&mut self) {
        self.is_due = self.pause == 0;
        self.pause = self.pause.saturating_sub(1);
    }

    fn on_nothing(&mut self) {
        self.pause = POLL_PAUSE;
    }

    fn skip(&mut self) {
        self.is_due = false;
    }
}

/// The sockets, by number.
pub(crate) struct WorkerSockets {
    all: Vec<(SocketId, WorkerSocket)>,
    /// Which was polled last.
    turn: usize,
    polls: NonBlockingPolls,
}

impl WorkerSockets {
    /// The first socket gets number 0.
    pub(crate) fn new(first: WorkerSocket) -> Self {
        Self {
            all: vec![(SocketId::default(), first)],
            turn: 0,
            polls: NonBlockingPolls::default(),
        }
    }

    /// Adds a socket. To be called by the task that uses it. One that the runtime doesn't take is as
    /// good as one that fails to send.
    pub(crate) fn add(&mut self, id: SocketId, bound: Bound) -> Option<Arc<Socket>> {
        match Socket::register(bound) {
            Ok(socket) => {
                let socket = Arc::new(socket);
                let added = WorkerSocket::Udp(Arc::clone(&socket));
                self.all.push((id, added));
                Some(socket)
            }
            Err(error) => {
                tracing::warn!(%error, "a socket can't be used");
                None
            }
        }
    }

    /// Closes a socket.
    pub(crate) fn remove(&mut self, id: SocketId) {
        self.all.retain(|(have, _)| *have != id);
    }

    pub(crate) fn get(&self, id: SocketId) -> Option<&WorkerSocket> {
        let mut all = self.all.iter();
        all.find(|(have, _)| *have == id).map(|(_, socket)| socket)
    }

    /// Datagrams that may go into one send, whichever socket it leaves by.
    pub(crate) fn max_segments(&self) -> usize {
        let each = self.all.iter().map(|(_, socket)| socket.max_segments());
        each.min().unwrap_or(1)
    }

    /// Waits for datagrams on any socket and fills `batch` with what is there on one of them. The sockets take turns.
    pub(crate) fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        batch: &mut RecvBatch,
    ) -> Poll<io::Result<()>> {
        for _ in 0..self.all.len() {
            self.turn = (self.turn + 1) % self.all.len();
            let (id, socket) = &self.all[self.turn];
            if let Poll::Ready(received) = socket.poll_recv(cx, batch) {
                self.polls.on_batch();
                batch.set_socket(*id);
                return Poll::Ready(received);
            }
        }
        self.poll_non_blocking(batch)
    }

    /// Other tasks are to run before more is taken from a socket without an event of the runtime.
    pub(crate) fn skip_non_blocking_poll(&mut self) {
        self.polls.skip();
    }

    /// Polls the socket that was polled last, without waiting.
    fn poll_non_blocking(&mut self, batch: &mut RecvBatch) -> Poll<io::Result<()>> {
        let is_due = std::mem::take(&mut self.polls.is_due);
        let Some((id, socket)) = self.all.get(self.turn).filter(|_| is_due) else {
            return Poll::Pending;
        };
        match socket.try_recv(batch) {
            Ok(true) => {
                batch.set_socket(*id);
                self.polls.on_batch();
                Poll::Ready(Ok(()))
            }
            Ok(false) => {
                self.polls.on_nothing();
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}
