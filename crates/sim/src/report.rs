//! Results of a dumbbell run, in their printed form.

use serde::Serialize;

/// The result of a dumbbell run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// One entry for each flow, in the order of definition.
    pub flows: Vec<FlowReport>,
    /// The queue of the bottleneck.
    pub queue: QueueReport,
    /// Seconds of real time that the run took. The simulator reads no clock: it sets 0, and the
    /// caller fills it in.
    pub wall_s: f64,
    /// Virtual seconds that were simulated.
    #[serde(skip)]
    pub simulated_s: f64,
    /// Packets that the bottleneck lost at random.
    #[serde(skip)]
    pub random_losses: u64,
    /// Packets that the bottleneck marked CE.
    #[serde(skip)]
    pub ecn_marks: u64,
    /// Bytes that the bottleneck delivered, IP and UDP headers included, over what it could have
    /// delivered, 0 to 1; `None` for a link without a rate.
    #[serde(skip)]
    pub utilisation: Option<f64>,
    /// Tasks processed by the simulator: a machine-independent measure of work.
    #[serde(skip)]
    pub tasks: u64,
}

/// One flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowReport {
    /// Name of the congestion controller.
    pub cc: String,
    /// Application bytes delivered in order at the receiver, in bit/s, from the start of the
    /// handshake to the end of the flow or of the run.
    pub goodput_bps: f64,
    /// Application bytes delivered in order at the receiver.
    pub bytes: u64,
    /// When the receiver read the last byte, in seconds since the start of the run; `None` if it
    /// has not.
    pub finish_s: Option<f64>,
    /// Retransmitted share of stream bytes sent, 0 to 1.
    pub retransmitted_share: f64,
    /// Mean over time of the sender's smoothed round-trip time, in milliseconds; 0 if there is none.
    pub srtt_ms_mean: f64,
    /// One entry for each path, in the order of definition; one for a flow with a single path.
    pub paths: Vec<PathReport>,
    /// When the flow started, in seconds since the start of the run.
    #[serde(skip)]
    pub start_s: f64,
    /// False if a byte differed from the sent one, which is a bug.
    #[serde(skip)]
    pub intact: bool,
}

/// What a sender did on one path.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PathReport {
    /// Bytes sent in packets that count in flight.
    pub bytes_sent: u64,
    /// Stream bytes among them that were sent while they were still in flight, here or on another path.
    pub copies: u64,
    /// Smoothed round-trip time at the end, milliseconds; 0 if there was no sample.
    pub srtt_ms: f64,
}

/// The queue of the bottleneck (of several paths, their sum), the packet in service included.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct QueueReport {
    /// Mean over time, bytes (IP and UDP headers included).
    pub mean_bytes: f64,
    /// Maximum, bytes.
    pub max_bytes: u64,
    /// Packets dropped because it was full or by its discipline; random losses don't count.
    pub dropped_packets: u64,
}
