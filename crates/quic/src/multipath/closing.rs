//! The end of a path (draft-ietf-quic-multipath-21, section 3.4): after PATH_ABANDON nothing is sent on it,
//! but late packets are received and acknowledged on other paths for a while.

use std::time::Duration;

use swiftwater_units::Instant;

/// Probe timeouts after which what is in flight on an abandoned path counts as lost: its
/// acknowledgement comes on another path, or not any more.
const LOSS_PTOS: u32 = 1;
/// Probe timeouts after which a path that both ends abandoned is forgotten (section 3.4.3).
const FORGET_PTOS: u32 = 3;

/// How far the end of a path has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Closing {
    /// When what is in flight on it counts as lost; `None` afterwards.
    pub(crate) losses_at: Option<Instant>,
    /// When the path is forgotten; `None` before the peer's PATH_ABANDON: it may send until then, and a packet
    /// to a forgotten connection ID is answered with a stateless reset.
    pub(crate) forgotten_at: Option<Instant>,
}

impl Closing {
    /// A path that is abandoned at `now`. `pto` is its probe timeout.
    pub(crate) fn new(now: Instant, pto: Duration) -> Self {
        Self {
            losses_at: Some(now + pto * LOSS_PTOS),
            forgotten_at: None,
        }
    }

    /// The peer's PATH_ABANDON came. `longest_pto` is the probe timeout of all paths.
    pub(crate) fn on_abandoned_by_peer(&mut self, now: Instant, longest_pto: Duration) {
        self.forgotten_at
            .get_or_insert(now + longest_pto * FORGET_PTOS);
    }

    /// When the next step is due; `None` while the peer's answer is awaited.
    pub(crate) fn next_step(&self) -> Option<Instant> {
        self.losses_at.or(self.forgotten_at)
    }
}
