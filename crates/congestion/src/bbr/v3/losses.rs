//! The answer to losses and marks, and how it is taken back (draft-ietf-ccwg-bbr, sections 5.5.10,
//! 5.5.11 and 5.6.4.4).

use swiftwater_units::{ByteCount, Instant};

use super::undo::Saved;
use super::{Bbr3, State};
use crate::bbr::gain::Gain;
use crate::controller::Env;
use crate::sample::{EpisodeId, LossBatch, LostPacket, RateSample};

impl Bbr3 {
    pub(super) fn handle_losses(&mut self, loss: &LossBatch<'_>, env: &mut Env<'_>) {
        self.inflight = loss.inflight;
        if loss.new_episode {
            self.enter_recovery(loss.episode);
        }
        self.startup_losses.on_loss(loss);
        for packet in loss.packets {
            self.lost += packet.size;
            self.latest.on_loss();
            if self.cycle.is_probe_sample() {
                self.check_lost_packet(loss.now, packet, env);
            }
        }
    }

    /// A packet of a probe was lost: did the probe put too much in flight?
    fn check_lost_packet(&mut self, now: Instant, packet: &LostPacket, env: &mut Env<'_>) {
        let lost = self.lost - packet.lost_prior;
        if lost <= self.loss_threshold().of_bytes(packet.tx_in_flight) {
            return;
        }
        let at_loss = self.inflight_at_loss(packet, lost);
        self.handle_too_high(now, at_loss, packet.is_app_limited, env);
    }

    /// How much was in flight when the losses crossed the threshold, somewhere within `packet`:
    /// solves `(lost before + x) / (in flight before + x) = threshold` for `x`.
    fn inflight_at_loss(&self, packet: &LostPacket, lost: ByteCount) -> ByteCount {
        let threshold = self.config.loss_threshold;
        let inflight_before = packet.tx_in_flight - packet.size;
        let lost_before = lost - packet.size;
        let allowed = self.loss_threshold().of_bytes(inflight_before);
        // Beyond the threshold already: it was crossed before this packet.
        let within = (allowed - lost_before).scaled(1.0 / (1.0 - threshold));
        inflight_before + within
    }

    /// `HandleInflightTooHigh`; once per probe.
    fn handle_too_high(
        &mut self,
        now: Instant,
        tx_in_flight: ByteCount,
        is_app_limited: bool,
        env: &mut Env<'_>,
    ) {
        self.cycle.on_too_high();
        if !is_app_limited {
            let least = self.beta().of_bytes(self.target_inflight());
            self.long_term.set(tx_in_flight.max(least));
        }
        if self.state == State::Up {
            self.undo.note_end_of(State::Up);
            self.start_down(now, env);
        }
    }

    // --- marks

    /// An ACK reported marks.
    pub(super) fn note_marks(&mut self) {
        if self.ecn.is_proportional() {
            self.latest.on_marks();
        } else {
            self.startup_losses.on_marks();
            self.latest.on_loss();
            self.latest.settle(self.delivered);
        }
    }

    /// Too many losses and marks since the sampled packet left; where marks are among them and the
    /// packet probed, the bound comes down. (Losses alone were answered when they were found.) True
    /// if that decided on a state.
    pub(super) fn answer_marks(
        &mut self,
        now: Instant,
        sample: &RateSample,
        env: &mut Env<'_>,
    ) -> bool {
        if sample.ce_since_sent.is_zero() || !self.cycle.is_probe_sample() {
            return false;
        }
        let before = self.state;
        self.handle_too_high(now, sample.tx_in_flight, sample.is_app_limited, env);
        self.state != before
    }

    /// True if losses or marks since the sampled packet left say that too much was in flight.
    pub(super) fn is_too_high(&self, sample: &RateSample) -> bool {
        self.is_loss_too_high(sample) || self.ecn.is_too_high(sample, self.sizes.packet.get())
    }

    /// The same for losses, and for marks where they count as losses.
    pub(super) fn is_loss_too_high(&self, sample: &RateSample) -> bool {
        let mut lost = sample.lost_since_sent;
        if !self.ecn.is_proportional() {
            lost += self.sizes.packet.times(sample.ce_since_sent.get());
        }
        lost > self.loss_threshold().of_bytes(sample.tx_in_flight)
    }

    // --- short term

    /// Once per round of the signals, unless the flow itself is pushing.
    pub(super) fn adapt_short_term(&mut self) {
        if self.state.is_accelerating() {
            return;
        }
        // Both answers start from the bound as it was.
        let marked = self.latest.has_marks().then(|| {
            let bound = self.short_term.inflight.unwrap_or(self.cwnd);
            self.ecn.cut().of_bytes(bound)
        });
        if self.latest.has_loss() {
            let max = self.max_bandwidth.get();
            let beta = self.beta();
            self.short_term
                .on_loss_round(&self.latest, beta, max, self.cwnd);
        }
        if let Some(marked) = marked {
            self.short_term.limit_inflight(marked);
        }
    }

    fn loss_threshold(&self) -> Gain {
        Gain::new(self.config.loss_threshold)
    }

    fn beta(&self) -> Gain {
        Gain::new(self.config.beta)
    }

    // --- recovery

    pub(super) fn save_window(&mut self) {
        let in_recovery = self.in_loss_recovery || self.timed_out_at.is_some();
        let is_cut = in_recovery || self.state == State::ProbeRtt;
        self.saved.save(self.cwnd, is_cut);
    }

    fn enter_recovery(&mut self, episode: EpisodeId) {
        self.save_window();
        self.in_loss_recovery = true;
        self.undo.save(Saved {
            episode,
            cwnd: self.cwnd,
            short_term: self.short_term,
            long_term: self.long_term.inflight(),
            ended: None,
        });
    }

    pub(super) fn leave_recovery(&mut self) {
        self.in_loss_recovery = false;
        self.timed_out_at = None;
        self.restore_window();
    }

    /// Goes back to the saved window; what the model and `ProbeRTT` allow is applied with the next
    /// ACK.
    fn restore_window(&mut self) {
        if self.state != State::ProbeRtt {
            self.cwnd = self.sizes.bound(self.saved.restore(self.cwnd));
        }
    }

    /// Everything in flight was lost: one packet at a time until an ACK comes.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.save_window();
        self.undo.clear();
        self.timed_out_at = Some(now);
        self.cwnd = self.sizes.bound(self.inflight + self.sizes.packet);
    }

    /// `HandleSpuriousLossDetection`.
    pub(super) fn handle_spurious(&mut self, episode: EpisodeId) {
        let Some(saved) = self.undo.take(episode) else {
            return;
        };
        self.in_loss_recovery = false;
        self.saved.save(saved.cwnd, true);
        self.restore_window();
        self.latest.clear_congestion();
        self.full_pipe.look_again();
        self.short_term.raise_to(&saved.short_term);
        self.long_term.raise_to(saved.long_term);
        if !self.policy.undo_returns {
            return;
        }
        match saved.ended {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_pipe.set_never_full();
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if !matches!(self.state, State::Up | State::ProbeRtt) => {
                self.start_refill();
            }
            _ => {}
        }
    }
}
