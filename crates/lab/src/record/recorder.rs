//! Looks at flows and links at fixed intervals.

use swiftwater_quic::Connection;
use swiftwater_sim::{LinkId, Network};

use super::{FlowPoint, FlowSeries, LinkPoint, LinkSeries, Series};
use crate::scenario::Setup;
use crate::world::Group;

/// What was seen so far.
#[derive(Debug)]
pub(crate) struct Recorder {
    flows: Vec<Flow>,
    links: Vec<(LinkId, LinkSeries)>,
}

#[derive(Debug)]
struct Flow {
    group: usize,
    member: usize,
    series: FlowSeries,
    /// Bytes received and the time of the last point.
    received: u64,
    last_s: f64,
}

impl Recorder {
    pub(crate) fn new(groups: &[Group<'_>], links: &[LinkId], setup: &Setup) -> Self {
        let flows = groups.iter().enumerate().flat_map(|(group, each)| {
            let members = 0..each.senders.len();
            members.map(move |member| Flow {
                group,
                member,
                series: FlowSeries {
                    group: each.spec.name.clone(),
                    member: member as u32,
                    points: Vec::new(),
                },
                received: 0,
                last_s: 0.0,
            })
        });
        let links = links.iter().zip(&setup.links);
        Self {
            flows: flows.collect(),
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
            let Some(mut point) = flow_point(group.connections(network, flow.member)) else {
                continue;
            };
            point.t_s = t_s;
            let received = group.received_from(network, flow.member);
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
                dropped_packets: counters.dropped_queue.packets.get(),
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
