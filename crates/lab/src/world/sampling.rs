//! Data collected during a run.

use std::time::Duration;

use swiftwater_link::{Counters, Tally};
use swiftwater_sim::{HostTotals, LinkId, Network};
use swiftwater_units::{Bandwidth, Instant};

use super::capacity;
use super::group::Group;
use super::measures::{GroupFacts, LinkFacts, Member, TimeMeter, Transfer, TunnelFacts, jain};
use super::path_meter::PathMeter;
use crate::record::Sample;
use crate::scenario::{App, LinkSpec, Setup};

/// Of a group of flows.
#[derive(Debug, Default)]
pub(super) struct GroupMeter {
    /// At the end of the warm-up.
    received_before: Vec<u64>,
    totals_before: HostTotals,
    rtt: TimeMeter,
    /// Where links are in parallel.
    paths: PathMeter,
    /// Bytes in each bin since the end of the warm-up.
    bins: Vec<u64>,
    binned: u64,
}

impl GroupMeter {
    /// The warm-up has ended.
    pub(super) fn begin(&mut self, network: &Network, group: &Group<'_>) {
        self.totals_before = group.totals(network);
        let receivers = 0..group.receivers.len();
        self.received_before = receivers
            .map(|receiver| group.received(network, receiver))
            .collect();
        self.binned = self.received_before.iter().sum();
    }

    pub(super) fn sample(&mut self, network: &Network, group: &Group<'_>) {
        for sender in 0..group.senders.len() {
            for connection in group.connections(network, sender) {
                let paths = connection.open_paths();
                for rtt in paths.filter_map(|path| connection.smoothed_rtt(path)) {
                    self.rtt.add(rtt);
                }
                if group.spec.paths.is_some() {
                    self.paths.add_round_trips(connection);
                }
            }
        }
        if group.spec.paths.is_some() {
            self.paths.sample(network, group);
        }
    }

    pub(super) fn end_bin(&mut self, network: &Network, group: &Group<'_>) {
        let received = group.received_by(network, 0..group.receivers.len());
        self.bins.push(received - self.binned);
        self.binned = received;
    }

    /// The result, without the group's share, and the samples.
    pub(super) fn finish(
        self,
        setup: &Setup,
        network: &Network,
        group: &Group<'_>,
    ) -> (GroupFacts, Vec<Sample>) {
        let (begin, end) = (Instant::ZERO + setup.warmup, network.now());
        let finishes = group.finishes(network);
        let active = group.active(end, &finishes);
        let from = active.start.max(begin);
        let members = self.members(network, group, (begin, active.end), &finishes);
        let bins = self.bins.iter().enumerate().filter(|(index, _)| {
            let from_bin = begin + setup.bin * (*index as u32);
            from_bin >= from && from_bin + setup.bin <= active.end
        });
        let mut viewers = group.viewings(network);
        viewers.retain(|viewing| viewing.start >= begin);
        let (transfers, mut samples) = match group.spec.app {
            App::Requests { bytes, .. } => requests(network, group, (begin, end), bytes),
            _ => transfers(group, (begin, end), &finishes),
        };
        if let App::Live { first_frame, .. } = group.spec.app {
            samples.extend(viewers.iter().map(|viewing| {
                let lasted = viewing.start_time();
                sample(group, viewing.start, first_frame.get(), lasted)
            }));
        }
        let totals = group.totals(network).since(&self.totals_before);
        let (paths, longest_gap) = self.paths.finish(group, &totals);
        let facts = GroupFacts {
            is_bulk: group.is_bulk(),
            active: active.end - from,
            share: None,
            members,
            totals,
            repair: group.repairs.finish(end),
            tunnel: tunnel_facts(network, group),
            rtt: self.rtt,
            paths,
            longest_gap,
            bins: bins.map(|(_, bytes)| *bytes).collect(),
            bin: setup.bin,
            transfers,
            viewers,
            video: group.video(network, (begin, end), &totals),
            streaming: group.streaming(network),
            session: None,
            web: None,
            stall_after: match group.spec.app {
                App::Live { stall_after, .. } => stall_after,
                _ => Duration::ZERO,
            },
            intact: group.is_intact(network),
        };
        (facts, samples)
    }

    fn members(
        &self,
        network: &Network,
        group: &Group<'_>,
        (begin, end): (Instant, Instant),
        finishes: &[Option<Instant>],
    ) -> Vec<Member> {
        let is_transfer = matches!(group.spec.app, App::Transfer { .. });
        let receivers = 0..group.receivers.len();
        receivers
            .map(|index| {
                let before = self.received_before.get(index).copied().unwrap_or(0);
                let start = group.starts.get(index).copied();
                let own_end = finishes.get(index).copied().flatten();
                let own_end = own_end.filter(|_| is_transfer).unwrap_or(end);
                Member {
                    bytes: group.received(network, index) - before,
                    active: own_end - start.unwrap_or(group.start()).max(begin),
                }
            })
            .collect()
    }
}

/// The transfers that started in the measured time.
fn transfers(
    group: &Group<'_>,
    (begin, end): (Instant, Instant),
    finishes: &[Option<Instant>],
) -> (Vec<Transfer>, Vec<Sample>) {
    let begun = group.plan.iter().zip(finishes);
    begun
        .filter(|(transfer, _)| transfer.start >= begin && transfer.start < end)
        .map(|(transfer, finish)| {
            let duration = finish.map(|finish| finish - transfer.start);
            let facts = Transfer {
                size: transfer.bytes,
                duration,
                ideal: group.ideal(transfer.bytes),
            };
            let sample = sample(group, transfer.start, transfer.bytes, duration);
            (facts, sample)
        })
        .unzip()
}

