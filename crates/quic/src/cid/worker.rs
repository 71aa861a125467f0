//! Workers: endpoints that share an address, distinguished by the connection IDs that they issue.

/// One of several endpoints that share an address, so that each can run on a processor of its own.
///
/// They must have the same keys and the same generator of connection IDs, one that distinguishes workers
/// apart; the driver brings each datagram to the worker that it is for
/// ([`Routed::OtherWorker`](crate::Routed::OtherWorker)).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Worker {
    /// Which one, from 0.
    pub index: u8,
    /// How many there are; zero counts as one.
    pub count: u8,
}

impl Default for Worker {
    fn default() -> Self {
        Self { index: 0, count: 1 }
    }
}

impl Worker {
    /// This worker's share of a limit of all.
    pub(crate) fn share(self, limit: usize) -> usize {
        limit.div_ceil(usize::from(self.count.max(1)))
    }
}
