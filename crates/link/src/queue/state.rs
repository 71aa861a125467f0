//! Internal state of a discipline, for recording.

use swiftwater_units::{ByteCount, PacketCount};

use super::delay::DelayStats;

/// The state of a queue's discipline.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum AqmState {
    /// The discipline has none: drop-tail.
    None,
    /// RED.
    Red {
        /// The average queue length, bytes.
        average: f64,
        /// Probability of a drop or mark at this average, 0 to 1, before it is spread evenly.
        probability: f64,
    },
    /// CoDel.
    CoDel {
        /// The dropping state: the delay has been above the target for an interval.
        dropping: bool,
        /// Packets dropped or marked since it was entered; including the retained count of RFC
        /// 8289, section 5.
        count: u32,
    },
    /// FQ-CoDel.
    FqCoDel {
        /// Queues in the list of new flows.
        new: usize,
        /// Queues in the list of old flows.
        old: usize,
    },
    /// DualPI2.
    DualPi2(DualPi2State),
}

/// The state of DualPI2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualPi2State {
    /// The base probability p', 0 to 1.
    pub base: f64,
    /// p_C, the probability of drops or marks in the classic queue: p' squared.
    pub classic_probability: f64,
    /// p_CL, the least marking probability in the L4S queue: k p', at most 1.
    pub coupled_probability: f64,
    /// The queue of L4S packets.
    pub l4s: DualQueueState,
    /// The queue of all others.
    pub classic: DualQueueState,
}

/// One of the two queues of DualPI2. The packet in service is in neither.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualQueueState {
    /// Bytes in it at present.
    pub bytes: ByteCount,
    /// Packets in it at present.
    pub packets: PacketCount,
    /// Packets sent since the creation of the link.
    pub sent: PacketCount,
    /// Those of them that were marked by this queue.
    pub marked: PacketCount,
    /// Packets dropped by the discipline since the creation of the link.
    pub dropped: PacketCount,
    /// Waiting time of sent packets since the last restart of the statistics.
    pub delay: DelayStats,
}
