//! From the model to pacing rate and window (draft-ietf-ccwg-bbr, section 5.6).

use swiftwater_units::{Bandwidth, ByteCount};

use super::policy::QuantumBudget;
use super::{Bbr3, State};
use crate::bbr::gain::Gain;
use crate::bbr::window::bandwidth_delay_product;
use crate::sample::AckBatch;

impl Bbr3 {
    pub(super) fn update_control(&mut self, ack: &AckBatch) {
        self.set_pacing_rate(self.state.pacing_gain(&self.config));
        self.set_cwnd(ack);
    }

    pub(super) fn set_pacing_rate(&mut self, gain: Gain) {
        let may_fall = self.full_pipe.was_full();
        self.pacing.set(self.bandwidth, gain, may_fall);
    }

    fn set_cwnd(&mut self, ack: &AckBatch) {
        let max_inflight = self.max_inflight();
        if self.full_pipe.was_full() {
            self.cwnd = (self.cwnd + ack.acked_bytes).min(max_inflight);
        } else if self.cwnd < max_inflight || ack.delivered < self.sizes.initial_window {
            self.cwnd += ack.acked_bytes;
        }
        // After a timeout the window grows with what arrives, without a floor.
        if self.timed_out_at.is_none() {
            self.cwnd = self.cwnd.max(self.sizes.min_pipe());
        }
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_window());
        }
        self.cwnd = self.sizes.bound(self.cwnd.min(self.volume_cap()));
    }

    /// `BoundCwndForModel`.
    fn volume_cap(&self) -> ByteCount {
        let long_term = match self.state {
            State::Startup | State::Drain => None,
            State::Down | State::Refill | State::Up => self.long_term.inflight(),
            State::Cruise | State::ProbeRtt => self.inflight_with_headroom(),
        };
        let bounds = [long_term, self.short_term.inflight];
        let cap = bounds.into_iter().flatten().min();
        cap.map_or(ByteCount::MAX, |cap| cap.max(self.sizes.min_pipe()))
    }

    // --- amounts in flight

    fn bdp_of(&self, bandwidth: Bandwidth, gain: Gain) -> ByteCount {
        bandwidth_delay_product(bandwidth, self.min_rtt.get())
            .map_or(self.sizes.initial_window, |bdp| gain.of_bytes(bdp))
    }

    /// Multiple of the estimated bandwidth-delay product.
    pub(super) fn bdp(&self, gain: Gain) -> ByteCount {
        self.bdp_of(self.bandwidth, gain)
    }

    /// What should be in flight to fill the path `gain` times at `bandwidth` (`Inflight`).
    pub(super) fn model_inflight(&self, bandwidth: Bandwidth, gain: Gain) -> ByteCount {
        self.with_budget(self.bdp_of(bandwidth, gain))
    }

    /// What should be in flight, unless congestion has cut the window (`TargetInflight`).
    pub(super) fn target_inflight(&self) -> ByteCount {
        self.bdp(Gain::UNITY).min(self.cwnd)
    }

    fn max_inflight(&self) -> ByteCount {
        let mut extra = self.aggregation.extra();
        if let Some(time) = self.policy.extra_acked_time {
            extra = extra.min(ByteCount::new(self.bandwidth.bytes_in(time)));
        }
        let gain = self.state.cwnd_gain(&self.config);
        self.with_budget(self.bdp(gain) + extra)
    }

    fn with_budget(&self, amount: ByteCount) -> ByteCount {
        let quantum = self.pacing.send_quantum(self.sizes.packet);
        let amount = match self.policy.quantum_budget {
            QuantumBudget::AtLeastOne => amount.max(quantum),
            QuantumBudget::Besides(quanta) => amount + quantum.times(quanta),
        };
        let mut target = amount.max(self.sizes.min_pipe());
        if self.state == State::Up {
            // Lets the probe exceed even a tiny bandwidth-delay product.
            target += self.sizes.packet.times(2);
        }
        target
    }

    pub(super) fn probe_rtt_window(&self) -> ByteCount {
        let gain = Gain::new(self.config.probe_rtt_gain);
        self.bdp(gain).max(self.sizes.min_pipe())
    }
}
