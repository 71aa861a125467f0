//! A window that never changes. It reacts to nothing and so must never run on a shared network; it
//! exists for simulations, measurements of a link's own behaviour, and tests of misbehaving senders.

use swiftwater_units::{ByteCount, Instant};

use crate::clamp::clamp_or;
use crate::controller::{Controller, ControllerFactory, Env, Pacing, Snapshot};
use crate::growth::MAX_WINDOW;
use crate::sample::{AckBatch, EcnBatch, EpisodeId, LossBatch, RttView, SentInfo};

/// A constant congestion window, and the factory of such controllers. Not selectable by name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FixedWindow {
    /// The window, bytes, 2^48 at most.
    pub window: ByteCount,
    /// Pacing gain, range 0.01 to 1000; a large one amounts to no pacing.
    pub gain: f64,
}

impl FixedWindow {
    /// A fixed window of `window` bytes, paced as in congestion avoidance.
    pub fn new(window: ByteCount) -> Self {
        Self { window, gain: 1.25 }
    }
}

impl ControllerFactory for FixedWindow {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn build(&self, _now: Instant, _env: &mut Env<'_>) -> Box<dyn Controller> {
        Box::new(*self)
    }
}

impl Controller for FixedWindow {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn on_sent(&mut self, _sent: &SentInfo, _env: &mut Env<'_>) {}
    fn on_ack(&mut self, _ack: &AckBatch, _env: &mut Env<'_>) {}
    fn on_loss(&mut self, _loss: &LossBatch<'_>, _env: &mut Env<'_>) {}
    fn on_ce(&mut self, _ce: &EcnBatch, _env: &mut Env<'_>) {}
    fn on_spurious(&mut self, _episode: EpisodeId, _now: Instant, _env: &mut Env<'_>) {}
    fn on_persistent_congestion(&mut self, _now: Instant, _env: &mut Env<'_>) {}
    fn on_max_datagram_size_change(&mut self, _env: &mut Env<'_>) {}

    fn cwnd(&self) -> ByteCount {
        self.window.min(MAX_WINDOW)
    }

    fn pacing(&self, _rtt: &RttView) -> Pacing {
        Pacing {
            rate: None,
            gain: clamp_or(self.gain, 1.25, 0.01, 1000.0),
            quantum: None,
        }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            cwnd: self.cwnd(),
            ssthresh: None,
            state: "fixed",
            details: Vec::new(),
        }
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(*self)
    }
}
