//! The course of a run: advances time from one sampling time to the next.

use std::time::Duration;

use swiftwater_sim::Network;
use swiftwater_units::Instant;

use super::group::{Builder, Group};
use super::measures::{self, RunFacts};
use super::sampling::{Fairness, GroupMeter, LinkMeter};
use super::topology::{MAX_HOSTS, Topology};
use super::{RunError, RunOutcome};
use crate::record::Recorder;
use crate::scenario::{App, FlowSpec, Setup, Spread, TunnelSpec};

/// Interval of sampling round-trip times and queues, and of checking the end of the run.
const TICK: Duration = Duration::from_millis(10);
/// Length of the bins of fairness over time.
const SECOND: Duration = Duration::from_secs(1);

/// Most transfers of a group, which are drawn before the run.
const MAX_TRANSFERS: f64 = 1e7;

/// An event that is due at fixed intervals.
#[derive(Clone, Copy, Debug)]
struct Clock {
    next: Instant,
    every: Duration,
}

impl Clock {
    fn new(from: Instant, every: Duration) -> Self {
        Self { next: from, every }
    }

    /// True once each time it is due; must be called then.
    fn strikes(&mut self, now: Instant) -> bool {
        let strikes = now >= self.next;
        if strikes {
            self.next += self.every;
        }
        strikes
    }

    fn never() -> Self {
        Self::new(Instant::FAR_FUTURE, Duration::ZERO)
    }
}

/// A run in progress.
#[derive(Debug)]
pub(super) struct Run<'a> {
    setup: &'a Setup,
    network: Network,
    groups: Vec<Group<'a>>,
    group_meters: Vec<GroupMeter>,
    link_meters: Vec<LinkMeter>,
    fairness: Option<Fairness>,
    recorder: Option<Recorder>,
}

impl<'a> Run<'a> {
    pub(super) fn new(setup: &'a Setup, seed: u64) -> Result<Self, RunError> {
        check(setup)?;
        let mut topology = Topology::new(setup, seed)?;
        let mut builder = Builder::new(setup)?;
        let flows = setup.flows.iter();
        let groups = flows
            .map(|flow| builder.add(&mut topology, flow))
            .collect::<Result<Vec<_>, _>>()?;
        let links = topology.forward.iter().zip(&setup.links);
        Ok(Self {
            setup,
            group_meters: groups.iter().map(|_| GroupMeter::default()).collect(),
            link_meters: links.map(|(id, spec)| LinkMeter::new(*id, spec)).collect(),
            fairness: Fairness::new(&groups),
            recorder: setup
                .record
                .map(|_| Recorder::new(&groups, &topology.forward, setup)),
            network: topology.network,
            groups,
        })
    }

    /// Runs to the end.
    pub(super) fn finish(mut self) -> RunOutcome {
        let setup = self.setup;
        let end = Instant::ZERO + setup.duration;
        let warm = Instant::ZERO + setup.warmup;
        let mut tick = Clock::new(Instant::ZERO + TICK, TICK);
        let mut warmup = Clock::new(warm, Duration::MAX);
        let mut bin = Clock::new(warm + setup.bin, setup.bin);
        let mut second = self
            .fairness
            .as_ref()
            .map_or(Clock::never(), |fairness| Clock::new(fairness.from, SECOND));
        let mut record = setup.record.map_or(Clock::never(), |every| {
            Clock::new(Instant::ZERO + every, every)
        });
        let mut over = false;
        while !over {
            let clocks = [tick, warmup, bin, second, record];
            let next = clocks
                .iter()
                .map(|clock| clock.next)
                .fold(end, Instant::min);
            self.network.run_until(next);
            let now = self.network.now();
            if warmup.strikes(now) {
                self.begin_measuring();
            }
            if bin.strikes(now) {
                self.end_bin();
            }
            if second.strikes(now)
                && let Some(fairness) = &mut self.fairness
            {
                fairness.sample(&self.network, &self.groups);
            }
            if record.strikes(now)
                && let Some(recorder) = &mut self.recorder
            {
                recorder.sample(&self.network, &self.groups);
            }
            if tick.strikes(now) {
                self.sample();
                // Data within the warm-up must not be counted as if they came after it.
                over = now > warm && self.is_over();
            }
            over |= now >= end;
        }
        self.outcome()
    }

    fn begin_measuring(&mut self) {
        for (meter, group) in self.group_meters.iter_mut().zip(&self.groups) {
            meter.begin(&self.network, group);
        }
        for meter in &mut self.link_meters {
            meter.begin(&mut self.network);
        }
    }

    fn end_bin(&mut self) {
        for (meter, group) in self.group_meters.iter_mut().zip(&self.groups) {
            meter.end_bin(&self.network, group);
        }
    }

    fn sample(&mut self) {
        if self.network.now() < Instant::ZERO + self.setup.warmup {
            return;
        }
        for (meter, group) in self.group_meters.iter_mut().zip(&self.groups) {
            meter.sample(&self.network, group);
        }
    }

    /// True if every group has an end and has reached it.
    fn is_over(&self) -> bool {
        let mut groups = self.groups.iter();
        groups.all(|group| group.has_end() && group.is_over(&self.network))
    }

