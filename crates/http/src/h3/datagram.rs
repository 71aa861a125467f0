//! HTTP datagrams in QUIC DATAGRAM frames (RFC 9297, section 2.1), and the buffer of those received
//! before their request.

use std::collections::{BTreeMap, VecDeque};

use bytes::{Buf, Bytes};
use swiftwater_units::StreamId;
use swiftwater_wire::{EncodedVarInt, VarInt};

use super::code::Code;
use super::error::Fault;
use super::stream_type::PartialInt;

/// The largest quarter stream ID: that of the largest stream identifier.
const MAX_QUARTER: u64 = (1 << 60) - 1;

/// What precedes a datagram of the request of stream `id` in the payload of a DATAGRAM frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prefix(EncodedVarInt);

impl Prefix {
    pub(crate) fn of(id: StreamId) -> Self {
        Self(VarInt::saturating(id.get() / 4).encode())
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// Decodes a DATAGRAM frame's payload to the request's stream and the HTTP datagram's payload.
pub(crate) fn decode(mut data: Bytes) -> Result<(StreamId, Bytes), Fault> {
    let error = |reason| Fault::connection(Code::DATAGRAM_ERROR, reason);
    let mut rest = &data[..];
    let quarter = PartialInt::default()
        .take(&mut rest)
        .ok_or(error("a datagram without a quarter stream ID"))?;
    if quarter > MAX_QUARTER {
        return Err(error("a datagram for a stream that can't exist"));
    }
    let used = data.len() - rest.len();
    data.advance(used);
    Ok((StreamId::from_wire(quarter * 4), data))
}

/// Datagrams sent with a key, by the key that the QUIC connection is given for each: applications may
/// use the same key for several requests.
#[derive(Debug, Default)]
pub(crate) struct DatagramKeys {
    next: u64,
    sent: BTreeMap<u64, (StreamId, u64)>,
}

impl DatagramKeys {
    /// The QUIC connection's key for a datagram of the request of stream `id` with the application's
    /// `key`.
    pub(crate) fn insert(&mut self, id: StreamId, key: u64) -> u64 {
        let inner = self.next;
        self.next += 1;
        self.sent.insert(inner, (id, key));
        inner
    }

    /// Removes an entry: the request's stream and the application's key.
    pub(crate) fn remove(&mut self, inner: u64) -> Option<(StreamId, u64)> {
        self.sent.remove(&inner)
    }
}

/// Datagrams received before their request.
#[derive(Debug, Default)]
pub(crate) struct EarlyDatagrams {
    waiting: VecDeque<(StreamId, Bytes)>,
}

impl EarlyDatagrams {
    /// Buffers a datagram unless `limit` are buffered already; false if it was dropped.
    pub(crate) fn keep(&mut self, id: StreamId, payload: &[u8], limit: usize) -> bool {
        let room = self.waiting.len() < limit;
        if room {
            // It may wait for long, and shares memory with others.
            self.waiting
                .push_back((id, Bytes::copy_from_slice(payload)));
        }
        room
    }

    /// Removes the datagrams of a request that was received now, in order.
    pub(crate) fn take(&mut self, id: StreamId) -> Vec<Bytes> {
        let mut taken = Vec::new();
        self.waiting.retain(|(each, payload)| {
            let other = *each != id;
            if !other {
                taken.push(payload.clone());
            }
            other
        });
        taken
    }
}
