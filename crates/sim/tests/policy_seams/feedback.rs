//! Feedback between policies: small messages both ways, of which the newest counts.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use swiftwater_link::{LinkConfig, LossModel};
use swiftwater_quic::Event;
use swiftwater_quic::policy::{
    FeedbackKind, FeedbackPayload, FeedbackPolicy, Hints, Occasion, OutgoingFeedback,
    OutstandingRange, PathView, PolicyFactory, ReceivedFeedback, Reinjection, Reinjector,
};
use swiftwater_sim::{Direction, Pair};
use swiftwater_units::{Bandwidth, Instant, Side};

/// What the policies of one end received.
#[derive(Debug, Default)]
struct Seen {
    feedback: Vec<ReceivedFeedback>,
    reinjector: u64,
    occasions: u64,
}

/// How a policy sends.
#[derive(Clone, Copy, Debug)]
struct Mode {
    ack_eliciting: bool,
    urgent: bool,
    /// Bytes of a message, eight at least.
    size: usize,
}

/// Every `interval`: a message of kind 3 with the number of messages made so far.
struct Counting {
    mode: Mode,
    interval: Duration,
    next_at: Instant,
    made: Arc<Mutex<u64>>,
    until: u64,
    seen: Arc<Mutex<Seen>>,
}

impl fmt::Debug for Counting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Counting")
    }
}

impl FeedbackPolicy for Counting {
    fn poll(
        &mut self,
        now: Instant,
        paths: &[PathView],
        _: &Hints,
        out: &mut Vec<OutgoingFeedback>,
    ) {
        assert_eq!(paths.len(), 1);
        let mut made = self.made.lock().unwrap();
        if now < self.next_at || *made == self.until {
            return;
        }
        *made += 1;
        self.next_at = now + self.interval;
        let mut bytes = made.to_be_bytes().to_vec();
        bytes.resize(self.mode.size, 0);
        out.push(OutgoingFeedback {
            kind: FeedbackKind::new(3).unwrap(),
            payload: FeedbackPayload::new(&bytes).unwrap(),
            ack_eliciting: self.mode.ack_eliciting,
            urgent: self.mode.urgent,
        });
    }

    fn on_feedback(&mut self, _: Instant, feedback: &ReceivedFeedback) {
        self.seen.lock().unwrap().feedback.push(*feedback);
    }

    fn next_deadline(&self) -> Option<Instant> {
        (*self.made.lock().unwrap() < self.until).then_some(self.next_at)
    }
}

/// Sees feedback, asks for nothing.
#[derive(Debug)]
struct Watching(Arc<Mutex<Seen>>);

impl Reinjector for Watching {
    fn on_feedback(&mut self, _: Instant, _: &ReceivedFeedback) {
        self.0.lock().unwrap().reinjector += 1;
    }

    fn reinject(
        &mut self,
        _: Instant,
        occasion: Occasion,
        _: &mut dyn Iterator<Item = OutstandingRange>,
        _: &[PathView],
        _: &Hints,
        _: &mut Vec<Reinjection>,
    ) {
        self.0.lock().unwrap().occasions += u64::from(occasion == Occasion::Feedback);
    }
}

/// The policies of one end, and what they see.
#[derive(Clone, Debug)]
struct End {
    mode: Mode,
    until: u64,
    made: Arc<Mutex<u64>>,
    seen: Arc<Mutex<Seen>>,
}

impl End {
    /// An end that makes `until` messages.
    fn new(mode: Mode, until: u64) -> Self {
        let (made, seen) = Default::default();
        Self {
            mode,
            until,
            made,
            seen,
        }
    }

    fn made(&self) -> u64 {
        *self.made.lock().unwrap()
    }

    /// The counts that the messages received by this end say, checked against their numbers.
    fn received(&self) -> Vec<u64> {
        let seen = self.seen.lock().unwrap();
        let numbers: Vec<u64> = seen.feedback.iter().map(|it| it.sequence).collect();
        assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
        let count = |message: &ReceivedFeedback| {
            let bytes = message.payload.as_bytes();
            u64::from_be_bytes(bytes[..8].try_into().unwrap())
        };
        seen.feedback.iter().map(count).collect()
    }
}

impl PolicyFactory for End {
    fn reinjector(&self) -> Box<dyn Reinjector> {
        Box::new(Watching(Arc::clone(&self.seen)))
    }

    fn feedback(&self) -> Box<dyn FeedbackPolicy> {
        Box::new(Counting {
            mode: self.mode,
            interval: Duration::from_millis(25),
            next_at: Instant::ZERO,
            made: Arc::clone(&self.made),
            until: self.until,
            seen: Arc::clone(&self.seen),
        })
    }
}

const SIZE: usize = 40;

