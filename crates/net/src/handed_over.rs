//! Datagrams that one worker received for connections of another.

use swiftwater_quic::DatagramMeta;

use crate::recv_batch::DatagramBatch;

/// Datagrams of other workers that may wait: more than one turn of theirs brings.
const MAX_DATAGRAMS: usize = 1024;
/// Those among them that need not be of established connections. Any sender can make up an Initial that names a
/// worker: a flood of them leaves room for the packets of clients that migrated.
const MAX_UNESTABLISHED: usize = MAX_DATAGRAMS / 8;
/// Bytes of all: what [`EndpointOptions::receive_buffer`](crate::EndpointOptions::receive_buffer) asks of the system for
/// a socket. Datagrams of 1500 bytes take up 1.5 MB; the bound is for larger ones.
const MAX_BYTES: usize = 4 << 20;
/// Memory that an empty batch keeps for the next one, bytes.
const KEPT: usize = 256 * 1024;

/// Datagrams, one after another in one buffer, so that none costs an allocation.
#[derive(Default)]
pub(crate) struct HandedOver {
    /// Where each came from, and its size in bytes.
    metas: Vec<(DatagramMeta, usize)>,
    /// How many are not of established connections.
    unestablished: usize,
    data: Vec<u8>,
}

impl HandedOver {
    pub(crate) fn is_empty(&self) -> bool {
        self.metas.is_empty()
    }

    /// Appends a datagram, which is of an `established` connection or not. False if there is no room for it: the
    /// worker doesn't keep up.
    pub(crate) fn push(&mut self, meta: DatagramMeta, datagram: &[u8], established: bool) -> bool {
        let full = self.metas.len() >= MAX_DATAGRAMS
            || self.data.len() + datagram.len() > MAX_BYTES
            || (!established && self.unestablished >= MAX_UNESTABLISHED);
        if !full {
            self.unestablished += usize::from(!established);
            self.metas.push((meta, datagram.len()));
            self.data.extend_from_slice(datagram);
        }
        !full
    }

    /// Discards the datagrams, and releases the memory of an unusually large batch.
    pub(crate) fn clear(&mut self) {
        self.metas.clear();
        self.unestablished = 0;
        self.data.clear();
        self.data.shrink_to(KEPT);
    }
}

impl DatagramBatch for HandedOver {
    fn datagrams(&mut self) -> impl Iterator<Item = (DatagramMeta, &mut [u8])> {
        let mut rest = self.data.as_mut_slice();
        self.metas.iter().map_while(move |&(meta, len)| {
            let (datagram, after) = std::mem::take(&mut rest).split_at_mut_checked(len)?;
            rest = after;
            Some((meta, datagram))
        })
    }
}

#[cfg(test)]
mod tests {
    use swiftwater_quic::SocketId;

    use super::*;

    fn meta(port: u16) -> DatagramMeta {
        DatagramMeta {
            remote: ([192, 0, 2, 1], port).into(),
            local_ip: None,
            socket: SocketId::default(),
            ecn: None,
        }
    }

    #[test]
    fn datagrams_come_out_as_they_went_in() {
        let mut batch = HandedOver::default();
        let expected = [(1, &b"one"[..]), (2, b""), (3, b"three")];
        for (port, data) in expected {
            assert!(batch.push(meta(port), data, true));
        }
        for _ in 0..2 {
            let all: Vec<_> = batch
                .datagrams()
                .map(|(meta, data)| (meta.remote.port(), data.to_vec()))
                .collect();
            assert_eq!(all, expected.map(|(port, data)| (port, data.to_vec())));
        }
        batch.clear();
        assert!(batch.is_empty());
        assert_eq!(batch.datagrams().count(), 0);
    }

    #[test]
    fn a_flood_of_made_up_packets_leaves_room_for_established_connections() {
        let mut batch = HandedOver::default();
        for _ in 0..2 {
            let flood = (0..10_000).filter(|_| batch.push(meta(1), &[0xc0; 1200], false));
            assert_eq!(flood.count(), MAX_UNESTABLISHED);
            let migrated = (0..10_000).filter(|_| batch.push(meta(2), &[0x40; 1200], true));
            assert_eq!(migrated.count(), MAX_DATAGRAMS - MAX_UNESTABLISHED);
            assert!(!batch.push(meta(1), b"", false));
            batch.clear();
        }
    }

    #[test]
    fn datagrams_and_bytes_are_limited() {
        let mut batch = HandedOver::default();
        for _ in 0..MAX_DATAGRAMS {
            assert!(batch.push(meta(1), b"x", true));
        }
        assert!(!batch.push(meta(1), b"x", true));
        batch.clear();
        let large = vec![0; 60_000];
        let taken = (0..MAX_DATAGRAMS).filter(|_| batch.push(meta(1), &large, true));
        assert_eq!(taken.count(), MAX_BYTES / large.len());
        batch.clear();
        assert!(batch.data.capacity() <= KEPT);
    }
}
