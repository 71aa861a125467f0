//! Pacing rate and the size of bursts.

use std::time::Duration;

use swiftwater_units::{Bandwidth, ByteCount};

use super::gain::Gain;
use crate::controller::Pacing;
use crate::sample::RttView;

/// Time that a burst takes at the pacing rate.
const BURST_TIME: Duration = Duration::from_millis(1);
/// Largest burst, as much as fits one GSO send.
const MAX_BURST: ByteCount = ByteCount::new(64 * 1024);

/// The rate at which packets leave (draft-ietf-ccwg-bbr, section 5.6.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacingRate {
    /// `None` until a round-trip time is known.
    rate: Option<Bandwidth>,
    /// What is left of the rate after the margin that keeps the mean below the estimate.
    margin: Gain,
    /// Gain of the rate with which a flow starts.
    initial_gain: Gain,
}

impl PacingRate {
    /// Paces at `margin` (a share below 1, such as 0.01) below the target rate; `initial_gain`
    /// holds until bandwidth is known.
    pub fn new(margin: f64, initial_gain: Gain) -> Self {
        Self {
            rate: None,
            margin: Gain::new(1.0 - margin),
            initial_gain,
        }
    }

    /// The first round-trip time is known: only now the initial window makes a rate. A rate made
    /// of an assumed time would be kept for long by a flow that sends little.
    pub fn on_first_rtt(&mut self, initial_window: ByteCount, rtt: &RttView) {
        if let (None, Some(smoothed)) = (self.rate, rtt.known_smoothed()) {
            self.rate = Some(self.initial(initial_window, smoothed));
        }
    }

    /// Paces at `gain` times `bandwidth`. Before the pipe was full once, the rate only rises
    /// (`may_fall` false): what was delivered so far may have been little for want of data.
    pub fn set(&mut self, bandwidth: Bandwidth, gain: Gain, may_fall: bool) {
        let wanted = self.margin.of_rate(gain.of_rate(bandwidth));
        if !wanted.is_zero() && (may_fall || self.rate.is_none_or(|rate| wanted > rate)) {
            self.rate = Some(wanted);
        }
    }

    /// The rate; `None` before the first round-trip time.
    pub fn get(&self) -> Option<Bandwidth> {
        self.rate
    }

    /// The most that leaves back to back: a millisecond's worth, within two packets of
    /// `max_datagram_size` and 64 KiB (section 5.6.3).
    pub fn send_quantum(&self, max_datagram_size: ByteCount) -> ByteCount {
        let rate = self.rate.unwrap_or_default();
        ByteCount::new(rate.bytes_in(BURST_TIME))
            .min(MAX_BURST)
            .max(max_datagram_size.times(2))
    }

    /// The rate for the pacer.
    pub fn pacing(&self, initial_window: ByteCount, mds: ByteCount, rtt: &RttView) -> Pacing {
        let rate = self
            .rate
            .unwrap_or_else(|| self.initial(initial_window, rtt.smoothed));
        Pacing {
            rate: Some(rate.max(Bandwidth::from_bps(8))),
            gain: self.initial_gain.get(),
            quantum: Some(self.send_quantum(mds)),
        }
    }

    fn initial(&self, initial_window: ByteCount, rtt: Duration) -> Bandwidth {
        let rtt = rtt.max(Duration::from_micros(1));
        self.initial_gain
            .of_rate(Bandwidth::from_transfer(initial_window.get(), rtt))
    }
}
