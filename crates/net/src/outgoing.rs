//! The way out of a worker: at most one batch that the socket has not taken yet.

use std::io;
use std::task::{Context, Poll, ready};

use swiftwater_quic::{SocketId, Transmit};

use crate::endpoint_shared::{IoCounters, count};
use crate::socket::{MAX_UDP_PAYLOAD, Parcel, is_too_large};
use crate::sockets::Sockets;

/// Largest UDP payload of all, over IPv6, bytes.
const BUFFER: usize = 65_527;

/// The send buffer and what of it still has to go.
pub(crate) struct Outgoing {
    buffer: Box<[u8]>,
    pending: Option<Pending>,
    /// The last socket from which the system couldn't reach a peer, and what it said.
    unreachable: Option<(SocketId, io::ErrorKind)>,
    /// UDP payload of the last datagram that was refused for its size.
    refused_size: Option<usize>,
}

struct Pending {
    transmit: Transmit,
    /// Bytes that are out, or given up.
    done: usize,
    /// Send datagram by datagram: the batch as a whole was refused.
    split: bool,
}

impl Outgoing {
    pub(crate) fn new() -> Self {
        Self {
            buffer: vec![0; BUFFER].into_boxed_slice(),
            pending: None,
            unreachable: None,
            refused_size: None,
        }
    }

    /// The socket from which the system could not reach the peer of the batch filled last, told once.
    pub(crate) fn take_unreachable(&mut self) -> Option<(SocketId, io::ErrorKind)> {
        self.unreachable.take()
    }

    /// UDP payload of the last datagram that the interface refused for its size, told once. It was
    /// of the batch filled last.
    pub(crate) fn take_refused_size(&mut self) -> Option<usize> {
        self.refused_size.take()
    }

    /// True while a batch waits for the socket.
    pub(crate) fn is_blocked(&self) -> bool {
        self.pending.is_some()
    }

    /// Lets `write` fill the buffer, given the number of segments allowed. Only while nothing is
    /// pending. False if there was nothing to send.
    pub(crate) fn fill(
        &mut self,
        sockets: &Sockets,
        write: impl FnOnce(usize, &mut [u8]) -> Option<Transmit>,
    ) -> bool {
        debug_assert!(self.pending.is_none());
        self.pending = write(sockets.max_segments(), &mut self.buffer).map(|transmit| Pending {
            split: transmit.size > MAX_UDP_PAYLOAD,
            transmit,
            done: 0,
        });
        self.pending.is_some()
    }

    /// Sends what is pending. Refused datagrams are counted and count as lost.
    pub(crate) fn poll_flush(
        &mut self,
        cx: &mut Context<'_>,
        sockets: &Sockets,
        counters: &IoCounters,
    ) -> Poll<()> {
        while let Some(pending) = &mut self.pending {
            let transmit = &pending.transmit;
            let rest = &self.buffer[pending.done..transmit.size.min(self.buffer.len())];
            let segment = transmit.segment_size.unwrap_or(rest.len()).max(1);
            let len = if pending.split {
                segment.min(rest.len())
            } else {
                rest.len()
            };
            if len == 0 {
                self.pending = None;
                break;
            }
            let parcel = Parcel {
                destination: transmit.destination,
                source_ip: transmit.source_ip,
                ecn: transmit.ecn,
                contents: &rest[..len],
                segment_size: Some(segment).filter(|segment| *segment < len),
            };
            let sent = match sockets.get(transmit.socket) {
                Some(socket) => ready!(socket.poll_send(cx, &parcel)),
                None => Err(io::ErrorKind::AddrNotAvailable.into()),
            };
            match sent {
                Ok(()) => {
                    count(&counters.sends, 1);
                    count(&counters.datagrams_sent, len.div_ceil(segment) as u64);
                    pending.done += len;
                }
                Err(error) if len > segment => {
                    // Segmentation offload doesn't work here after all.
                    tracing::debug!(%error, "batch refused, sending one by one");
                    pending.split = true;
                }
                Err(error) => {
                    if is_too_large(&error) {
                        self.refused_size = Some(len);
                    }
                    tracing::debug!(%error, to = %transmit.destination, "datagram refused");
                    count(&counters.send_errors, 1);
                    if is_unreachable(error.kind()) {
                        self.unreachable = Some((transmit.socket, error.kind()));
                    }
                    pending.done += len;
                }
            }
        }
        Poll::Ready(())
    }
}

