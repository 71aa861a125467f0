//! Time series and samples of one run. What is recorded is plain data; files are written by
//! [`store`](crate::store).

mod recorder;

use serde::{Deserialize, Serialize};

pub(crate) use recorder::Recorder;

/// All recorded data of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// One for each flow (each member of a group); one for all of a group of Poisson transfers.
    pub flows: Vec<FlowSeries>,
    /// One for each link between routers, in the direction to higher routers.
    pub links: Vec<LinkSeries>,
}

/// Time series of one flow, while it has a connection that is open.
///
/// Of a group of Poisson transfers, which has many connections at once, and of a flow over several paths, windows, rates and bytes are
/// summed over the open ones, round-trip times averaged; threshold, state and the values of
/// `recovery` are absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowSeries {
    /// Name of the group.
    pub group: String,
    /// Index of the member, from 0.
    pub member: u32,
    /// In order of time.
    pub points: Vec<FlowPoint>,
}

/// State of a flow at one time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FlowPoint {
    /// Seconds since the start of the run.
    pub t_s: f64,
    /// Congestion window.
    pub cwnd_bytes: u64,
    /// Slow-start threshold, if any.
    pub ssthresh_bytes: Option<u64>,
    /// Pacing rate, Mbit/s, if any.
    pub pacing_mbps: Option<f64>,
    /// `smoothed_rtt`, milliseconds; 0 before the first sample.
    pub smoothed_rtt_ms: f64,
    /// Last round-trip sample, milliseconds; 0 before the first.
    pub latest_rtt_ms: f64,
    /// Bytes in flight.
    pub inflight_bytes: u64,
    /// Bytes acknowledged so far.
    pub delivered_bytes: u64,
    /// Bytes declared lost so far.
    pub lost_bytes: u64,
    /// Application bytes received in order, over the time since the point before, Mbit/s.
    pub goodput_mbps: f64,
    /// State of the congestion controller.
    pub state: String,
    /// Replicas that the flow's `recovery` permits for each lost data range; absent before its first
    /// decision.
    pub redundancy_level: Option<f64>,
    /// Loss rate that it uses, 0 to 1.
    pub loss_rate: Option<f64>,
    /// Loss detection time that it uses, milliseconds.
    pub detection_time_ms: Option<f64>,
}

/// Time series of one link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkSeries {
    /// Its name.
    pub link: String,
    /// In order of time.
    pub points: Vec<LinkPoint>,
}

/// State of a link at one time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LinkPoint {
    /// Seconds since the start of the run.
    pub t_s: f64,
    /// Queue, the packet in service included.
    pub queue_bytes: u64,
    /// Packets dropped by the queue so far, because it was full or by its discipline.
    pub dropped_packets: u64,
    /// Packets marked CE so far.
    pub marked_packets: u64,
    /// Bytes that left the link so far.
    pub delivered_bytes: u64,
}

/// One transfer (or one viewer's start) of a group.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Sample {
    /// Name of the group.
    pub group: String,
    /// Start, seconds since the start of the run.
    pub start_s: f64,
    /// Bytes.
    pub size_bytes: u64,
    /// Duration, milliseconds; `None` if it did not end.
    pub duration_ms: Option<f64>,
}
