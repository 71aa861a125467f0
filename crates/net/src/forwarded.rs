//! Datagrams that one worker received for connections of another.

use swiftwater_quic::DatagramMeta;

use crate::socket::DatagramBatch;

/// Datagrams of other workers that may wait: more than one turn of theirs brings.
const MAX_DATAGRAMS: usize = 1024;
/// Bytes of them.
const MAX_BYTES: usize = 4 << 20;
/// Memory that an empty batch keeps for the next one, bytes.
const KEPT: usize = 256 * 1024;

/// Datagrams, one after another in one buffer, so that none costs an allocation.
#[derive(Default)]
pub(crate) struct Forwarded {
    /// Where each came from, and its size in bytes.
    metas: Vec<(DatagramMeta, usize)>,
    data: Vec<u8>,
}

impl Forwarded {
    pub(crate) fn is_empty(&self) -> bool {
        self.metas.is_empty()
    }

    /// Appends a datagram. False if there is no room for it: the worker doesn't keep up.
    pub(crate) fn push(&mut self, meta: DatagramMeta, datagram: &[u8]) -> bool {
        let full =
            self.metas.len() >= MAX_DATAGRAMS || self.data.len() + datagram.len() > MAX_BYTES;
        if !full {
            self.metas.push((meta, datagram.len()));
            self.data.extend_from_slice(datagram);
        }
        !full
    }

    /// Forgets the datagrams, and gives back the memory of an unusually large batch.
    pub(crate) fn clear(&mut self) {
        self.metas.clear();
        self.data.clear();
        self.data.shrink_to(KEPT);
    }
}

impl DatagramBatch for Forwarded {
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
        let mut batch = Forwarded::default();
        let expected = [(1, &b"one"[..]), (2, b""), (3, b"three")];
        for (port, data) in expected {
            assert!(batch.push(meta(port), data));
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
    fn datagrams_and_bytes_are_limited() {
        let mut batch = Forwarded::default();
        for _ in 0..MAX_DATAGRAMS {
            assert!(batch.push(meta(1), b"x"));
        }
        assert!(!batch.push(meta(1), b"x"));
        batch.clear();
        let large = vec![0; 60_000];
        let taken = (0..MAX_DATAGRAMS).filter(|_| batch.push(meta(1), &large));
        assert_eq!(taken.count(), MAX_BYTES / large.len());
        batch.clear();
        assert!(batch.data.capacity() <= KEPT);
    }
}
