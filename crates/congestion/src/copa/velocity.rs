//! How fast the window moves: `v` of the paper (section 2.1). A window that keeps moving one way is
//! far from its target, so its steps grow.

/// Direction and velocity of the window, judged once per round trip.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Velocity {
    v: f64,
    /// The window rose over the last round trip; `None` before the first judgement.
    rising: Option<bool>,
    /// Round trips in a row that went the way of the one before them.
    repeats: u32,
    /// Window when the running round trip began, bytes.
    start: f64,
}

impl Velocity {
    /// No direction yet, for a window of `window` bytes.
    pub(super) fn new(window: f64) -> Self {
        Self {
            v: 1.0,
            rising: None,
            repeats: 0,
            start: window,
        }
    }

    /// A round trip has ended with `window` bytes. From the `least_rounds`-th on that goes the way of
    /// the one before it the velocity doubles with each; a turn sets it back to 1.
    ///
    /// In steady state the window goes one way for two and a half round trips, which may show as
    /// three (section 3 of the paper): the default of three repetitions, four round trips, is the
    /// least that leaves it alone. Where the window stood still, at a bound or for want of data,
    /// there is no direction: it counts as a turn.
    pub(super) fn on_round(&mut self, window: f64, least_rounds: u32) {
        let moved = (window - self.start).abs() >= 1.0;
        let rising = moved.then_some(window > self.start);
        if moved && rising == self.rising {
            self.repeats = self.repeats.saturating_add(1);
            if self.repeats >= least_rounds {
                self.v *= 2.0;
            }
        } else {
            self.v = 1.0;
            self.repeats = 0;
        }
        self.rising = rising;
        self.start = window;
    }

    /// The next step goes up or not. A velocity that was built up for the other way ends at once.
    pub(super) fn turn(&mut self, rising: bool) {
        if self.v > 1.0 && self.rising != Some(rising) {
            self.v = 1.0;
            self.repeats = 0;
        }
    }

    /// `v`, but never more than moves the window by its own size in a round trip: `v / delta`
    /// packets, for a window of `packets`.
    pub(super) fn limited(&mut self, delta: f64, packets: f64) -> f64 {
        self.v = self.v.min((delta * packets).max(1.0));
        self.v
    }

    /// `v` as it is.
    pub(super) fn get(&self) -> f64 {
        self.v
    }
}
