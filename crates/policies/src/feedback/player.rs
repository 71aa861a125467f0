//! Feedback of a player: the application's hints about what it plays, as QoE signals to the sender (XLINK,
//! SIGCOMM 2021; Chorus, `MobiCom` 2024).
//!
//! | hint | sent |
//! |---|---|
//! | [`Hints::player`] | when it changed, at most once per `min-interval`, at least once per `max-interval` |
//! | [`Hints::expectation`], [`Hints::range_deadline`] | at once and once, when it changed |
//!
//! The state of the player leaves in a packet of its own, which the peer need not acknowledge: the next state
//! replaces one that was lost. Only its start and end of a stall are delivered reliably, as
//! expectations and deadlines are. A signal that is larger than the peer accepts is not sent.

use std::time::Duration;

use swiftwater_quic::policy::{
    ChunkExpectation, FeedbackPolicy, Hints, OutgoingFeedback, PathView, PlayerSignal, QoeSignal,
    RangeDeadline, ReceivedFeedback,
};
use swiftwater_tunable::tunable;
use swiftwater_units::Instant;

use super::FeedbackFactory;

/// Parameters of [`PlayerFeedback`]. The papers publish no intervals; the defaults are the project's.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PlayerFeedbackConfig {
    /// Least time between two states of the player, 1 ms to 10 s; default 50 ms.
    pub min_interval: Duration,
    /// Longest time between two states while there is a player, 1 ms to 60 s; default 500 ms. Less than
    /// `min_interval` counts as that. The peer takes three times its own value of it for silence
    /// ([`XlinkConfig::report_interval`](crate::xlink::XlinkConfig::report_interval)).
    pub max_interval: Duration,
}

impl Default for PlayerFeedbackConfig {
    fn default() -> Self {
        Self {
            min_interval: Duration::from_millis(50),
            max_interval: Duration::from_millis(500),
        }
    }
}

tunable!(PlayerFeedbackConfig {
    "min-interval" => min_interval in Duration::from_millis(1)..=Duration::from_secs(10), "least time between two states of the player";
    "max-interval" => max_interval in Duration::from_millis(1)..=Duration::from_secs(60), "longest time between two states of the player";
});

impl FeedbackFactory for PlayerFeedbackConfig {
    fn feedback(&self) -> Box<dyn FeedbackPolicy> {
        Box::new(PlayerFeedback::new(*self))
    }
}

/// The state of the player that was sent last.
#[derive(Clone, Copy, Debug)]
struct Sent {
    state: PlayerSignal,
    at: Instant,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct PlayerFeedback {
    config: PlayerFeedbackConfig,
    /// Bytes of a payload that the peer accepts.
    peer_limit: usize,
    player: Option<Sent>,
    expectation: Option<ChunkExpectation>,
    range_deadline: Option<RangeDeadline>,
    /// When the state of the player is to be sent next.
    due: Option<Instant>,
}

impl PlayerFeedback {
    /// Nothing was sent yet.
    pub fn new(config: PlayerFeedbackConfig) -> Self {
        Self {
            config,
            peer_limit: 0,
            player: None,
            expectation: None,
            range_deadline: None,
            due: None,
        }
    }

    /// Sends the state of the player if it is time to.
    fn poll_player(
        &mut self,
        now: Instant,
        state: Option<PlayerSignal>,
        out: &mut Vec<OutgoingFeedback>,
    ) {
        let Some(state) = state else {
            (self.player, self.due) = (None, None);
            return;
        };
        let due = self.player.map(|sent| self.due_after(&sent, &state));
        if let Some(at) = due.filter(|at| *at > now) {
            self.due = Some(at);
            return;
        }
        let is_turn = self
            .player
            .is_none_or(|sent| sent.state.stalled != state.stalled);
        self.send(&QoeSignal::Player(state), is_turn, out);
        let sent = Sent { state, at: now };
        self.due = Some(self.due_after(&sent, &state));
        self.player = Some(sent);
    }

    /// When `state` is to be sent after what was sent last.
    fn due_after(&self, sent: &Sent, state: &PlayerSignal) -> Instant {
        let PlayerFeedbackConfig {
            min_interval,
            max_interval,
        } = self.config;
        sent.at
            + if sent.state == *state {
                max_interval.max(min_interval)
            } else {
                min_interval
            }
    }

    /// Sends a signal that fits in what the peer accepts.
    fn send(&self, signal: &QoeSignal, ack_eliciting: bool, out: &mut Vec<OutgoingFeedback>) {
        if let Some(payload) = signal.encode(self.peer_limit) {
            out.push(OutgoingFeedback {
                kind: signal.kind(),
                payload,
                ack_eliciting,
                urgent: true,
            });
        }
    }
}

impl FeedbackPolicy for PlayerFeedback {
    fn on_peer_limit(&mut self, size: usize) {
        self.peer_limit = size;
    }

    fn poll(
        &mut self,
        now: Instant,
        _paths: &[PathView],
        hints: &Hints,
        out: &mut Vec<OutgoingFeedback>,
    ) {
        if self.expectation != hints.expectation {
            self.expectation = hints.expectation;
            if let Some(expectation) = hints.expectation {
                self.send(&QoeSignal::Expectation(expectation), true, out);
            }
        }
        if self.range_deadline != hints.range_deadline {
            self.range_deadline = hints.range_deadline;
            if let Some(range) = hints.range_deadline {
                self.send(&QoeSignal::Deadline(range), true, out);
            }
        }
        self.poll_player(now, hints.player, out);
    }

    fn on_feedback(&mut self, _now: Instant, _feedback: &ReceivedFeedback) {}

    fn next_deadline(&self) -> Option<Instant> {
        self.due
    }
}
