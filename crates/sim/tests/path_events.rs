//! Policies learn once of each path that becomes usable for data or ceases to be.

use std::sync::{Arc, Mutex};

use swiftwater_policies::failover::{Failover, FailoverConfig};
use swiftwater_policies::schedulers::{MinRttConfig, SchedulerFactory};
use swiftwater_quic::policy::{
    Demand, Hints, Occasion, OutstandingRange, PathDecision, PathView, PolicyFactory, Reinjection,
    Reinjector, Scheduler,
};
use swiftwater_sim::{Direction, Pair};
use swiftwater_units::{ByteCount, Instant, PathId, Side};

use crate::support::paths::{
    SECOND, attach, builder, connected, has_abandoned, kill, opened, with_two_paths,
};
use crate::support::{SIDES, link, millis, secs};

/// What the policies of one end were told.
#[derive(Debug, Default)]
struct Told {
    scheduler: Vec<(PathId, bool)>,
    reinjector: Vec<Occasion>,
    /// Ranges in flight on the path at each PathDown, and copies that were asked for.
    in_flight: Vec<usize>,
    copies: Vec<usize>,
}

/// Least round-trip time and failover, recorded.
#[derive(Clone, Debug, Default)]
struct Recording(Arc<Mutex<Told>>);

#[derive(Debug)]
struct RecordingScheduler(Box<dyn Scheduler>, Recording);

#[derive(Debug)]
struct RecordingReinjector(Failover, Recording);

impl Scheduler for RecordingScheduler {
    fn next(&mut self, now: Instant, paths: &[PathView], demand: &Demand<'_>) -> PathDecision {
        self.0.next(now, paths, demand)
    }

    fn on_sent(&mut self, now: Instant, path: PathId, bytes: ByteCount) {
        self.0.on_sent(now, path, bytes);
    }

    fn on_path_change(&mut self, now: Instant, path: PathId, is_usable: bool) {
        self.0.on_path_change(now, path, is_usable);
        self.1.0.lock().unwrap().scheduler.push((path, is_usable));
    }
}

impl Reinjector for RecordingReinjector {
    fn can_use_spare_room(&self) -> bool {
        false
    }

    fn is_asked_on(&self, occasion: Occasion) -> bool {
        matches!(occasion, Occasion::PathDown(_) | Occasion::PathUp(_))
    }

    fn reinject(
        &mut self,
        now: Instant,
        occasion: Occasion,
        outstanding: &mut dyn Iterator<Item = OutstandingRange>,
        paths: &[PathView],
        hints: &Hints,
        out: &mut Vec<Reinjection>,
    ) {
        let ranges: Vec<_> = outstanding.collect();
        (self.0).reinject(
            now,
            occasion,
            &mut ranges.iter().copied(),
            paths,
            hints,
            out,
        );
        let mut told = self.1.0.lock().unwrap();
        if let Occasion::PathDown(path) = occasion {
            let view = paths.iter().find(|view| view.id == path);
            assert!(view.is_none_or(|view| !view.is_usable()));
            let on_path = ranges.iter().filter(|range| range.path == path);
            told.in_flight.push(on_path.count());
            told.copies.push(out.len());
        }
        told.reinjector.push(occasion);
    }
}

impl PolicyFactory for Recording {
    fn scheduler(&self) -> Box<dyn Scheduler> {
        let min_rtt = MinRttConfig::default().scheduler();
        Box::new(RecordingScheduler(min_rtt, self.clone()))
    }

    fn reinjector(&self) -> Box<dyn Reinjector> {
        let failover = Failover(FailoverConfig::default());
        Box::new(RecordingReinjector(failover, self.clone()))
    }
}

/// Two paths, of which each end's policies are recorded: client and server.
fn recorded() -> (Pair, swiftwater_sim::Attachment, [Recording; 2]) {
    let ends = [Recording::default(), Recording::default()];
    let [client, server] = ends.clone();
    let builder = builder(link(20, 20))
        .client_config(move |config| config.policies = Arc::new(client))
        .server_config(move |config| config.policies = Arc::new(server));
    let (pair, second) = with_two_paths(builder, link(20, 10));
    (pair, second, ends)
}

