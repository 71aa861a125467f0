//! What leaves a worker: one batch of datagrams in hand, and with each socket that takes none at the moment the
//! batch that waits for it.
//!
//! A blocked socket holds back what goes through it, and nothing else.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::task::{Context, Poll, ready};

use swiftwater_quic::{ConnectionHandle, SocketId, Transmit};
use swiftwater_units::PathId;

use crate::endpoint_shared::{IoCounters, count};
use crate::socket::{MAX_UDP_PAYLOAD, Parcel, is_too_large};
use crate::worker_socket::WorkerSocket;
use crate::worker_sockets::WorkerSockets;

/// Largest UDP payload of all, over IPv6, bytes.
const BUFFER: usize = 65_527;

/// The send buffers of a worker and what of them still has to go.
pub(crate) struct Outgoing {
    /// Where the batch in hand is.
    buffer: Box<[u8]>,
    in_hand: Option<Batch>,
    /// Sockets that take no datagrams at the moment: mostly none.
    blocked: Vec<BlockedSocket>,
    /// The buffer that the last blocked socket gave back.
    spare: Option<Box<[u8]>>,
    failures: VecDeque<SendFailure>,
}

/// A batch of one connection.
struct Batch {
    sender: ConnectionHandle,
    transmit: Transmit,
    /// Bytes that are sent, or dropped.
    done: usize,
    /// Send datagram by datagram: the batch as a whole was refused.
    split: bool,
}

/// A socket that takes no datagrams at the moment.
struct BlockedSocket {
    batch: Batch,
    buffer: Box<[u8]>,
    waiting: Waiting,
}

/// Connections of which a path uses a blocked socket, by index, each once.
#[derive(Default)]
struct Waiting {
    /// In the order in which they came.
    order: Vec<usize>,
    all: HashSet<usize>,
}

impl Waiting {
    fn add(&mut self, index: usize) {
        if self.all.insert(index) {
            self.order.push(index);
        }
    }
}

impl BlockedSocket {
    fn socket(&self) -> SocketId {
        self.batch.transmit.socket
    }
}

/// A datagram that the system refused for a reason that concerns its connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct SendFailure {
    /// The connection.
    pub(crate) sender: ConnectionHandle,
    /// The reason.
    pub(crate) reason: SendFailureReason,
}

/// Why the system refused a datagram.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum SendFailureReason {
    /// The peer can't be reached on this path, from this socket.
    Unreachable(PathId, SocketId, io::ErrorKind),
    /// The interface of this path takes no UDP payload of this size, bytes.
    TooLarge(PathId, usize),
}

impl Outgoing {
    pub(crate) fn new() -> Self {
        Self {
            buffer: send_buffer(),
            in_hand: None,
            blocked: Vec::new(),
            spare: None,
            failures: VecDeque::new(),
        }
    }

    /// A datagram that was refused for a reason that concerns its connection; each is returned once.
    pub(crate) fn take_failure(&mut self) -> Option<SendFailure> {
        self.failures.pop_front()
    }

    /// True while `socket` takes no datagrams.
    pub(crate) fn is_blocked(&self, socket: SocketId) -> bool {
        self.blocked
            .iter()
            .any(|blocked| blocked.socket() == socket)
    }

    /// Puts the sockets that take no datagrams into `sockets`, instead of what is there.
    pub(crate) fn blocked_sockets(&self, sockets: &mut Vec<SocketId>) {
        sockets.clear();
        sockets.extend(self.blocked.iter().map(BlockedSocket::socket));
    }

    /// Connection `index`, whose paths use `sockets`, is to be served once one of those that are blocked takes
    /// datagrams again. False if none is blocked.
    pub(crate) fn wait_for(
        &mut self,
        sockets: impl Iterator<Item = SocketId>,
        index: usize,
    ) -> bool {
        let mut waits = false;
        for socket in sockets {
            let mut blocked = self.blocked.iter_mut();
            if let Some(blocked) = blocked.find(|blocked| blocked.socket() == socket) {
                blocked.waiting.add(index);
                waits = true;
            }
        }
        waits
    }

    /// Lets `write` fill the buffer with a batch of `sender`, given the number of datagrams allowed. False if there
    /// was nothing to send; otherwise [`Outgoing::send`] comes next.
    pub(crate) fn fill(
        &mut self,
        sockets: &WorkerSockets,
        sender: ConnectionHandle,
        write: impl FnOnce(usize, &mut [u8]) -> Option<Transmit>,
    ) -> bool {
        debug_assert!(self.in_hand.is_none());
        self.in_hand = write(sockets.max_segments(), &mut self.buffer).map(|transmit| Batch {
            sender,
            split: transmit.size > MAX_UDP_PAYLOAD,
            transmit,
            done: 0,
        });
        self.in_hand.is_some()
    }

