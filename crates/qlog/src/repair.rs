//! The events of the namespace `swiftwater`: data under loss recovery. `schema/swiftwater.cddl`
//! defines them.

use std::time::Duration;

use serde::Serialize;
use swiftwater_quic::policy::{Copied, DataRange, ReinjectorReport, RepairCause};

use crate::frames::Raw;
use crate::text::{finite, millis};

/// A data range.
#[derive(Serialize)]
pub(crate) struct Range {
    stream_id: u64,
    offset: u64,
    raw: Raw,
}

impl Range {
    pub(crate) fn new(stream_id: u64, offset: u64, len: u32) -> Self {
        Self {
            stream_id,
            offset,
            raw: Raw { length: len.into() },
        }
    }
}

impl From<DataRange> for Range {
    fn from(range: DataRange) -> Self {
        Self::new(range.stream.get(), range.offset, range.len)
    }
}

/// `swiftwater:data_lost`.
#[derive(Serialize)]
pub(crate) struct DataLost {
    #[serde(flatten)]
    range: Range,
    detection_time: f64,
    trigger: &'static str,
}

impl DataLost {
    pub(crate) fn new(range: DataRange, detection_time: Duration, cause: RepairCause) -> Self {
        Self {
            range: range.into(),
            detection_time: millis(detection_time),
            trigger: match cause {
                RepairCause::Loss => "loss",
                RepairCause::Probe => "pto_probe",
            },
        }
    }
}

/// `swiftwater:replica_sent`.
#[derive(Serialize)]
pub(crate) struct ReplicaSent {
    pub(crate) packet_number: u64,
    #[serde(flatten)]
    pub(crate) range: Range,
}

/// `swiftwater:data_recovered`.
#[derive(Serialize)]
pub(crate) struct DataRecovered {
    #[serde(flatten)]
    pub(crate) range: Range,
    pub(crate) by: &'static str,
    /// The number of the retransmission, if it is one; 1 is the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) round: Option<u32>,
    pub(crate) recovery_latency: f64,
    pub(crate) detection_time: f64,
    pub(crate) retransmissions: u32,
    pub(crate) replicas: u32,
}

/// The name of a copy, and its round if it is a retransmission.
pub(crate) fn copy(by: Copied) -> (&'static str, Option<u32>) {
    match by {
        Copied::Original => ("original", None),
        Copied::Retransmission(round) => ("retransmission", Some(round)),
        Copied::Replica => ("replica", None),
    }
}

/// `swiftwater:redundancy_level`.
#[derive(Serialize)]
pub(crate) struct RedundancyLevel {
    level: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    loss_rate: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detection_time: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    silence_threshold: Option<f64>,
    queued: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget_used: Option<f64>,
    decisions: u64,
}

impl From<&ReinjectorReport> for RedundancyLevel {
    fn from(report: &ReinjectorReport) -> Self {
        Self {
            level: report.redundancy_level,
            loss_rate: finite(report.loss_rate),
            detection_time: report.detection_time.map(millis),
            silence_threshold: report.silence_threshold.map(millis),
            queued: report.queued,
            budget_used: report.budget_used.and_then(finite),
            decisions: report.decisions,
        }
    }
}
