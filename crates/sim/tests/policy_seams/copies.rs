//! Copies of a re-injector: where they stand among retransmissions and new data, and what is reported of
//! those that are not sent.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use swiftwater_link::{LinkConfig, LossModel};
use swiftwater_quic::Priority;
use swiftwater_quic::observe::{Observation, Observer, ObserverFactory, Purpose, SentFrame};
use swiftwater_quic::policy::{
    Hints, Occasion, OutstandingRange, PathChoice, PathView, PolicyFactory, Rank, Reinjection,
    Reinjector, Rejection, RejectionReason,
};
use swiftwater_sim::{Direction, Pair};
use swiftwater_units::{Bandwidth, Instant, PathId, Side};

/// What happened, in order.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    /// Copies were asked for while data waited for retransmission.
    Asked,
    /// A STREAM frame left.
    Sent(Purpose),
    /// A copy will not be sent.
    Rejected(RejectionReason),
}

type Steps = Arc<Mutex<Vec<Step>>>;

/// Whenever data are lost: a copy of each of the newest two ranges in flight.
#[derive(Clone, Debug)]
struct Asking {
    rank: Rank,
    target: PathChoice,
    steps: Steps,
}

impl Reinjector for Asking {
    fn is_asked_on(&self, occasion: Occasion) -> bool {
        occasion == Occasion::LossRetransmitted
    }

    fn can_use_spare_room(&self) -> bool {
        false
    }

    fn on_rejected(&mut self, _: Instant, rejections: &[Rejection]) {
        let mut steps = self.steps.lock().unwrap();
        steps.extend(rejections.iter().map(|it| Step::Rejected(it.reason)));
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
        let newest = ranges.iter().rev().take(2);
        out.extend(newest.map(|range| {
            Reinjection::new(range.stream, range.offset, range.len)
                .rank(self.rank)
                .target(self.target)
        }));
        if !out.is_empty() {
            self.steps.lock().unwrap().push(Step::Asked);
        }
    }
}

impl PolicyFactory for Asking {
    fn reinjector(&self) -> Box<dyn Reinjector> {
        Box::new(self.clone())
    }
}

struct Log(Steps);

impl Observer for Log {
    fn observe(&mut self, _: Instant, observation: &Observation<'_>) {
        if let Observation::PacketSent { frames, .. } = observation {
            let purposes = frames.iter().filter_map(|frame| match frame {
                SentFrame::Stream { purpose, .. } => Some(Step::Sent(*purpose)),
                _ => None,
            });
            self.0.lock().unwrap().extend(purposes);
        }
    }
}

#[derive(Debug)]
struct Logging(Steps);

impl ObserverFactory for Logging {
    fn observer(&self, side: Side) -> Option<Box<dyn Observer>> {
        side.is_server()
            .then(|| Box::new(Log(Arc::clone(&self.0))) as Box<dyn Observer>)
    }
}

/// A lossy download whose server asks for copies.
fn download(rank: Rank, target: PathChoice) -> Vec<Step> {
    let steps = Steps::default();
    let policies = Asking {
        rank,
        target,
        steps: Arc::clone(&steps),
    };
    let logging = Logging(Arc::clone(&steps));
    let link = LinkConfig::default()
        .delay(Duration::from_millis(20))
        .rate(Bandwidth::from_mbps(10));
    let mut pair = Pair::builder()
        .seed(4)
        .links(link.clone(), link.loss(LossModel::Bernoulli(0.03)))
        .server_config(move |config| {
            config.policies = Arc::new(policies);
            config.observer = Some(Arc::new(logging));
        })
        .build()
        .unwrap();
    assert!(pair.connect());
    let report = pair.transfer(1_000_000, Direction::ToClient);
    assert!(report.verified, "{report:?}");
    pair.advance(Duration::from_secs(2));
    let steps = steps.lock().unwrap().clone();
    let asked = steps.iter().filter(|step| **step == Step::Asked).count();
    assert!(asked >= 10, "{asked}");
    steps
}

/// How often a frame of `purpose` was the first one that left after copies had been asked for, and how
/// often another one.
fn first_after_asking(steps: &[Step], purpose: Purpose) -> (usize, usize) {
    let asked = (0..steps.len()).filter(|at| steps[*at] == Step::Asked);
    let firsts: Vec<Step> = asked
        .filter_map(|at| {
            let mut sent = steps[at..].iter();
            sent.find(|step| matches!(step, Step::Sent(_))).copied()
        })
        .collect();
    let is = firsts.iter().filter(|step| **step == Step::Sent(purpose));
    let is = is.count();
    (is, firsts.len() - is)
}

fn replicas(steps: &[Step]) -> usize {
    let replica = Step::Sent(Purpose::Replica);
    steps.iter().filter(|step| **step == replica).count()
}

/// Replicas that left while new data followed them later.
fn replicas_before_new_data(steps: &[Step]) -> usize {
    let last = steps
        .iter()
        .rposition(|step| *step == Step::Sent(Purpose::New));
    replicas(&steps[..last.unwrap()])
}

#[test]
fn copies_of_the_first_rank_leave_before_retransmissions() {
    let steps = download(Rank::First, PathChoice::Any);
    let (replica, other) = first_after_asking(&steps, Purpose::Replica);
    assert!(replica > 9 * other, "{replica} {other}");
}

#[test]
fn copies_of_the_usual_rank_leave_between_retransmissions_and_new_data() {
    let urgent = Priority {
        urgency: 0,
        ..Priority::default()
    };
    for rank in [Rank::BeforeNewData, Rank::WithPriority(urgent)] {
        let steps = download(rank, PathChoice::Not(PathId::new(1)));
        let (retransmission, other) = first_after_asking(&steps, Purpose::Retransmission);
        assert!(retransmission > 9 * other, "{retransmission} {other}");
        assert!(replicas_before_new_data(&steps) >= 10);
    }
}

#[test]
fn copies_that_yield_to_new_data_are_rejected_once_their_range_is_acknowledged() {
    let lazy = Priority {
        urgency: 7,
        ..Priority::default()
    };
    for rank in [Rank::AfterNewData, Rank::WithPriority(lazy)] {
        let steps = download(rank, PathChoice::On(PathId::ZERO));
        // New data wait until the end of the download; then what was asked for long ago has arrived.
        assert_eq!(replicas_before_new_data(&steps), 0);
        let gone = Step::Rejected(RejectionReason::RangeGone);
        assert!(steps.iter().filter(|step| **step == gone).count() >= 10);
    }
}

#[test]
fn copies_for_other_paths_are_rejected() {
    for target in [
        PathChoice::On(PathId::new(1)),
        PathChoice::Not(PathId::ZERO),
    ] {
        let steps = download(Rank::First, target);
        assert_eq!(replicas(&steps), 0);
        let rejected = Step::Rejected(RejectionReason::NoPath);
        assert!(steps.iter().filter(|step| **step == rejected).count() >= 10);
    }
}
