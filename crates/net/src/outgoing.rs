//! The way out of a worker: at most one batch that the socket has not taken yet.

use std::task::{Context, Poll, ready};

use swiftwater_quic::Transmit;

use crate::endpoint_shared::{IoCounters, count};
use crate::socket::{MAX_UDP_PAYLOAD, Parcel, Socket};

/// UDP payload that a datagram is assumed to have at most when segments are counted; larger ones
/// make smaller batches, since all must fit the buffer.
const USUAL_DATAGRAM: usize = 1452;

/// The send buffer and what of it still has to go.
pub(crate) struct Outgoing {
    buffer: Box<[u8]>,
    pending: Option<Pending>,
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
            buffer: vec![0; MAX_UDP_PAYLOAD].into_boxed_slice(),
            pending: None,
        }
    }

    /// True while a batch waits for the socket.
    pub(crate) fn is_blocked(&self) -> bool {
        self.pending.is_some()
    }

    /// Lets `write` fill the buffer, given the number of segments allowed. Only while nothing is
    /// pending. False if there was nothing to send.
    pub(crate) fn fill(
        &mut self,
        socket: &Socket,
        write: impl FnOnce(usize, &mut [u8]) -> Option<Transmit>,
    ) -> bool {
        debug_assert!(self.pending.is_none());
        let segments = socket.max_segments().min(MAX_UDP_PAYLOAD / USUAL_DATAGRAM);
        self.pending = write(segments, &mut self.buffer).map(|transmit| Pending {
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
        socket: &Socket,
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
            match ready!(socket.poll_send(cx, &parcel)) {
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
                    tracing::debug!(%error, to = %transmit.destination, "datagram refused");
                    count(&counters.send_errors, 1);
                    pending.done += len;
                }
            }
        }
        Poll::Ready(())
    }
}
