//! A scheduler: what it is shown of the paths and of the data that wait.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use swiftwater_link::{LinkConfig, LossModel};
use swiftwater_quic::policy::{
    CopyDemand, Demand, Hints, Occasion, OutstandingRange, PathChoice, PathDecision,
    PathPreference, PathStatus, PathView, PolicyFactory, Rank, Reinjection, Reinjector, Scheduler,
};
use swiftwater_sim::{Direction, Pair};
use swiftwater_units::{Bandwidth, ByteCount, Instant, PathId, Side};

/// The path and the copies that a scheduler was shown, call by call.
type Shown = Arc<Mutex<Vec<(PathView, Vec<CopyDemand>)>>>;

/// The first path, a datagram at a time.
#[derive(Clone, Debug, Default)]
struct Recording(Shown);

impl Scheduler for Recording {
    fn next(&mut self, _: Instant, paths: &[PathView], demand: &Demand<'_>) -> PathDecision {
        let call = (paths[0], demand.copies.to_vec());
        self.0.lock().unwrap().push(call);
        PathDecision::once(paths[0].id)
    }
}

/// Asks for three copies whenever data are lost: two with one target and rank, one with others.
#[derive(Debug)]
struct ThreeCopies;

impl Reinjector for ThreeCopies {
    fn is_asked_on(&self, occasion: Occasion) -> bool {
        occasion == Occasion::LossRetransmitted
    }

    fn can_use_spare_room(&self) -> bool {
        false
    }

    fn reinject(
        &mut self,
        _: Instant,
        _: Occasion,
        outstanding: &mut dyn Iterator<Item = OutstandingRange>,
        _: &[PathView],
        _: &Hints,
        out: &mut Vec<Reinjection>,
    ) {
        let ranges: Vec<OutstandingRange> = outstanding.collect();
        if let [.., third, second, first] = &ranges[..] {
            out.push(first.reinjection().rank(Rank::First));
            out.push(second.reinjection().rank(Rank::First));
            out.push(third.reinjection().target(PathChoice::On(PathId::ZERO)));
        }
    }
}

impl PolicyFactory for Recording {
    fn scheduler(&self) -> Box<dyn Scheduler> {
        Box::new(self.clone())
    }

    fn reinjector(&self) -> Box<dyn Reinjector> {
        Box::new(ThreeCopies)
    }
}

/// A pair and what its server's scheduler is shown, over links with this loss towards the client.
fn recorded(loss: f64) -> (Pair, Shown) {
    let recording = Recording::default();
    let shown = Arc::clone(&recording.0);
    let link = LinkConfig::default()
        .delay(Duration::from_millis(20))
        .rate(Bandwidth::from_mbps(10));
    let mut pair = Pair::builder()
        .seed(4)
        .links(link.clone(), link.loss(LossModel::Bernoulli(loss)))
        .server_config(move |config| config.policies = Arc::new(recording))
        .build()
        .unwrap();
    assert!(pair.connect());
    (pair, shown)
}

#[test]
fn copies_that_wait_are_part_of_the_demand() {
    let (mut pair, shown) = recorded(0.03);
    let report = pair.transfer(1_000_000, Direction::ToClient);
    assert!(report.verified, "{report:?}");
    pair.advance(Duration::from_secs(2));
    let shown = shown.lock().unwrap();
    let with_all: Vec<_> = shown
        .iter()
        .filter(|(_, copies)| copies.len() == 2)
        .collect();
    assert!(with_all.len() >= 10, "{}", with_all.len());
    for (_, copies) in with_all {
        // Those of one target and rank are one entry.
        let of = |target, rank| {
            let is_same = |copy: &&CopyDemand| copy.target == target && copy.rank == rank;
            let bytes = copies.iter().find(is_same).map(|copy| copy.bytes);
            bytes.unwrap_or_else(|| panic!("{copies:?}"))
        };
        assert!(of(PathChoice::Any, Rank::First) > ByteCount::ZERO);
        assert!(of(PathChoice::On(PathId::ZERO), Rank::BeforeNewData) > ByteCount::ZERO);
    }
    let (_, left) = shown.last().unwrap();
    assert!(left.is_empty(), "all left or were rejected: {left:?}");
}

#[test]
fn the_application_sets_status_and_cost_of_a_path() {
    let (mut pair, shown) = recorded(0.0);
    let of_default = PathPreference::default();
    let shown_as = |shown: &Shown| {
        let calls = std::mem::take(&mut *shown.lock().unwrap());
        let views: Vec<_> = calls.iter().map(|(path, _)| *path).collect();
        assert!(!views.is_empty());
        assert!(
            views
                .iter()
                .all(|view| view.peer_status == PathStatus::Available)
        );
        views
            .iter()
            .map(|view| (view.local_status, view.cost))
            .collect::<Vec<_>>()
    };
    let before = shown_as(&shown);
    assert!(
        before
            .iter()
            .all(|it| *it == (of_default.status, of_default.cost))
    );
    let preference = PathPreference {
        status: PathStatus::Backup,
        cost: 3,
    };
    let server = pair.connection(Side::Server).unwrap();
    assert!(!server.set_path_preference(PathId::new(1), preference));
    assert!(server.set_path_preference(PathId::ZERO, preference));
    assert!(pair.transfer(100_000, Direction::ToClient).verified);
    let after = shown_as(&shown);
    assert!(
        after.iter().all(|it| *it == (PathStatus::Backup, 3)),
        "{after:?}"
    );
}
