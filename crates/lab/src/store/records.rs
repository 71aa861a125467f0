//! Time series and samples of one run as CSV.
//!
//! Series are in long form: one line for each flow or link and time. Flows and links without points
//! are not in the file.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::StoreError;
use crate::record::{FlowPoint, FlowSeries, LinkPoint, LinkSeries, Sample, Series};

/// Kind of a line of series.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Flow,
    Link,
}

/// A line of series. Columns that the kind doesn't have are empty.
#[derive(Deserialize, Serialize)]
struct Line {
    kind: Kind,
    name: String,
    member: u32,
    t_s: f64,
    delivered_bytes: u64,
    cwnd_bytes: Option<u64>,
    ssthresh_bytes: Option<u64>,
    pacing_mbps: Option<f64>,
    smoothed_rtt_ms: Option<f64>,
    latest_rtt_ms: Option<f64>,
    inflight_bytes: Option<u64>,
    lost_bytes: Option<u64>,
    goodput_mbps: Option<f64>,
    state: String,
    queue_bytes: Option<u64>,
    dropped_packets: Option<u64>,
    marked_packets: Option<u64>,
    redundancy_level: Option<f64>,
    loss_rate: Option<f64>,
    detection_time_ms: Option<f64>,
}

impl Line {
    fn of_flow(flow: &FlowSeries, point: &FlowPoint) -> Self {
        Self {
            kind: Kind::Flow,
            name: flow.group.clone(),
            member: flow.member,
            t_s: point.t_s,
            delivered_bytes: point.delivered_bytes,
            cwnd_bytes: Some(point.cwnd_bytes),
            ssthresh_bytes: point.ssthresh_bytes,
            pacing_mbps: point.pacing_mbps,
            smoothed_rtt_ms: Some(point.smoothed_rtt_ms),
            latest_rtt_ms: Some(point.latest_rtt_ms),
            inflight_bytes: Some(point.inflight_bytes),
            lost_bytes: Some(point.lost_bytes),
            goodput_mbps: Some(point.goodput_mbps),
            state: point.state.clone(),
            queue_bytes: None,
            dropped_packets: None,
            marked_packets: None,
            redundancy_level: point.redundancy_level,
            loss_rate: point.loss_rate,
            detection_time_ms: point.detection_time_ms,
        }
    }

    fn of_link(link: &LinkSeries, point: &LinkPoint) -> Self {
        Self {
            kind: Kind::Link,
            name: link.link.clone(),
            member: 0,
            t_s: point.t_s,
            delivered_bytes: point.delivered_bytes,
            cwnd_bytes: None,
            ssthresh_bytes: None,
            pacing_mbps: None,
            smoothed_rtt_ms: None,
            latest_rtt_ms: None,
            inflight_bytes: None,
            lost_bytes: None,
            goodput_mbps: None,
            state: String::new(),
            queue_bytes: Some(point.queue_bytes),
            dropped_packets: Some(point.dropped_packets),
            marked_packets: Some(point.marked_packets),
            redundancy_level: None,
            loss_rate: None,
            detection_time_ms: None,
        }
    }

    fn flow_point(self) -> FlowPoint {
        FlowPoint {
            t_s: self.t_s,
            cwnd_bytes: self.cwnd_bytes.unwrap_or_default(),
            ssthresh_bytes: self.ssthresh_bytes,
            pacing_mbps: self.pacing_mbps,
            smoothed_rtt_ms: self.smoothed_rtt_ms.unwrap_or_default(),
            latest_rtt_ms: self.latest_rtt_ms.unwrap_or_default(),
            inflight_bytes: self.inflight_bytes.unwrap_or_default(),
            delivered_bytes: self.delivered_bytes,
            lost_bytes: self.lost_bytes.unwrap_or_default(),
            goodput_mbps: self.goodput_mbps.unwrap_or_default(),
            state: self.state,
            redundancy_level: self.redundancy_level,
            loss_rate: self.loss_rate,
            detection_time_ms: self.detection_time_ms,
        }
    }

    fn link_point(&self) -> LinkPoint {
        LinkPoint {
            t_s: self.t_s,
            queue_bytes: self.queue_bytes.unwrap_or_default(),
            dropped_packets: self.dropped_packets.unwrap_or_default(),
            marked_packets: self.marked_packets.unwrap_or_default(),
            delivered_bytes: self.delivered_bytes,
        }
    }
}

/// Encodes series.
pub(super) fn encode_series(series: &Series, path: &Path) -> Result<Vec<u8>, StoreError> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let failed = StoreError::csv(path);
    for flow in &series.flows {
        for point in &flow.points {
            writer
                .serialize(Line::of_flow(flow, point))
                .map_err(&failed)?;
        }
    }
    for link in &series.links {
        for point in &link.points {
            writer
                .serialize(Line::of_link(link, point))
                .map_err(&failed)?;
        }
    }
    finish(writer, path)
}

/// Decodes series.
pub(super) fn decode_series(text: &[u8], path: &Path) -> Result<Series, StoreError> {
    let mut series = Series::default();
    for line in csv::Reader::from_reader(text).into_deserialize::<Line>() {
        let line = line.map_err(StoreError::csv(path))?;
        match line.kind {
            Kind::Flow => {
                let same =
                    |flow: &FlowSeries| flow.group == line.name && flow.member == line.member;
                if !series.flows.last().is_some_and(same) {
                    series.flows.push(FlowSeries {
                        group: line.name.clone(),
                        member: line.member,
                        points: Vec::new(),
                    });
                }
                if let Some(flow) = series.flows.last_mut() {
                    flow.points.push(line.flow_point());
                }
            }
            Kind::Link => {
                if series
                    .links
                    .last()
                    .is_none_or(|link| link.link != line.name)
                {
                    series.links.push(LinkSeries {
                        link: line.name.clone(),
                        points: Vec::new(),
                    });
                }
                if let Some(link) = series.links.last_mut() {
                    link.points.push(line.link_point());
                }
            }
        }
    }
    Ok(series)
}

/// Encodes samples.
pub(super) fn encode_samples(samples: &[Sample], path: &Path) -> Result<Vec<u8>, StoreError> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for sample in samples {
        writer.serialize(sample).map_err(StoreError::csv(path))?;
    }
    finish(writer, path)
}

/// Decodes samples.
pub(super) fn decode_samples(text: &[u8], path: &Path) -> Result<Vec<Sample>, StoreError> {
    csv::Reader::from_reader(text)
        .into_deserialize()
        .map(|sample| sample.map_err(StoreError::csv(path)))
        .collect()
}

fn finish(writer: csv::Writer<Vec<u8>>, path: &Path) -> Result<Vec<u8>, StoreError> {
    writer
        .into_inner()
        .map_err(|error| StoreError::io(path)(error.into_error()))
}
