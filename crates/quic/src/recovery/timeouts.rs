//! Round-trip times of a path, and the times that follow from them: thresholds of loss detection and probe
//! timeouts (RFC 9002, sections 5 and 6).

use std::time::Duration;

use rand_core::Rng;
use swiftwater_congestion::RttView;
use swiftwater_units::Instant;

use super::LossThresholds;
use super::backoff::{Backoff, Limit};
use super::path::PathRecovery;
use super::rtt::GRANULARITY;

/// A packet threshold that no packet number reaches.
const NO_PACKET_THRESHOLD: u64 = 1 << 62;

impl PathRecovery {
    /// An ACK newly acknowledged its largest packet, which was ack-eliciting or came with one that
    /// is (RFC 9002, section 5.1). `ack_delay` is already capped to the peer's `max_ack_delay`
    /// where that applies. Call before [`PathRecovery::on_ack_batch`].
    pub(crate) fn on_rtt_sample(&mut self, now: Instant, sent_at: Instant, ack_delay: Duration) {
        if self.rtt.on_sample(now, sent_at, ack_delay) {
            // The rate so far came from an assumed RTT; a flow that is never limited by its window
            // would keep it for long.
            self.refresh_pacer(now);
        }
    }

    pub(crate) fn rtt(&self) -> RttView {
        self.rtt.view()
    }

    /// When the first RTT sample was taken; persistent congestion needs packets sent after it.
    pub(crate) fn first_rtt_sample_at(&self) -> Option<Instant> {
        self.rtt.first_sample_at()
    }

    /// When the ledger has to count a packet as lost (RFC 9002, section 6.1).
    pub(crate) fn loss_thresholds(&self) -> LossThresholds {
        let (packets, eighths) = match &self.loss_judgement {
            None => {
                let config = &self.settings.config;
                (config.packet_threshold, config.time_threshold_eighths)
            }
            Some(judgement) => {
                let thresholds = judgement.thresholds();
                let packets = thresholds.packets.unwrap_or(NO_PACKET_THRESHOLD);
                (packets.min(NO_PACKET_THRESHOLD), thresholds.time_eighths)
            }
        };
        LossThresholds {
            packets,
            delay: self.rtt.loss_delay(eighths),
        }
    }

    /// `smoothed_rtt + max(4 * rttvar, kGranularity)`: the probe timeout without `max_ack_delay`
    /// and without back-off.
    pub(crate) fn pto_base(&self) -> Duration {
        self.rtt.pto_base()
    }

    /// Time by which the loss judge makes the probe timeout longer than the RFC's.
    pub(crate) fn extra_probe_timeout(&self) -> Duration {
        let judgement = self.loss_judgement.as_ref();
        judgement.map_or(Duration::ZERO, |judgement| {
            judgement.extra_probe_timeout(&self.rtt.view())
        })
    }

    /// The probe timeout with back-off (RFC 9002, section 6.2.1). `max_ack_delay` is zero where the
    /// peer doesn't delay acknowledgements.
    pub(crate) fn probe_timeout(&self, max_ack_delay: Duration) -> Duration {
        let settings = &self.settings;
        let config = &settings.config;
        let rtt = self.rtt.view();
        let base = match config.initial_pto {
            Some(initial) if !rtt.has_sample => initial.max(GRANULARITY),
            _ => self.pto_base(),
        };
        let first = base
            .saturating_add(max_ack_delay)
            .saturating_add(self.extra_probe_timeout());
        if self.pto_count == 0 {
            return first;
        }
        let backoff = Backoff {
            first,
            thousandths: settings.pto_backoff(),
            longest: config.max_pto,
            // Of a path that never answered nothing is known.
            limit: config
                .pto_limit
                .filter(|_| rtt.has_sample)
                .map(|limit| Limit {
                    timeout: rtt.smoothed.saturating_add(limit.beyond_rtt),
                    period: limit.period,
                }),
        };
        backoff.timeout_after(self.pto_count)
    }

    /// Losses that span this long make persistent congestion (RFC 9002, section 7.6.1).
    pub(crate) fn persistent_congestion_duration(&self, max_ack_delay: Duration) -> Duration {
        self.pto_base()
            .saturating_add(max_ack_delay)
            .saturating_mul(self.settings.config.persistent_congestion_threshold)
    }

    /// Packets of the path were acknowledged.
    pub(crate) fn on_acknowledged(&mut self, now: Instant) {
        self.awaited_since = now;
    }

    /// Since when the peer's next acknowledgement has been awaited, if anything is in flight.
    pub(crate) fn awaited_since(&self) -> Instant {
        self.awaited_since
    }

    /// Probe timeouts since the last acknowledgement.
    pub(crate) fn pto_count(&self) -> u32 {
        self.pto_count
    }

    /// The probe timeout expired.
    pub(crate) fn on_pto(&mut self, now: Instant, rng: &mut dyn Rng) {
        self.pto_count = self.pto_count.saturating_add(1);
        self.awaited_since = now;
        self.stats.pto_count = self.stats.pto_count.saturating_add(1);
        self.controller
            .on_pto(now, self.pto_count, &mut self.settings.env(rng));
        self.refresh_pacer(now);
    }

    /// An acknowledgement arrived, or keys were discarded (RFC 9002, sections 6.2.1 and 6.4).
    pub(crate) fn reset_pto_count(&mut self) {
        self.pto_count = 0;
    }
}
