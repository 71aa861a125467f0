//! Proportional rate reduction (RFC 6937 with slow-start reduction bound, and the safe rule of RFC
//! 9937): how many packets each acknowledgement of recovery lets out. Counted in packets, as in Linux.

/// One reduction of the window.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reduction {
    /// Window when it began (`RecoverFS`).
    prior_window: u64,
    delivered: u64,
    out: u64,
}

/// What an acknowledgement says to a reduction.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Packets newly delivered.
    pub delivered: u64,
    /// Packets newly counted as lost.
    pub lost: u64,
    /// Whether the cumulative acknowledgement advanced.
    pub advanced: bool,
}

impl Reduction {
    /// A reduction that begins at a window of `prior_window` packets.
    pub fn begin(prior_window: u64) -> Self {
        Self {
            prior_window,
            delivered: 0,
            out: 0,
        }
    }

    /// Packets left during the reduction.
    pub fn on_sent(&mut self, packets: u64) {
        self.out += packets;
    }

    /// The window after an acknowledgement: `in_flight` packets are in flight and `threshold` is the
    /// window to arrive at. `None` if it delivered nothing.
    pub fn on_ack(&mut self, progress: Progress, in_flight: u64, threshold: u64) -> Option<u64> {
        if progress.delivered == 0 || self.prior_window == 0 {
            return None;
        }
        self.delivered += progress.delivered;
        let send = if in_flight > threshold {
            (threshold * self.delivered)
                .div_ceil(self.prior_window)
                .saturating_sub(self.out)
        } else {
            let mut send = self
                .delivered
                .saturating_sub(self.out)
                .max(progress.delivered);
            send += u64::from(progress.advanced && progress.lost == 0);
            send.min(threshold - in_flight)
        };
        // The fast retransmission leaves in any case.
        let least = u64::from(self.out == 0);
        Some(in_flight + send.max(least))
    }
}
