//! Statistics of a sender.

use std::time::Duration;

use swiftwater_quic::policy::Copied;

use crate::cost::Cost;

/// A data range that was retransmitted and has arrived.
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
    /// Whether its first retransmission was lost: the AutoRec paper's recovery latency is the mean
    /// over such data.
    pub fn is_repeated(&self) -> bool {
        match self.by {
            Some(Copied::Original | Copied::Retransmission(1)) | None => false,
            Some(_) => true,
        }
    }

    /// Whether recovery took at least as long as another detection: the AutoRec paper's
    /// deterioration.
    pub fn is_deteriorated(&self) -> bool {
        let latency = self.latency.unwrap_or_default();
        !latency.is_zero() && latency >= self.detection_time
    }
}

/// Statistics of a sender.
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
    /// Packets declared lost and acknowledged later.
    pub spurious_losses: u64,
    /// Retransmissions because of a probe timeout.
    pub probes: u64,
    /// Packets of frames that were abandoned: too late, or dropped by the key-frame rule.
    pub abandoned_packets: u64,
    /// Requests for key frames.
    pub key_frames_requested: u64,
    /// Data ranges retransmitted, whether or not they arrived.
    pub lost_data: u64,
    /// Data ranges retransmitted and received, in the order of detection.
    pub recoveries: Vec<Recovery>,
    /// Bytes by purpose; headers are those of the session, without IP and UDP.
    pub cost: Cost,
}