    /// Sends the batch in hand. If its socket takes none at the moment, the batch waits there. A second one for the
    /// same socket counts as lost: only probing packets get here while a socket is blocked, and path validation
    /// repeats them.
    pub(crate) fn send(
        &mut self,
        cx: &mut Context<'_>,
        sockets: &WorkerSockets,
        counters: &IoCounters,
    ) {
        let Some(mut batch) = self.in_hand.take() else {
            return;
        };
        let socket = batch.transmit.socket;
        if self.is_blocked(socket) {
            count(&counters.send_errors, 1);
            return;
        }
        let buffer = &self.buffer;
        let failures = &mut self.failures;
        let sent = batch.poll_send(cx, sockets.get(socket), buffer, counters, failures);
        if sent.is_pending() {
            let next = self.spare.take().unwrap_or_else(send_buffer);
            self.blocked.push(BlockedSocket {
                batch,
                buffer: std::mem::replace(&mut self.buffer, next),
                waiting: Waiting::default(),
            });
        }
    }

    /// Tries blocked sockets again, and hands the connections that waited for one that takes datagrams to `release`.
    pub(crate) fn retry(
        &mut self,
        cx: &mut Context<'_>,
        sockets: &WorkerSockets,
        counters: &IoCounters,
        mut release: impl FnMut(usize),
    ) {
        let Self {
            blocked,
            spare,
            failures,
            ..
        } = self;
        blocked.retain_mut(|blocked| {
            let socket = blocked.socket();
            let (batch, buffer) = (&mut blocked.batch, &blocked.buffer);
            let sent = batch.poll_send(cx, sockets.get(socket), buffer, counters, failures);
            if sent.is_ready() {
                for index in blocked.waiting.order.drain(..) {
                    release(index);
                }
                *spare = Some(std::mem::take(&mut blocked.buffer));
            }
            sent.is_pending()
        });
    }
}

fn send_buffer() -> Box<[u8]> {
    vec![0; BUFFER].into_boxed_slice()
}

impl Batch {
    /// Sends what is left of the batch, which lies in `buffer`. Refused datagrams are counted and count as lost.
    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        socket: Option<&WorkerSocket>,
        buffer: &[u8],
        counters: &IoCounters,
        failures: &mut VecDeque<SendFailure>,
    ) -> Poll<()> {
        loop {
            let rest = &buffer[self.done..self.transmit.size.min(buffer.len())];
            let segment = self.transmit.segment_size.unwrap_or(rest.len()).max(1);
            let len = if self.split {
                segment.min(rest.len())
            } else {
                rest.len()
            };
            if len == 0 {
                return Poll::Ready(());
            }
            let segment_size = Some(segment).filter(|segment| *segment < len);
            let parcel = Parcel::of(&self.transmit, &rest[..len], segment_size);
            let sent = match socket {
                Some(socket) => ready!(socket.poll_send(cx, &parcel)),
                None => Err(io::ErrorKind::AddrNotAvailable.into()),
            };
            match sent {
                Ok(()) => {
                    count(&counters.sends, 1);
                    count(&counters.datagrams_sent, len.div_ceil(segment) as u64);
                    self.done += len;
                }
                Err(error) if len > segment => {
                    // Segmentation offload doesn't work here after all.
                    tracing::debug!(%error, "batch refused, sending one by one");
                    self.split = true;
                }
                Err(error) => {
                    tracing::debug!(%error, to = %self.transmit.destination, "datagram refused");
                    count(&counters.send_errors, 1);
                    self.report(&error, len, failures);
                    self.done += len;
                }
            }
        }
    }

    /// Adds a refused datagram of `len` bytes to `failures` if the reason concerns its connection.
    fn report(&self, error: &io::Error, len: usize, failures: &mut VecDeque<SendFailure>) {
        let reason = if is_too_large(error) {
            SendFailureReason::TooLarge(self.transmit.path, len)
        } else if is_unreachable(error.kind()) {
            let Transmit { path, socket, .. } = self.transmit;
            SendFailureReason::Unreachable(path, socket, error.kind())
        } else {
            return;
        };
        let sender = self.sender;
        let failure = SendFailure { sender, reason };
        // Once for all datagrams of a batch.
        if failures.back() != Some(&failure) {
            failures.push_back(failure);
        }
    }
}

/// True for the system's errors when an interface is down, or its address gone.
fn is_unreachable(kind: io::ErrorKind) -> bool {
    matches!(
        kind,
        io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::AddrNotAvailable
    )
}

#[cfg(test)]
mod tests;
