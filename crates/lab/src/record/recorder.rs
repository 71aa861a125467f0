//! Samples flows and links at fixed intervals.

use std::ops::Range;

use swiftwater_quic::PathStats;
use swiftwater_quic::policy::ReinjectorReport;
use swiftwater_sim::{LinkId, Network};
use swiftwater_units::ByteCount;

use super::{FlowPoint, FlowSeries, LinkPoint, LinkSeries, Series};
use crate::scenario::Setup;
use crate::world::Group;

/// Data recorded so far.
#[derive(Debug)]
pub(crate) struct Recorder {
    flows: Vec<Flow>,
    links: Vec<(LinkId, LinkSeries)>,
}

#[derive(Debug)]
struct Flow {
    group: usize,
    /// Its hosts: one of each, or all of the group's.
    senders: Range<usize>,
    receivers: Range<usize>,
    series: FlowSeries,
    /// Bytes received and the time of the last point.
    received: u64,
    last_s: f64,
}

impl Recorder {
    pub(crate) fn new(groups: &[Group<'_>], links: &[LinkId], setup: &Setup) -> Self {
        let mut flows = Vec::new();
        for (index, group) in groups.iter().enumerate() {
            let mut add = |member, senders, receivers| {
                flows.push(Flow {
                    group: index,
                    senders,
                    receivers,
                    series: FlowSeries {
                        group: group.spec.name.clone(),
                        member,
                        points: Vec::new(),
                    },
                    received: 0,
                    last_s: 0.0,
                });
            };
            if group.is_poisson() {
                add(0, 0..group.senders.len(), 0..group.receivers.len());
            } else {
                for (member, host) in (0..).zip(0..group.senders.len()) {
                    add(member, host..host + 1, host..host + 1);
                }
            }
        }
        let links = links.iter().zip(&setup.links);
        Self {
            flows,
            links: links
                .map(|(id, spec)| {
                    let series = LinkSeries {
                        link: spec.name.clone(),
                        points: Vec::new(),
                    };
                    (*id, series)
                })
                .collect(),
        }
    }

    pub(crate) fn sample(&mut self, network: &Network, groups: &[Group<'_>]) {
        let t_s = network.now().as_secs_f64();
        for flow in &mut self.flows {
            let group = &groups[flow.group];
            let Some(mut point) = point(network, group, flow.senders.clone()) else {
                continue;
            };
            point.t_s = t_s;
            let received = group.received_by(network, flow.receivers.clone());
            let bits = (received - flow.received) as f64 * 8.0;
            point.goodput_mbps = bits / (t_s - flow.last_s) / 1e6;
            (flow.received, flow.last_s) = (received, t_s);
            flow.series.points.push(point);
        }
        for (id, series) in &mut self.links {
            let counters = network.counters(*id);
            series.points.push(LinkPoint {
                t_s,
                queue_bytes: network.queue_stats(*id).bytes.get(),
                dropped_packets: (counters.dropped_queue.packets + counters.dropped_aqm.packets)
                    .get(),
                marked_packets: counters.ecn_marked.packets.get(),
                delivered_bytes: counters.delivered.bytes.get(),
            });
        }
    }

    pub(crate) fn finish(self) -> Series {
        Series {
            flows: self.flows.into_iter().map(|flow| flow.series).collect(),
            links: self.links.into_iter().map(|(_, series)| series).collect(),
        }
    }
}

/// The state of the open connections of some senders, without time and goodput; `None` without any.
/// Of several connections or paths windows, rates and bytes are summed, round-trip times averaged; they
/// have no threshold, no state and no redundancy.
fn point(network: &Network, group: &Group<'_>, senders: Range<usize>) -> Option<FlowPoint> {
    let mut point = FlowPoint::default();
    let mut count = 0;
    for sender in senders {
        for connection in group.connections(network, sender) {
            for path in connection.open_paths() {
                let Some(stats) = connection.path_stats(path) else {
                    continue;
                };
                let state = connection.controller(path);
                let state = state.map_or("", |snapshot| snapshot.state);
                add(&mut point, &stats, state);
                add_recovery(&mut point, &connection.stats().reinjector);
                count += 1;
            }
        }
        let totals = network.totals(group.senders[sender]);
        point.delivered_bytes += totals.bytes_delivered.get();
        point.lost_bytes += totals.bytes_lost.get();
    }
    if count > 1 {
        point.smoothed_rtt_ms /= f64::from(count);
        point.latest_rtt_ms /= f64::from(count);
        point.ssthresh_bytes = None;
        point.state.clear();
        (
            point.redundancy_level,
            point.loss_rate,
            point.detection_time_ms,
        ) = (None, None, None);
    }
    (count > 0).then_some(point)
}

/// Records the values of the re-injector of a connection, once it has decided anything.
fn add_recovery(point: &mut FlowPoint, report: &ReinjectorReport) {
    if report.decisions > 0 {
        point.redundancy_level = Some(f64::from(report.redundancy_level));
        point.loss_rate = Some(report.loss_rate);
        point.detection_time_ms = report.detection_time.map(|time| time.as_secs_f64() * 1e3);
    }
}

/// Adds a connection to a point.
fn add(point: &mut FlowPoint, path: &PathStats, state: &str) {
    point.cwnd_bytes += path.cwnd.get();
    point.ssthresh_bytes = path.ssthresh.map(ByteCount::get);
    if let Some(rate) = path.pacing_rate {
        *point.pacing_mbps.get_or_insert(0.0) += rate.as_mbps_f64();
    }
    if !path.min_rtt.is_zero() {
        point.smoothed_rtt_ms += path.smoothed_rtt.as_secs_f64() * 1e3;
        point.latest_rtt_ms += path.latest_rtt.as_secs_f64() * 1e3;
    }
    point.inflight_bytes += path.bytes_in_flight.get();
    state.clone_into(&mut point.state);
}
