//! Results of a transfer over scripted paths.

use std::time::Duration;

use swiftwater_units::{ByteCount, PathId};

/// What a [`Network`](super::Network) did.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TransferReport {
    /// When the last byte arrived at the receiver; `None` if the time was over before.
    pub completed_in: Option<Duration>,
    /// Bytes that arrived more than once.
    pub duplicate_bytes: ByteCount,
    /// Decisions of the scheduler and copies of the re-injector that couldn't be carried out.
    pub invalid_decisions: u64,
    /// Each path, by identifier.
    pub paths: Vec<PathReport>,
}

impl TransferReport {
    /// Bytes sent on all paths.
    pub fn sent(&self) -> ByteCount {
        self.paths.iter().map(|path| path.sent).sum()
    }

    /// Bytes of replicas sent on all paths.
    pub fn replicas(&self) -> ByteCount {
        self.paths.iter().map(|path| path.replicas).sum()
    }

    /// Share of path `id` in the bytes sent, 0 to 1.
    pub fn share(&self, id: PathId) -> f64 {
        let of = |path: &&PathReport| path.id == id;
        let sent = self.paths.iter().find(of).map_or(0, |path| path.sent.get());
        sent as f64 / self.sent().get().max(1) as f64
    }
}

/// What one path carried; bytes are those of stream data.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct PathReport {
    /// The path.
    pub id: PathId,
    /// All bytes.
    pub sent: ByteCount,
    /// Those sent again after a loss.
    pub retransmitted: ByteCount,
    /// Those that the re-injector asked for.
    pub replicas: ByteCount,
    /// Replicas that arrived before any other copy.
    pub useful_replicas: ByteCount,
    /// Packets that the path dropped.
    pub dropped_packets: u64,
    /// Probe timeouts.
    pub probe_timeouts: u64,
}