/// What the proxies of the group's tunnels did.
fn tunnel_facts(network: &Network, group: &Group<'_>) -> TunnelFacts {
    let mut facts = TunnelFacts::default();
    for stats in group.tunnels.stats(network) {
        facts.payloads += stats.payloads;
        facts.forwarded += stats.forwarded;
        facts.dropped += stats.dropped;
        facts.resent += stats.repair.resent;
        facts.abandoned += stats.repair.abandoned;
        facts.reports += stats.reports;
        let delays = stats.queue_delays_ms.into_iter().map(f64::from);
        facts.queue_delays_ms.extend(delays);
    }
    for repair in group.tunnels.recovery(network) {
        facts.new_bytes += repair.new_bytes;
        facts.replica_bytes += repair.replica_bytes;
    }
    facts
}

/// The requests that were due in the measured time, each for an object of `size` bytes.
fn requests(
    network: &Network,
    group: &Group<'_>,
    (begin, end): (Instant, Instant),
    size: u64,
) -> (Vec<Transfer>, Vec<Sample>) {
    let exchanges = group.exchanges(network).into_iter();
    let due = exchanges.filter(|exchange| exchange.due >= begin && exchange.due < end);
    due.map(|exchange| {
        let facts = Transfer {
            size,
            duration: exchange.duration(),
            ideal: group.ideal(size),
        };
        let sample = sample(group, exchange.due, size, exchange.duration());
        (facts, sample)
    })
    .unzip()
}

fn sample(group: &Group<'_>, start: Instant, bytes: u64, duration: Option<Duration>) -> Sample {
    Sample {
        group: group.spec.name.clone(),
        start_s: start.as_secs_f64(),
        size_bytes: bytes,
        duration_ms: duration.map(|duration| duration.as_secs_f64() * 1e3),
    }
}

/// Of a link in the direction to higher routers.
#[derive(Debug)]
pub(super) struct LinkMeter {
    id: LinkId,
    mean_rate: Option<Bandwidth>,
    counters_before: Counters,
}

impl LinkMeter {
    pub(super) fn new(id: LinkId, spec: &LinkSpec) -> Self {
        Self {
            id,
            mean_rate: spec.forward.rate.mean(),
            counters_before: Counters::default(),
        }
    }

    /// The warm-up has ended.
    pub(super) fn begin(&mut self, network: &mut Network) {
        self.counters_before = *network.counters(self.id);
        network.reset_queue_stats(self.id);
    }

    pub(super) fn finish(self, setup: &Setup, network: &Network, spec: &LinkSpec) -> LinkFacts {
        let end = network.now() - Instant::ZERO;
        let rtt = spec.forward.bdp_rtt.unwrap_or(setup.rtt);
        LinkFacts {
            counters: since(network.counters(self.id), &self.counters_before),
            queue: network.queue_stats(self.id),
            capacity: capacity::bytes(&spec.forward, setup.warmup, end),
            bdp: self.mean_rate.map(|rate| rate.bytes_in(rtt) as f64),
        }
    }
}

/// Counters of a link since `earlier`.
fn since(now: &Counters, earlier: &Counters) -> Counters {
    let tally = |now: Tally, earlier: Tally| Tally {
        packets: now.packets - earlier.packets,
        bytes: now.bytes - earlier.bytes,
    };
    Counters {
        enqueued: tally(now.enqueued, earlier.enqueued),
        delivered: tally(now.delivered, earlier.delivered),
        dropped_queue: tally(now.dropped_queue, earlier.dropped_queue),
        dropped_aqm: tally(now.dropped_aqm, earlier.dropped_aqm),
        dropped_random: tally(now.dropped_random, earlier.dropped_random),
        ecn_marked: tally(now.ecn_marked, earlier.ecn_marked),
        ..*now
    }
}

/// Fairness among all bulk flows, second by second from the start of the last one until the first
/// one stops.
#[derive(Debug)]
pub(super) struct Fairness {
    pub(super) from: Instant,
    until: Instant,
    received: Vec<u64>,
    seconds: Vec<f64>,
}

impl Fairness {
    /// `None` for fewer than two flows.
    pub(super) fn new(groups: &[Group<'_>]) -> Option<Self> {
        let bulk = || groups.iter().filter(|group| group.is_bulk());
        let starts: Vec<_> = bulk().flat_map(|group| &group.starts).copied().collect();
        if starts.len() < 2 {
            return None;
        }
        Some(Self {
            from: starts.into_iter().max()?,
            until: bulk().map(Group::stop).min()?,
            received: Vec::new(),
            seconds: Vec::new(),
        })
    }

    /// Called at the start of the first second and at the end of each.
    pub(super) fn sample(&mut self, network: &Network, groups: &[Group<'_>]) {
        if network.now() > self.until {
            return;
        }
        let mut received = Vec::with_capacity(self.received.len());
        for group in groups.iter().filter(|group| group.is_bulk()) {
            let receivers = 0..group.receivers.len();
            received.extend(receivers.map(|receiver| group.received(network, receiver)));
        }
        if !self.received.is_empty() {
            let pairs = received.iter().zip(&self.received);
            let bytes: Vec<_> = pairs.map(|(now, before)| (now - before) as f64).collect();
            self.seconds.push(jain(&bytes).unwrap_or(0.0));
        }
        self.received = received;
    }

    pub(super) fn finish(self) -> Vec<f64> {
        self.seconds
    }
}