/// True for what the system says when an interface is down, or its address gone.
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
mod tests {
    use std::future::poll_fn;
    use std::net::SocketAddr;
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    use swiftwater_units::PathId;

    use super::*;
    use crate::socket::{Socket, SocketBuffers};

    const BUFFERS: SocketBuffers = SocketBuffers {
        send: 1 << 20,
        receive: 1 << 20,
    };

    /// Sends `size` bytes in segments and returns the counters: sends, datagrams, errors.
    async fn send(to: SocketAddr, size: usize, segment: usize) -> [u64; 3] {
        let socket = Socket::bind("127.0.0.1:0".parse().unwrap(), BUFFERS).unwrap();
        let sockets = Sockets::new(socket);
        let counters = IoCounters::default();
        let mut outgoing = Outgoing::new();
        let filled = outgoing.fill(&sockets, |_, buffer| {
            for (n, datagram) in buffer[..size].chunks_mut(segment).enumerate() {
                datagram.fill(n as u8);
            }
            Some(Transmit {
                path: PathId::ZERO,
                destination: to,
                source_ip: None,
                socket: SocketId::default(),
                ecn: None,
                size,
                segment_size: (segment < size).then_some(segment),
            })
        });
        assert!(filled);
        poll_fn(|cx| outgoing.poll_flush(cx, &sockets, &counters)).await;
        assert!(!outgoing.is_blocked());
        [
            &counters.sends,
            &counters.datagrams_sent,
            &counters.send_errors,
        ]
        .map(|counter| counter.load(Ordering::Relaxed))
    }

    /// A batch that the system refuses goes out datagram by datagram.
    #[tokio::test]
    async fn refused_batches_are_taken_apart() {
        let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        receiver
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        // More segments than any kernel takes.
        let [_, datagrams, errors] = send(receiver.local_addr().unwrap(), 20_050, 100).await;
        assert_eq!((datagrams, errors), (201, 0));
        let mut buffer = [0; 2000];
        for n in 0..201 {
            let len = receiver.recv(&mut buffer).unwrap();
            assert_eq!(len, if n == 200 { 50 } else { 100 });
            assert_eq!(buffer[0], n as u8);
        }
    }

    /// Sockets don't fragment: what is larger than the interface takes is refused, and told.
    #[tokio::test]
    async fn datagrams_larger_than_the_interface_are_told() {
        let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let socket = Socket::bind("127.0.0.1:0".parse().unwrap(), BUFFERS).unwrap();
        let sockets = Sockets::new(socket);
        let counters = IoCounters::default();
        let mut outgoing = Outgoing::new();
        // More than any IPv4 packet holds.
        let size = MAX_UDP_PAYLOAD + 10;
        let destination = receiver.local_addr().unwrap();
        outgoing.fill(&sockets, |_, _| {
            Some(Transmit {
                path: PathId::ZERO,
                socket: SocketId::default(),
                destination,
                source_ip: None,
                ecn: None,
                size,
                segment_size: None,
            })
        });
        poll_fn(|cx| outgoing.poll_flush(cx, &sockets, &counters)).await;
        assert_eq!(outgoing.take_refused_size(), Some(size));
        assert_eq!(outgoing.take_refused_size(), None);
    }

    /// What can't be sent is given up and counted, not tried forever.
    #[tokio::test]
    async fn refused_datagrams_are_given_up() {
        let elsewhere = "[::1]:9".parse().unwrap();
        assert_eq!(send(elsewhere, 300, 100).await, [0, 0, 3]);
    }
}
