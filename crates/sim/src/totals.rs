//! Totals over all connections of a host.

use std::ops::AddAssign;
use std::time::Duration;

use swiftwater_quic::{ConnectionStats, RepairStats};
use swiftwater_units::{ByteCount, PacketCount};

/// Local sockets of a host whose totals are kept apart: paths of a connection at most.
const SOCKETS: usize = 8;

/// What was sent from one local socket.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SocketTotals {
    /// Bytes sent in packets that count as in flight.
    pub bytes_sent: ByteCount,
    /// Stream bytes among them that were copies of what was still in flight.
    pub copies: ByteCount,
}

/// Totals of all present and past connections of a host.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct HostTotals {
    /// Connections.
    pub connections: u64,
    /// Packets sent that count as in flight: those that can be declared lost.
    pub packets_sent: PacketCount,
    /// Their bytes.
    pub bytes_sent: ByteCount,
    /// Packets declared lost.
    pub packets_lost: PacketCount,
    /// Packets declared lost that were acknowledged later.
    pub spurious_losses: PacketCount,
    /// Bytes acknowledged, in packets.
    pub bytes_delivered: ByteCount,
    /// Bytes declared lost, in packets.
    pub bytes_lost: ByteCount,
    /// Stream bytes sent, retransmissions included.
    pub stream_bytes_sent: ByteCount,
    /// Stream bytes retransmitted.
    pub stream_bytes_retransmitted: ByteCount,
    /// Recovery of lost stream data.
    pub repair: RepairStats,
    /// The smallest round-trip time sample; `None` without one.
    pub min_rtt: Option<Duration>,
    /// By local socket: of a host with several interfaces by interface. Those beyond 8 are left out.
    pub sockets: [SocketTotals; SOCKETS],
}

impl HostTotals {
    /// Adds a connection.
    pub(crate) fn add(&mut self, stats: &ConnectionStats) {
        self.connections += 1;
        self.stream_bytes_sent += stats.stream_bytes_sent;
        self.stream_bytes_retransmitted += stats.stream_bytes_retransmitted;
        self.repair += stats.repair;
        for path in stats.paths.iter().chain(&stats.ended_paths) {
            self.packets_sent += path.sent_packets;
            self.bytes_sent += path.sent_bytes;
            self.packets_lost += path.lost_packets;
            self.spurious_losses += path.spurious_losses;
            self.bytes_delivered += path.delivered;
            self.bytes_lost += path.lost_bytes;
            if let Some(socket) = self.sockets.get_mut(usize::from(path.local.socket.0)) {
                socket.bytes_sent += path.sent_bytes;
                socket.copies += path.copies;
            }
            if !path.min_rtt.is_zero() {
                let least = self.min_rtt.unwrap_or(path.min_rtt).min(path.min_rtt);
                self.min_rtt = Some(least);
            }
        }
    }
}

impl AddAssign for HostTotals {
    fn add_assign(&mut self, other: Self) {
        self.connections += other.connections;
        self.packets_sent += other.packets_sent;
        self.bytes_sent += other.bytes_sent;
        self.packets_lost += other.packets_lost;
        self.spurious_losses += other.spurious_losses;
        self.bytes_delivered += other.bytes_delivered;
        self.bytes_lost += other.bytes_lost;
        self.stream_bytes_sent += other.stream_bytes_sent;
        self.stream_bytes_retransmitted += other.stream_bytes_retransmitted;
        self.repair += other.repair;
        for (own, other) in self.sockets.iter_mut().zip(&other.sockets) {
            own.bytes_sent += other.bytes_sent;
            own.copies += other.copies;
        }
        let both = self.min_rtt.into_iter().chain(other.min_rtt);
        self.min_rtt = both.min();
    }
}

impl HostTotals {
    /// The difference to `earlier`. The smallest round-trip time and the longest recovery latency
    /// are those of the whole time.
    #[must_use]
    pub fn since(mut self, earlier: &Self) -> Self {
        self.connections = self.connections.saturating_sub(earlier.connections);
        self.packets_sent -= earlier.packets_sent;
        self.bytes_sent -= earlier.bytes_sent;
        self.packets_lost -= earlier.packets_lost;
        self.spurious_losses -= earlier.spurious_losses;
        self.bytes_delivered -= earlier.bytes_delivered;
        self.bytes_lost -= earlier.bytes_lost;
        self.stream_bytes_sent -= earlier.stream_bytes_sent;
        self.stream_bytes_retransmitted -= earlier.stream_bytes_retransmitted;
        self.repair = self.repair.since(&earlier.repair);
        for (own, earlier) in self.sockets.iter_mut().zip(&earlier.sockets) {
            own.bytes_sent -= earlier.bytes_sent;
            own.copies -= earlier.copies;
        }
        self
    }
}
