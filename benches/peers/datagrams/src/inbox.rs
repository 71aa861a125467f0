//! Datagrams that have arrived.

use std::io::{self, ErrorKind, IoSliceMut};
use std::net::SocketAddr;

use quinn_udp::RecvMeta;

use crate::Socket;

/// Most batches taken with one system call. Each holds up to 64 kB, so that more would only wait longer for
/// their acknowledgement.
const BATCHES: usize = 8;

/// Bytes of a batch: the most that GRO puts together.
const BATCH: usize = 65_535;

/// Buffers for received datagrams.
#[derive(Debug)]
pub struct Inbox {
    room: Vec<u8>,
}

impl Default for Inbox {
    fn default() -> Self {
        Self {
            room: vec![0; BATCHES * BATCH],
        }
    }
}

impl Inbox {
    /// Receives datagrams with one system call, and passes each with its source to `take`. There may be none.
    pub fn receive(
        &mut self,
        socket: &Socket,
        mut take: impl FnMut(SocketAddr, &mut [u8]),
    ) -> io::Result<()> {
        let mut metas = [RecvMeta::default(); BATCHES];
        let mut rooms = self.room.chunks_exact_mut(BATCH);
        let mut slices: [IoSliceMut<'_>; BATCHES] =
            std::array::from_fn(|_| IoSliceMut::new(rooms.next().unwrap_or_default()));
        let count = match socket.receive(&mut slices, &mut metas) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        };
        for (meta, batch) in metas[..count].iter().zip(&mut slices) {
            for datagram in batch[..meta.len].chunks_mut(meta.stride.max(1)) {
                take(meta.addr, datagram);
            }
        }
        Ok(())
    }
}
