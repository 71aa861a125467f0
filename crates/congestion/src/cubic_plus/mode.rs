//! What Cubic+ is doing, for logs: a name for the state, and how often each mode was entered.

/// What the last decision was, while it has effect.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Mode {
    /// What CUBIC would do.
    #[default]
    Cubic,
    /// A loss in a shallow buffer reduced nothing.
    PeriodicHold,
    /// A loss in a shallow buffer was the last of its period.
    PeriodicDecrease,
    /// The queue is being drained.
    Drain,
    /// A drain is left out.
    DrainSkip,
    /// A loss was taken for random.
    RandomHold,
}

impl Mode {
    /// The name in logs; `None` for what CUBIC itself has names for.
    pub(super) fn name(self) -> Option<&'static str> {
        match self {
            Self::Cubic => None,
            Self::PeriodicHold => Some("periodic-hold"),
            Self::PeriodicDecrease => Some("periodic-decrease"),
            Self::Drain => Some("drain"),
            Self::DrainSkip => Some("drain-skip"),
            Self::RandomHold => Some("random-hold"),
        }
    }
}

/// How often each mode was entered.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Tally {
    cubic: u64,
    periodic_hold: u64,
    periodic_decrease: u64,
    drain: u64,
    drain_skip: u64,
    random_hold: u64,
}

impl Tally {
    pub(super) fn count(&mut self, mode: Mode) {
        let counter = match mode {
            Mode::Cubic => &mut self.cubic,
            Mode::PeriodicHold => &mut self.periodic_hold,
            Mode::PeriodicDecrease => &mut self.periodic_decrease,
            Mode::Drain => &mut self.drain,
            Mode::DrainSkip => &mut self.drain_skip,
            Mode::RandomHold => &mut self.random_hold,
        };
        *counter = counter.saturating_add(1);
    }

    pub(super) fn details(&self) -> [(&'static str, f64); 6] {
        [
            ("cubic_decreases", self.cubic as f64),
            ("periodic_holds", self.periodic_hold as f64),
            ("periodic_decreases", self.periodic_decrease as f64),
            ("drains", self.drain as f64),
            ("drain_skips", self.drain_skip as f64),
            ("random_holds", self.random_hold as f64),
        ]
    }
}