fn of_path(recording: &Recording, path: PathId) -> (Vec<bool>, Vec<Occasion>) {
    let told = recording.0.lock().unwrap();
    let scheduler = told.scheduler.iter().filter(|(of, _)| *of == path);
    let is_of = |occasion: &&Occasion| {
        [Occasion::PathUp(path), Occasion::PathDown(path)].contains(occasion)
    };
    (
        scheduler.map(|(_, usable)| *usable).collect(),
        told.reinjector.iter().filter(is_of).copied().collect(),
    )
}

#[test]
fn a_path_that_opens_is_announced_once() {
    let (mut pair, _, [client, server]) = recorded();
    assert!(pair.transfer(1_000_000, Direction::ToClient).verified);
    for end in [&client, &server] {
        let up = (vec![true], vec![Occasion::PathUp(SECOND)]);
        assert_eq!(of_path(end, SECOND), up);
    }
    // The client chose the server's address; the server had to validate that of the client.
    let first = PathId::ZERO;
    assert_eq!(of_path(&client, first), (vec![], vec![]));
    let up = (vec![true], vec![Occasion::PathUp(first)]);
    assert_eq!(of_path(&server, first), up);
}

#[test]
fn a_path_that_is_abandoned_is_announced_once_by_either_end() {
    for side in SIDES {
        let (mut pair, _, [client, server]) = recorded();
        let transfer = pair.start_transfer(10_000_000, Direction::ToClient);
        pair.advance(millis(500));
        let now = pair.now();
        pair.connection(side)
            .unwrap()
            .abandon_path(now, SECOND)
            .unwrap();
        assert!(pair.run_until(|pair| {
            SIDES
                .into_iter()
                .all(|side| has_abandoned(pair, side, SECOND))
        }));
        assert!(pair.finish_transfers() && pair.transfer_report(transfer).verified);
        pair.advance(secs(3));
        for end in [&client, &server] {
            let both = [Occasion::PathUp(SECOND), Occasion::PathDown(SECOND)];
            assert_eq!(of_path(end, SECOND), (vec![true, false], both.to_vec()));
        }
        // The server was sending there, and asked for copies of all that was in flight.
        let told = server.0.lock().unwrap();
        assert!(told.in_flight[0] > 5, "{told:?}");
        assert_eq!(told.copies, told.in_flight);
    }
}

#[test]
fn a_path_that_falls_silent_is_announced_when_it_is_abandoned() {
    let (mut pair, second, [client, server]) = recorded();
    let transfer = pair.start_transfer(40_000_000, Direction::ToClient);
    pair.advance(millis(500));
    kill(&mut pair, second);
    // Probes go unanswered, which schedulers see in the views.
    pair.advance(secs(5));
    let up = vec![Occasion::PathUp(SECOND)];
    assert_eq!(of_path(&server, SECOND), (vec![true], up));
    assert!(pair.run_until(|pair| has_abandoned(pair, Side::Server, SECOND)));
    assert!(pair.finish_transfers() && pair.transfer_report(transfer).verified);
    pair.advance(secs(3));
    for end in [&client, &server] {
        let both = [Occasion::PathUp(SECOND), Occasion::PathDown(SECOND)];
        assert_eq!(of_path(end, SECOND), (vec![true, false], both.to_vec()));
    }
    // An identifier is never used again: that which takes its place is announced anew.
    let third = attach(&mut pair, 201, link(20, 10));
    let third = opened(&mut pair, third);
    let up = (vec![true], vec![Occasion::PathUp(third)]);
    assert_eq!(of_path(&server, third), up);
}

#[test]
fn a_connection_of_one_path_announces_no_further_one() {
    let ends = Recording::default();
    let server = ends.clone();
    let builder =
        builder(link(20, 20)).server_config(move |config| config.policies = Arc::new(server));
    let mut pair = connected(builder);
    assert!(pair.transfer(1_000_000, Direction::ToClient).verified);
    let told = ends.0.lock().unwrap();
    assert_eq!(told.reinjector, [Occasion::PathUp(PathId::ZERO)]);
    assert!(told.copies.is_empty());
}
