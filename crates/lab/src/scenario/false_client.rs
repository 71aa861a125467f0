//! A client in a tunnel with TECC whose messages to the server are false, or lost: what the server must survive.

use std::time::Duration;

use swiftwater_policies::feedback::FeedbackFactory;
use swiftwater_policies::tecc::{TeccClientFeedback, TeccClientFeedbackConfig, TeccMessage};
use swiftwater_quic::policy::{
    FeedbackPolicy, Hints, OutgoingFeedback, PathView, ReceivedFeedback,
};
use swiftwater_tecc::LossPlace;
use swiftwater_tunable::tunable;
use swiftwater_units::{Bandwidth, Instant, PacketNumber, PathId};

/// What is wrong with the messages of [`FalseClient`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FalseClientConfig {
    /// The rate of the tunnel is claimed to be this many times what it is. Default: 1.
    rate: f64,
    /// Nothing is claimed to wait in the tunnel. Default: the truth.
    no_queue: bool,
    /// Losses are not told, as if the tunnel was repairing them. Default: they are told.
    hide: bool,
    /// All losses are claimed to be what the tunnel gave up, which is no sign of congestion. Default: the truth.
    given_up: bool,
    /// Share of the messages that don't reach the server, 0 to 1. Default: 0.
    lost: f64,
}

impl Default for FalseClientConfig {
    fn default() -> Self {
        Self {
            rate: 1.0,
            no_queue: false,
            hide: false,
            given_up: false,
            lost: 0.0,
        }
    }
}

tunable!(FalseClientConfig {
    "rate" => rate in 0.01..=1000.0, "claim this many times the rate of the tunnel";
    "no-queue" => no_queue, "claim that nothing waits in the tunnel";
    "hide" => hide, "do not tell losses";
    "given-up" => given_up, "claim that the tunnel gave up all that was lost";
    "lost" => lost in 0.0..=1.0, "share of messages that are lost";
});

impl FeedbackFactory for FalseClientConfig {
    fn feedback(&self) -> Box<dyn FeedbackPolicy> {
        Box::new(FalseClient {
            config: *self,
            truth: TeccClientFeedback::new(TeccClientFeedbackConfig::default()),
            peer_limit: 0,
            messages: 0,
        })
    }
}

/// A [`TeccClientFeedback`] whose messages are changed.
#[derive(Clone, Debug)]
struct FalseClient {
    config: FalseClientConfig,
    truth: TeccClientFeedback,
    peer_limit: usize,
    /// Messages so far.
    messages: u64,
}

impl FalseClient {
    /// The message that leaves in the place of `message`.
    fn changed(&self, message: &OutgoingFeedback) -> Option<OutgoingFeedback> {
        let received = ReceivedFeedback {
            kind: message.kind,
            payload: message.payload,
            sequence: 0,
            path: PathId::ZERO,
            age: Duration::ZERO,
        };
        let mut content = TeccMessage::decode(&received)?;
        let bits = content.rate.as_bps() as f64 * self.config.rate;
        content.rate = Bandwidth::from_bps(bits as u64);
        if self.config.no_queue {
            content.queue = swiftwater_units::ByteCount::ZERO;
        }
        if self.config.hide {
            content.lost.clear();
        }
        if self.config.given_up {
            for lost in &mut content.lost {
                lost.place = LossPlace::Abandoned;
            }
        }
        Some(OutgoingFeedback {
            payload: content.encode(self.peer_limit)?,
            ..*message
        })
    }

    /// Whether the next message is lost: evenly distributed numbers of its count (SplitMix64).
    fn is_lost(&mut self) -> bool {
        self.messages += 1;
        let mut bits = self.messages.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        let fraction = (bits >> 11) as f64 / (1_u64 << 53) as f64;
        fraction < self.config.lost
    }
}

impl FeedbackPolicy for FalseClient {
    fn on_peer_limit(&mut self, size: usize) {
        self.peer_limit = size;
        self.truth.on_peer_limit(size);
    }

    fn poll(
        &mut self,
        now: Instant,
        paths: &[PathView],
        hints: &Hints,
        out: &mut Vec<OutgoingFeedback>,
    ) {
        let mut told = Vec::new();
        self.truth.poll(now, paths, hints, &mut told);
        for message in told {
            if !self.is_lost() {
                out.extend(self.changed(&message));
            }
        }
    }

    fn on_feedback(&mut self, now: Instant, feedback: &ReceivedFeedback) {
        self.truth.on_feedback(now, feedback);
    }

    fn on_packet_received(
        &mut self,
        now: Instant,
        path: PathId,
        number: PacketNumber,
        tag: Option<u64>,
    ) {
        self.truth.on_packet_received(now, path, number, tag);
    }

    fn on_path_report(&mut self, now: Instant, report: &[u8]) {
        self.truth.on_path_report(now, report);
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.truth.next_deadline()
    }
}
