//! What a loss event means, and what it does to the window (Algorithm 1, lines 6 to 11).

use super::config::LossFilter;
use super::mode::Mode;
use super::{CubicPlus, ratio};
use crate::loss_based::Curve as _;

/// Packets from which on a window is large enough to be reduced by less than CUBIC's factor.
const LARGE_WINDOW: f64 = 48.0;

/// What a loss event does to the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Reaction {
    Hold,
    Reduce(f64),
}

impl CubicPlus {
    /// What a loss event means, and so what is to be done; `packets` were in
    /// flight, and `recurs` says that flights at losses point to an overflow.
    pub(super) fn classify(&mut self, recurs: bool, packets: f64) -> (Mode, Reaction) {
        let beta = self.cubic.curve().beta();
        let cubic = (Mode::Cubic, Reaction::Reduce(beta));
        let (first, Some(base)) = (self.losses.first_event(), self.delay.base()) else {
            return cubic;
        };
        // The loss ratio is still unknown, and slow start must end.
        if first {
            return cubic;
        }
        let cubic = (Mode::Cubic, Reaction::Reduce(self.backoff(base, packets)));
        let queue = self.delay.queue();
        if queue > self.config.t_high(base) {
            self.losses.discard_shallow();
            return (Mode::Cubic, Reaction::Reduce(self.config.newbeta));
        }
        let no_queue = queue < self.config.t_low(base);
        if self.config.filter != LossFilter::Off && self.losses.ratio() < self.config.l_ratio {
            let full = self.overflows(base, recurs, packets);
            return match self.config.filter {
                LossFilter::Text if !full => (Mode::RandomHold, Reaction::Hold),
                LossFilter::Algo if !full && no_queue => {
                    let factor = beta.max(1.0 - ratio(queue, base));
                    (Mode::RandomHold, Reaction::Reduce(factor))
                }
                _ => cubic,
            };
        }
        if !no_queue {
            return cubic;
        }
        if self.losses.count_shallow(self.config.shallow_n) {
            (Mode::PeriodicDecrease, Reaction::Reduce(beta))
        } else {
            (Mode::PeriodicHold, Reaction::Hold)
        }
    }

    /// What an overflow multiplies the window by: as much as empties the longest queue seen, between
    /// CUBIC's factor and the largest one configured, if the window is large.
    fn backoff(&self, base: f64, packets: f64) -> f64 {
        let beta = self.cubic.curve().beta();
        match &self.full_queue {
            Some(full_queue) if packets >= LARGE_WINDOW => {
                let fits = 1.0 / (1.0 + ratio(full_queue.longest(base), base));
                fits.min(self.config.shallow_beta).max(beta)
            }
            _ => beta,
        }
    }

    /// True if a loss now means that the buffer is full, as far as delays, or else the flights at
    /// losses (`recurs`), can say.
    fn overflows(&self, base: f64, recurs: bool, packets: f64) -> bool {
        let queue = self.full_queue.as_ref();
        let is_known = queue.is_some_and(|queue| queue.is_known(base, packets));
        queue.is_some_and(|queue| queue.looks_full(base)) || (recurs && !is_known)
    }
}
