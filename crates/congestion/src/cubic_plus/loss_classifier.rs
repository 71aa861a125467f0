//! The loss signals of Cubic+: the share of packets lost per round, smoothed (eq. 4), and the count
//! of loss events in a shallow buffer of which only some reduce the window (section 3.2).

/// Packets that a running round must have sent before its losses say anything.
const LEAST_SENT: u64 = 10;

/// Loss ratio and event counts of one path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LossClassifier {
    weight: f64,
    round: u64,
    /// Packets sent and lost in the running round.
    sent: u64,
    lost: u64,
    /// `Loss`, up to the last round.
    ratio: f64,
    events: Events,
}

/// What a congestion event changes here, and its refutation takes back.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Events {
    /// Loss events in a shallow buffer since one reduced the window.
    pub(super) shallow: u32,
    /// True once there was a congestion event: from then on losses are classified.
    pub(super) any: bool,
}

impl LossClassifier {
    pub(super) fn new(weight: f64) -> Self {
        Self {
            weight,
            round: 0,
            sent: 0,
            lost: 0,
            ratio: 0.0,
            events: Events::default(),
        }
    }

    pub(super) fn on_sent(&mut self) {
        self.sent = self.sent.saturating_add(1);
    }

    pub(super) fn on_lost(&mut self, packets: u64) {
        self.lost = self.lost.saturating_add(packets);
    }

    /// An ACK of round `round`: closes the running round if it is another one.
    pub(super) fn on_round(&mut self, round: u64) {
        if round == self.round {
            return;
        }
        self.round = round;
        if self.sent > 0 || self.lost > 0 {
            self.ratio = self.with(self.share_lost());
        }
        (self.sent, self.lost) = (0, 0);
    }

    /// `Loss`, with the running round if that makes it larger: a burst counts at once.
    pub(super) fn ratio(&self) -> f64 {
        if self.sent < LEAST_SENT {
            self.ratio
        } else {
            self.with(self.share_lost()).max(self.ratio)
        }
    }

    pub(super) fn events(&self) -> Events {
        self.events
    }

    pub(super) fn set_events(&mut self, events: Events) {
        self.events = events;
    }

    /// Counts a congestion event; true if it is the first.
    pub(super) fn first_event(&mut self) -> bool {
        !std::mem::replace(&mut self.events.any, true)
    }

    /// Counts a loss event in a shallow buffer; true, and the count begins anew, if it is the
    /// `n`-th.
    pub(super) fn count_shallow(&mut self, n: u32) -> bool {
        self.events.shallow = self.events.shallow.saturating_add(1);
        let full = self.events.shallow >= n;
        if full {
            self.events.shallow = 0;
        }
        full
    }

    /// The losses were not in a shallow buffer.
    pub(super) fn discard_shallow(&mut self) {
        self.events.shallow = 0;
    }

    /// Discards all but the position in the count of rounds.
    pub(super) fn clear(&mut self) {
        *self = Self {
            round: self.round,
            ..Self::new(self.weight)
        };
    }

    /// Packets lost over packets sent in the running round.
    fn share_lost(&self) -> f64 {
        (self.lost as f64 / self.sent.max(1) as f64).min(1.0)
    }

    fn with(&self, share: f64) -> f64 {
        (1.0 - self.weight) * self.ratio + self.weight * share
    }
}
