//! One socket of a worker: of the system, or a carrier in its place.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use crate::carrier::{CarriedContent, DatagramCarrier};
use crate::recv_batch::RecvBatch;
use crate::socket::{Family, Parcel, Socket};

/// One socket of a worker.
pub(crate) enum WorkerSocket {
    /// Of the system.
    Udp(Arc<Socket>),
    /// In its place.
    Carrier(Arc<dyn DatagramCarrier>),
}

impl WorkerSocket {
    pub(crate) fn local_addr(&self) -> SocketAddr {
        match self {
            Self::Udp(socket) => socket.local_addr(),
            Self::Carrier(carrier) => carrier.local_addr(),
        }
    }

    pub(crate) fn family(&self) -> Family {
        match self {
            Self::Udp(socket) => socket.family(),
            Self::Carrier(carrier) => match carrier.local_addr() {
                SocketAddr::V4(_) => Family::V4,
                SocketAddr::V6(local) if local.ip().is_unspecified() => Family::Dual,
                SocketAddr::V6(_) => Family::V6,
            },
        }
    }

    /// The socket of the system, if it is one.
    pub(crate) fn udp(&self) -> Option<&Arc<Socket>> {
        match self {
            Self::Udp(socket) => Some(socket),
            Self::Carrier(_) => None,
        }
    }

    /// The carrier, if it is one.
    pub(crate) fn carrier(&self) -> Option<&Arc<dyn DatagramCarrier>> {
        match self {
            Self::Udp(_) => None,
            Self::Carrier(carrier) => Some(carrier),
        }
    }

    /// Datagrams that may go into one send.
    pub(crate) fn max_segments(&self) -> usize {
        match self {
            Self::Udp(socket) => socket.max_segments(),
            Self::Carrier(carrier) => carrier.max_segments(),
        }
    }

    /// Waits for datagrams and fills `batch` with what is there.
    pub(crate) fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        batch: &mut RecvBatch,
    ) -> Poll<io::Result<()>> {
        match self {
            Self::Udp(socket) => socket.poll_recv(cx, batch),
            Self::Carrier(carrier) => poll_carrier(&**carrier, cx, batch),
        }
    }

    /// Fills `batch` with what is there, whether or not the runtime had an event for it. False if nothing is.
    pub(crate) fn try_recv(&self, batch: &mut RecvBatch) -> io::Result<bool> {
        match self {
            Self::Udp(socket) => socket.try_recv(batch),
            // It was asked when the task polled.
            Self::Carrier(_) => Ok(false),
        }
    }

    /// Sends without waiting. Errors other than `WouldBlock` mean that this datagram is lost, no more.
    pub(crate) fn try_send(&self, parcel: &Parcel<'_>) -> io::Result<()> {
        match self {
            Self::Udp(socket) => socket.try_send(parcel),
            Self::Carrier(_) => {
                match self.poll_send(&mut Context::from_waker(Waker::noop()), parcel) {
                    Poll::Ready(sent) => sent,
                    Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
                }
            }
        }
    }

    /// Sends, or waits until the socket takes datagrams again.
    pub(crate) fn poll_send(
        &self,
        cx: &mut Context<'_>,
        parcel: &Parcel<'_>,
    ) -> Poll<io::Result<()>> {
        match self {
            Self::Udp(socket) => socket.poll_send(cx, parcel),
            Self::Carrier(carrier) => {
                let (to, contents) = (parcel.destination, parcel.contents);
                match parcel.segment_size.filter(|size| *size < contents.len()) {
                    Some(size) => carrier.poll_send_run(cx, to, contents, size),
                    None => carrier.poll_send(cx, to, contents),
                }
            }
        }
    }
}

fn poll_carrier(
    carrier: &dyn DatagramCarrier,
    cx: &mut Context<'_>,
    batch: &mut RecvBatch,
) -> Poll<io::Result<()>> {
    batch.clear();
    while !batch.is_full() {
        let carried = match carrier.poll_recv(cx) {
            // What came before is handled first. The next poll waits.
            Poll::Pending if !batch.is_empty() => break,
            arrived => ready!(arrived)?,
        };
        match carried.content {
            CarriedContent::Datagram { payload, tag } => batch.push(carried.remote, tag, &payload),
            CarriedContent::Report(report) => batch.push_report(carried.remote, report),
        }
    }
    Poll::Ready(Ok(()))
}
