//! What a sender counts.

use std::time::Duration;

use swiftwater_quic::policy::Copied;

use crate::cost::Cost;

/// Data that was sent again and is known to have arrived.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Recovery {
    /// Index of its frame.
    pub frame: u64,
    /// From its first sending to its first retransmission (a sample of `T_unit`).
    pub detection_time: Duration,
    /// Recovery latency: from its first retransmission to the sending of the copy that arrived first;
    /// zero if that is the first retransmission or an earlier copy. `None` if the receiver had the
    /// frame from other packets.
    pub latency: Option<Duration>,
    /// Which copy arrived first; `None` likewise.
    pub by: Option<Copied>,
    /// Retransmissions sent.
    pub retransmissions: u32,
    /// Replicas sent.
    pub replicas: u32,
}

impl Recovery {
    /// Whether its first retransmission was of no use: the AutoRec paper's recovery latency is the
    /// mean over such data.
    pub fn is_repeated(&self) -> bool {
        match self.by {
            Some(Copied::Original | Copied::Retransmission(1)) | None => false,
            Some(_) => true,
        }
    }

    /// Whether recovery took as long as another detection, or longer: the AutoRec paper's
    /// deterioration.
    pub fn is_deteriorated(&self) -> bool {
        let latency = self.latency.unwrap_or_default();
        !latency.is_zero() && latency >= self.detection_time
    }
}

/// What was sent and what became of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SenderStats {
    /// Frames.
    pub frames: u64,
    /// Packets of all kinds.
    pub packets_sent: u64,
    /// First transmissions.
    pub source_packets: u64,
    /// Retransmissions, probes among them.
    pub retransmitted_packets: u64,
    /// Replicas.
    pub replica_packets: u64,
    /// Repair and parity packets.
    pub repair_packets: u64,
    /// Packets declared lost.
    pub packets_lost: u64,
    /// Packets that were acknowledged after that.
    pub spurious_losses: u64,
    /// Retransmissions because of a probe timeout.
    pub probes: u64,
    /// Packets' worth of frames given up: too late, or dropped by the key-frame rule.
    pub abandoned_packets: u64,
    /// How often a key frame was asked for.
    pub key_frames_requested: u64,
    /// Data that was sent again, whether or not it arrived.
    pub lost_data: u64,
    /// Data that was sent again and arrived, in the order in which that became known.
    pub recoveries: Vec<Recovery>,
    /// Bytes by purpose; headers are the session's own, without IP and UDP.
    pub cost: Cost,
}
