//! How long a request on QUIC waits for its response before it is also sent over TCP. What is unusual differs from network
//! to network, so that it is learned from what became of earlier hedges.

use crate::parameters::Parameters;

/// The wait, in mean times to first byte.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Patience {
    /// Hedges that QUIC answered first, less those that TCP did: how often the wait has doubled.
    doublings: u32,
}

impl Patience {
    /// Mean times to first byte until a request is hedged, from `stall_factor_min` to `stall_factor`.
    pub(crate) fn factor(self, parameters: &Parameters) -> f64 {
        let least = parameters.stall_factor_min.min(parameters.stall_factor);
        let doubled = least * 2_f64.powi(self.doublings.cast_signed());
        doubled.min(parameters.stall_factor)
    }

    /// Notes which protocol answered a request that was hedged although packets came: the wait doubles if it was QUIC, and
    /// is half as long if it was TCP.
    pub(crate) fn hedged(&mut self, tcp_answered: bool, parameters: &Parameters) {
        if tcp_answered {
            self.doublings = self.doublings.saturating_sub(1);
        } else if self.factor(parameters) < parameters.stall_factor {
            self.doublings += 1;
        }
    }
}