    fn outcome(self) -> RunOutcome {
        let (setup, network) = (self.setup, &self.network);
        let mut samples = Vec::new();
        let mut groups = Vec::new();
        for (meter, group) in self.group_meters.into_iter().zip(&self.groups) {
            let (facts, own) = meter.finish(setup, network, group);
            groups.push(facts);
            samples.extend(own);
        }
        let goodputs = groups
            .iter()
            .map(|group| group.goodput_mbps().unwrap_or(0.0));
        let sum: f64 = goodputs.sum();
        for group in &mut groups {
            let own = group.goodput_mbps().filter(|_| sum > 0.0);
            group.share = own.map(|own| own / sum);
        }
        let links = self.link_meters.into_iter().zip(&setup.links);
        let facts = RunFacts {
            groups,
            links: links
                .map(|(meter, spec)| meter.finish(setup, network, spec))
                .collect(),
            measured: network.now() - (Instant::ZERO + setup.warmup),
            fairness: self.fairness.map_or_else(Vec::new, Fairness::finish),
        };
        RunOutcome {
            measures: measures::values(setup, &facts),
            series: self.recorder.map(Recorder::finish).unwrap_or_default(),
            samples,
            simulated_s: network.now().as_secs_f64(),
            tasks: network.stats().tasks,
        }
    }
}

/// Rejects setups that can't be built or measured.
fn check(setup: &Setup) -> Result<(), RunError> {
    let refuse = |what, why| Err(RunError::out_of_range(what, why));
    if setup.links.is_empty() || setup.flows.is_empty() {
        return refuse("the number of links and flows", "at least one of each");
    }
    let mut changes = setup.changes();
    if changes.any(|change| change.link >= setup.links.len()) {
        return refuse("the link of a change", "one of those that there are");
    }
    if !(1_200..=65_507).contains(&setup.datagram_size) {
        return refuse("the datagram size", "1200 to 65507 bytes");
    }
    if setup.duration.is_zero() || setup.warmup >= setup.duration {
        return refuse(
            "the duration",
            "it must be above zero and above the warm-up",
        );
    }
    if setup.bin.is_zero() || setup.record.is_some_and(|every| every.is_zero()) {
        return refuse("an interval of bins or records", "it must be above zero");
    }
    let mut hosts: u64 = 0;
    for flow in &setup.flows {
        let routes = setup.routes(flow);
        let is_unfit =
            |ends: &(usize, usize)| ends.0 == ends.1 || ends.0.max(ends.1) >= setup.routers();
        if routes.is_empty() || routes.iter().any(is_unfit) {
            return refuse(
                "a flow's entry or exit",
                "different routers, of those that the links connect",
            );
        }
        let receivers = match &flow.app {
            App::Poisson { receivers, .. } => *receivers,
            _ => flow.count,
        };
        if flow.count == 0 || receivers == 0 {
            return refuse("the number of a group's flows or hosts", "at least 1");
        }
        // A tunnel adds a proxy and a client to each member.
        let in_tunnels = flow
            .tunnel
            .as_ref()
            .map_or(0, |_| 2 * u64::from(flow.count));
        hosts += u64::from(flow.count) + u64::from(receivers) + in_tunnels;
        if let Some(tunnel) = &flow.tunnel {
            check_tunnel(flow, tunnel)?;
        }
        check_app(&flow.app, setup.duration)?;
    }
    if hosts > u64::from(MAX_HOSTS) {
        return refuse("the number of hosts", "at most 2^20");
    }
    Ok(())
}

fn check_tunnel(flow: &FlowSpec, tunnel: &TunnelSpec) -> Result<(), RunError> {
    let is_between = (flow.enter..flow.exit).contains(&tunnel.router);
    let is_fit = matches!(
        flow.app,
        App::Requests { .. } | App::Live { .. } | App::Video(_)
    );
    if is_between && is_fit && flow.paths.is_none() {
        return Ok(());
    }
    Err(RunError::out_of_range(
        "a tunnel",
        "of a flow in a chain of links whose client is at the exit, with the proxy before it",
    ))
}

fn check_app(app: &App, duration: Duration) -> Result<(), RunError> {
    let refuse = |what, why| Err(RunError::out_of_range(what, why));
    match app {
        App::ConstantRate { rate }
        | App::Live { rate, .. }
        | App::OnOff {
            rate: Some(rate), ..
        } if rate.is_zero() => refuse("an application's rate", "it must be above zero"),
        App::OnOff { on, off, .. } if is_zero(*on) && is_zero(*off) => {
            refuse("bursts and pauses", "not both may be zero")
        }
        App::Poisson { per_second, .. } if !(*per_second > 0.0 && *per_second <= 1e9) => refuse(
            "the rate of transfers",
            "above zero, at most 1e9 per second",
        ),
        App::Poisson {
            per_second, limit, ..
        } if per_second * duration.as_secs_f64() > MAX_TRANSFERS
            && limit.is_none_or(|limit| limit as f64 > MAX_TRANSFERS) =>
        {
            refuse("the number of transfers", "at most ten million")
        }
        _ => Ok(()),
    }
}

fn is_zero(spread: Spread) -> bool {
    let (Spread::Constant(time) | Spread::Exponential(time)) = spread;
    time.is_zero()
}