/// A connected pair whose ends accept `accepted` bytes.
fn pair(ends: &[End; 2], loss: f64, accepted: u8) -> Pair {
    let link = LinkConfig::default()
        .delay(Duration::from_millis(20))
        .rate(Bandwidth::from_mbps(10))
        .loss(LossModel::Bernoulli(loss));
    let (client, server) = (ends[0].clone(), ends[1].clone());
    let mut pair = Pair::builder()
        .link(link)
        .seed(9)
        .both_configs(move |config| config.max_feedback_size = accepted)
        .client_config(|config| config.policies = Arc::new(client))
        .server_config(|config| config.policies = Arc::new(server))
        .build()
        .unwrap();
    assert!(pair.connect());
    pair
}

/// FEEDBACK frames that an end sent: no other frame without a counter of its own is in use here.
fn frames(pair: &Pair, side: Side) -> u64 {
    pair.stats(side).frames_sent.of("other")
}

const BOTH: [Side; 2] = [Side::Client, Side::Server];

#[test]
fn reliable_messages_arrive_both_ways_and_the_last_one_in_spite_of_loss() {
    let mode = Mode {
        ack_eliciting: true,
        urgent: true,
        size: SIZE,
    };
    let ends = [End::new(mode, 40), End::new(mode, 40)];
    let mut pair = pair(&ends, 0.1, 64);
    assert!(pair.transfer(300_000, Direction::ToClient).verified);
    pair.advance(Duration::from_secs(10));
    for (end, sender) in ends.iter().zip([Side::Server, Side::Client]) {
        assert_eq!(end.made(), 40);
        let received = end.received();
        assert!(received.len() > 15, "{received:?}");
        assert_eq!(received.last(), Some(&40));
        assert!(frames(&pair, sender) >= received.len() as u64);
        let seen = end.seen.lock().unwrap();
        assert_eq!(seen.reinjector, received.len() as u64);
        assert_eq!(seen.occasions, received.len() as u64);
        assert!(seen.feedback[0].age >= Duration::from_millis(10));
    }
}

#[test]
fn messages_that_may_get_lost_are_sent_once() {
    let mode = Mode {
        ack_eliciting: false,
        urgent: true,
        size: SIZE,
    };
    let ends = [End::new(mode, 100), End::new(mode, 100)];
    let mut pair = pair(&ends, 0.2, 64);
    pair.advance(Duration::from_secs(10));
    for (end, side) in ends.iter().zip(BOTH) {
        assert_eq!(frames(&pair, side), 100);
        let received = end.received();
        assert!((60..100).contains(&received.len()), "{}", received.len());
    }
}

#[test]
fn messages_without_urgency_leave_with_other_packets_and_only_the_newest() {
    for ack_eliciting in [false, true] {
        let mode = Mode {
            ack_eliciting,
            urgent: false,
            size: SIZE,
        };
        let ends = [End::new(mode, 41), End::new(mode, 0)];
        let mut pair = pair(&ends, 0.0, 64);
        let sent = |pair: &Pair| frames(pair, Side::Client);
        pair.advance(Duration::from_millis(200));
        let (before, made) = (sent(&pair), ends[0].made());
        // Nothing else is to be sent for 800 ms.
        pair.advance(Duration::from_millis(800));
        assert_eq!(sent(&pair), before);
        assert!(ends[0].made() >= made + 30);
        // Acknowledgements carry those that elicit none, data the others.
        let direction = if ack_eliciting {
            Direction::ToServer
        } else {
            Direction::ToClient
        };
        assert!(pair.transfer(200_000, direction).verified);
        pair.advance(Duration::from_millis(500));
        assert!(sent(&pair) > before);
        assert!(sent(&pair) <= 41 - 30);
        assert_eq!(ends[1].received().last(), Some(&41));
    }
}

#[test]
fn the_application_reads_the_newest_message_of_a_kind() {
    let mode = Mode {
        ack_eliciting: true,
        urgent: true,
        size: SIZE,
    };
    let ends = [End::new(mode, 5), End::new(mode, 0)];
    let mut pair = pair(&ends, 0.0, 64);
    pair.advance(Duration::from_secs(2));
    let events = pair.take_events(Side::Server);
    let announced = |event: &&Event| matches!(event, Event::FeedbackReceived);
    assert_eq!(events.iter().filter(announced).count(), 1);
    let message = pair.server().recv_feedback().unwrap();
    assert_eq!(message.payload.as_bytes()[7], 5);
    assert_eq!(message.sequence, 4);
    assert!(pair.server().recv_feedback().is_none());
    assert!(pair.client().recv_feedback().is_none());
}

#[test]
fn a_peer_that_accepts_none_or_less_is_sent_none() {
    let mode = Mode {
        ack_eliciting: true,
        urgent: true,
        size: SIZE,
    };
    for accepted in [0, SIZE as u8 - 1] {
        let ends = [End::new(mode, 10), End::new(mode, 10)];
        let mut pair = pair(&ends, 0.0, accepted);
        pair.advance(Duration::from_secs(2));
        for (end, side) in ends.iter().zip(BOTH) {
            // A policy is not even asked if the peer accepts nothing.
            assert_eq!(end.made(), if accepted == 0 { 0 } else { 10 });
            assert_eq!(frames(&pair, side), 0);
            assert!(end.received().is_empty());
            assert_eq!(pair.stats(side).invalid_decisions, end.made());
        }
    }
}
