//! Whether a reduction of the window was for nothing: all repetitions were reported as duplicates (RFC
//! 2883, RFC 3708), or an acknowledgement returns a timestamp from before the first repetition (RFC
//! 3522).

use swiftwater_units::Instant;

/// What is known about the running reduction.
#[derive(Clone, Debug, Default)]
pub struct Undo {
    /// Earliest unacknowledged offset when it began; `None` if it can't be undone.
    marker: Option<u64>,
    /// Repetitions that were not reported as duplicates; `None` before the first.
    unconfirmed: Option<u64>,
    first_repetition: Option<Instant>,
    /// Window before, packets.
    pub prior_window: u64,
    /// Threshold before, packets.
    pub prior_threshold: u64,
}

impl Undo {
    /// A reduction begins. `repeating` is the number of repetitions in flight.
    pub fn begin(&mut self, acked: u64, repeating: u64, prior_window: u64, prior_threshold: u64) {
        self.marker = Some(acked);
        self.unconfirmed = (repeating > 0).then_some(repeating);
        (self.prior_window, self.prior_threshold) = (prior_window, prior_threshold);
    }

    /// A segment was sent again.
    pub fn on_repeated(&mut self, now: Instant) {
        self.first_repetition.get_or_insert(now);
        self.unconfirmed = Some(self.unconfirmed.unwrap_or_default() + 1);
    }

    /// The peer reported a duplicate that ends at `end`.
    pub fn on_duplicate(&mut self, end: u64) {
        if self.marker.is_some_and(|marker| end > marker)
            && let Some(unconfirmed) = &mut self.unconfirmed
        {
            *unconfirmed = unconfirmed.saturating_sub(1);
        }
    }

    /// Whether all repetitions were for nothing, as far as duplicates tell.
    pub fn is_refuted(&self) -> bool {
        self.marker.is_some() && self.unconfirmed == Some(0)
    }

    /// Whether an acknowledgement that returns a timestamp of `echo` is that of an original.
    pub fn is_original(&self, echo: Option<Instant>) -> bool {
        // Timestamps are whole milliseconds.
        let millis = |at: Instant| at.as_nanos() / 1_000_000;
        let times = self.first_repetition.zip(echo);
        self.marker.is_some() && times.is_some_and(|(first, echo)| millis(echo) < millis(first))
    }

    /// Nothing suspicious is outstanding any more.
    pub fn forget_repetitions(&mut self) {
        self.first_repetition = None;
    }

    /// The reduction was undone.
    pub fn clear(&mut self) {
        self.marker = None;
    }
}
