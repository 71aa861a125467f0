//! The sockets of a worker: one at first, more when connections move between addresses.

use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};

use swiftwater_quic::SocketId;

use crate::socket::{Bound, Family, RecvBatch, Socket};

/// After a glance that found nothing, so many batches come without one.
const GLANCE_PAUSE: u8 = 8;

/// Glances at the socket after a batch, before the runtime is asked to wait: while the peer is as busy as this
/// end, more has come meanwhile, and waiting would cost more than it takes to look.
#[derive(Default)]
struct Glances {
    is_due: bool,
    /// Batches until one is worth a try.
    pause: u8,
}

impl Glances {
    fn on_batch(&mut self) {
        self.is_due = self.pause == 0;
        self.pause = self.pause.saturating_sub(1);
    }

    fn on_nothing(&mut self) {
        self.pause = GLANCE_PAUSE;
    }

    fn forgo(&mut self) {
        self.is_due = false;
    }
}

/// The sockets, by number.
pub(crate) struct Sockets {
    all: Vec<(SocketId, Socket)>,
    /// Which was asked last.
    turn: usize,
    glances: Glances,
}

impl Sockets {
    /// The first socket gets number 0.
    pub(crate) fn new(first: Socket) -> Self {
        Self {
            all: vec![(SocketId::default(), first)],
            turn: 0,
            glances: Glances::default(),
        }
    }

    /// Adds a socket. To be called by the task that uses it. One that the runtime doesn't take is as
    /// good as one that fails to send.
    pub(crate) fn add(&mut self, id: SocketId, bound: Bound) {
        match Socket::register(bound) {
            Ok(socket) => self.all.push((id, socket)),
            Err(error) => tracing::warn!(%error, "a socket can't be used"),
        }
    }

    /// Closes a socket.
    pub(crate) fn remove(&mut self, id: SocketId) {
        self.all.retain(|(have, _)| *have != id);
    }

    pub(crate) fn get(&self, id: SocketId) -> Option<&Socket> {
        let mut all = self.all.iter();
        all.find(|(have, _)| *have == id).map(|(_, socket)| socket)
    }

    /// Datagrams that may go into one send, whichever socket it leaves by.
    pub(crate) fn max_segments(&self) -> usize {
        let each = self.all.iter().map(|(_, socket)| socket.max_segments());
        each.min().unwrap_or(1)
    }

    /// Waits for datagrams on any socket, fills `batch` with what is there on one of them, and tells
    /// which. None comes first always.
    pub(crate) fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        batch: &mut RecvBatch,
    ) -> Poll<io::Result<SocketId>> {
        for _ in 0..self.all.len() {
            self.turn = (self.turn + 1) % self.all.len();
            let (id, socket) = &self.all[self.turn];
            if let Poll::Ready(received) = socket.poll_recv(cx, batch) {
                self.glances.on_batch();
                return Poll::Ready(received.map(|()| *id));
            }
        }
        self.glance(batch)
    }

    /// Somebody else is to run before more is taken from a socket that the runtime has not told of.
    pub(crate) fn forgo_glance(&mut self) {
        self.glances.forgo();
    }

    /// Looks at the socket that was asked last.
    fn glance(&mut self, batch: &mut RecvBatch) -> Poll<io::Result<SocketId>> {
        let is_due = std::mem::take(&mut self.glances.is_due);
        let Some((id, socket)) = self.all.get(self.turn).filter(|_| is_due) else {
            return Poll::Pending;
        };
        match socket.try_recv(batch) {
            Ok(true) => {
                self.glances.on_batch();
                Poll::Ready(Ok(*id))
            }
            Ok(false) => {
                self.glances.on_nothing();
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

/// What applications may know of a worker's sockets.
#[derive(Clone, Debug)]
pub(crate) struct SocketList {
    all: Vec<(SocketId, SocketAddr, Family)>,
    /// Where connections start that are opened from now on.
    current: SocketId,
    /// Numbers given so far.
    given: u16,
}

impl SocketList {
    pub(crate) fn new(first: &Socket) -> Self {
        Self {
            all: vec![(SocketId::default(), first.local_addr(), first.family())],
            current: SocketId::default(),
            given: 1,
        }
    }

    /// A number for one more socket; `None` once all are used up.
    pub(crate) fn add(&mut self, local: SocketAddr, family: Family) -> Option<SocketId> {
        let id = SocketId(self.given);
        self.given = self.given.checked_add(1)?;
        self.all.push((id, local, family));
        Some(id)
    }

    /// False if there is no such socket, or if it is where new connections start.
    pub(crate) fn remove(&mut self, id: SocketId) -> bool {
        let before = self.all.len();
        if id != self.current {
            self.all.retain(|(have, ..)| *have != id);
        }
        self.all.len() < before
    }

    pub(crate) fn set_current(&mut self, id: SocketId) {
        self.current = id;
    }

    pub(crate) fn address(&self, id: SocketId) -> Option<SocketAddr> {
        let mut all = self.all.iter();
        all.find(|(have, ..)| *have == id)
            .map(|(_, local, _)| *local)
    }

    /// The address where new connections start.
    pub(crate) fn local(&self) -> SocketAddr {
        self.address(self.current).unwrap_or(self.all[0].1)
    }

    /// True if datagrams to `remote` can leave through the socket where new connections start.
    pub(crate) fn reaches(&self, remote: SocketAddr) -> bool {
        let mut all = self.all.iter();
        all.any(|(id, _, family)| *id == self.current && family.reaches(remote))
    }
}
