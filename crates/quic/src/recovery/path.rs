//! `PathRecovery`: one path's numbers, and sending on it. What results from sending is in
//! `results.rs`, round-trip times and timeouts are in `timeouts.rs`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rand_core::Rng;
use swiftwater_congestion::{
    Controller, EcnCounts, ExternalRate, LostPacket, ParameterError, SentInfo,
};
use swiftwater_units::{Bandwidth, ByteCount, Instant, PacketCount, PathId};

use super::episodes::Episodes;
use super::pacer::Pacer;
use super::rate_sample::RateSampler;
use super::rounds::Rounds;
use super::rtt::{GRANULARITY, RttEstimator};
use super::settings::Settings;
use super::{DeliverySnapshot, LossJudgement, RecoveryStats, SendPurpose};
use crate::config::TransportConfig;
use crate::idle_memory::IdleMemory;
use crate::lazy_box::LazyBox;

/// RTT, probe timeout, bytes in flight, rate samples, episodes, pacer and controller of one path.
///
/// Only packets that count in flight (RFC 9002, section 2) are reported here. Nothing allocates in
/// steady state.
pub(crate) struct PathRecovery {
    pub(super) settings: Settings,
    pub(super) rtt: RttEstimator,
    pub(super) pacer: Pacer,
    pub(super) sampler: RateSampler,
    pub(super) rounds: Rounds,
    pub(super) episodes: Episodes,
    pub(super) controller: Box<dyn Controller>,
    /// Judges losses; `None` if the configured thresholds hold as they are.
    pub(crate) loss_judgement: Option<Box<LossJudgement>>,
    /// The controller's timer doesn't expire before then.
    controller_not_before: Option<Instant>,
    pub(super) inflight: ByteCount,
    /// When a packet was last sent, acknowledged or declared lost; `None` before the first.
    pub(super) active_at: Option<Instant>,
    pub(super) pto_count: u32,
    /// Since when the peer's next acknowledgement has been awaited: the last one, the last probe timeout, or
    /// the first packet sent with nothing in flight.
    pub(super) awaited_since: Instant,
    /// Increases of the peer's ECN counts not reported to the controller yet.
    pub(super) unreported_ecn: EcnCounts,
    /// The last delivery-rate sample.
    pub(super) delivery_rate: Option<Bandwidth>,
    pub(super) stats: RecoveryStats,
    /// Reused for the packets of a `LossBatch`.
    pub(super) scratch: LazyBox<Vec<LostPacket>>,
}

impl PathRecovery {
    /// A path on which nothing was sent yet.
    pub(crate) fn new(
        now: Instant,
        path: PathId,
        config: &Arc<TransportConfig>,
        max_datagram_size: u16,
        rng: &mut dyn Rng,
    ) -> Self {
        let settings = Settings::new(path, config, max_datagram_size);
        let packet = u64::from(max_datagram_size);
        let initial_window = settings.initial_window;
        let mut new = Self {
            rtt: RttEstimator::new(now, config.initial_rtt),
            pacer: Pacer::new(now, config.pacing, packet, initial_window),
            sampler: RateSampler::new(now),
            rounds: Rounds::default(),
            episodes: Episodes::new(),
            controller: config.controller.build(now, &mut settings.env(rng)),
            loss_judgement: LossJudgement::for_path(path, config),
            settings,
            controller_not_before: None,
            inflight: ByteCount::ZERO,
            active_at: None,
            pto_count: 0,
            awaited_since: now,
            unreported_ecn: EcnCounts::default(),
            delivery_rate: None,
            stats: RecoveryStats::default(),
            scratch: LazyBox::default(),
        };
        new.refresh_pacer(now);
        new
    }

    /// The peer moved to another address (RFC 9000, section 9.4): RTT, controller, pacer and
    /// samples start afresh. Packets sent before leave flight silently; what later becomes of them
    /// touches neither window nor RTT. Totals and the numbering of episodes go on.
    ///
    /// `initial_rtt` is the assumption to start from: the configured one, or the time that the path's
    /// validation took, which is no sample yet (RFC 9002, section 6.2.2).
    ///
    /// Returns what was known of the old path, for [`PathRecovery::resume`].
    pub(crate) fn reset_for_new_path(
        &mut self,
        now: Instant,
        config: &Arc<TransportConfig>,
        initial_rtt: Duration,
        rng: &mut dyn Rng,
    ) -> Self {
        let fresh = Self::new(
            now,
            self.settings.path,
            config,
            self.settings.max_datagram_size,
            rng,
        );
        let stats = self.stats;
        let rtt = self.rtt.renewed(now, initial_rtt);
        let mut episodes = std::mem::replace(&mut self.episodes, Episodes::new());
        episodes.reset();
        let new = Self {
            rtt,
            episodes,
            stats,
            ..fresh
        };
        let old = std::mem::replace(self, new);
        self.pacer.set_granularity(old.pacer.granularity());
        self.refresh_pacer(now);
        old
    }

    /// The move to another address was a mistake: what was known of the old path holds again. What
    /// was sent meanwhile, and before, leaves flight silently; totals go on.
    pub(crate) fn resume(&mut self, now: Instant, mut old: Self) {
        let mut episodes = std::mem::replace(&mut self.episodes, Episodes::new());
        episodes.reset();
        old.on_discard(old.inflight);
        old.rtt = old.rtt.resumed(now, &self.rtt);
        *self = Self {
            episodes,
            stats: self.stats,
            pto_count: 0,
            awaited_since: now,
            unreported_ecn: EcnCounts::default(),
            ..old
        };
        self.refresh_pacer(now);
    }

    pub(crate) fn bytes_in_flight(&self) -> ByteCount {
        self.inflight
    }

    pub(crate) fn cwnd(&self) -> ByteCount {
        self.controller.cwnd()
    }

    /// True if a packet of `size` bytes may be sent: it fits into the window, or it is the one
    /// packet that may leave when an episode opens (RFC 9002, section 7.3.2). Probes needn't ask.
    pub(crate) fn has_window_for(&self, size: usize) -> bool {
        let after = self.inflight + ByteCount::new(size as u64);
        after <= self.cwnd() || self.episodes.has_free_packet()
    }

    /// True if the window has room for `size` bytes, the one packet that may leave when an episode
    /// opens not counted: that one is for data.
    pub(crate) fn has_room_for(&self, size: usize) -> bool {
        self.inflight + ByteCount::new(size as u64) <= self.cwnd()
    }

    /// When the pacer lets a full-sized packet go; not later than `now` means at once.
    pub(crate) fn pacing_release(&mut self, now: Instant) -> Instant {
        self.pacer.release(now)
    }

    /// Bytes that the pacer lets go back to back now; zero unless a full-sized packet may go,
    /// `usize::MAX` without pacing. The window is another matter.
    #[cfg_attr(
        not(test),
        expect(
            dead_code,
            reason = "sizes GSO batches; sending asks packet by packet so far"
        )
    )]
    pub(crate) fn pacing_budget(&mut self, now: Instant) -> usize {
        self.pacer.budget(now)
    }

    /// The rate that the pacer follows; `None` without pacing.
    pub(crate) fn pacing_rate(&self) -> Option<Bandwidth> {
        self.pacer.rate()
    }

    /// A packet that counts in flight left. Returns what the ledger has to keep of it.
    pub(crate) fn on_sent(
        &mut self,
        now: Instant,
        size: u16,
        purpose: SendPurpose,
        rng: &mut dyn Rng,
    ) -> DeliverySnapshot {
        let is_probe = purpose == SendPurpose::TimeoutProbe;
        let before = self.inflight;
        let bytes = ByteCount::new(u64::from(size));
        let was_idle = match self.active_at {
            Some(active_at) if before.is_zero() => Some(now.saturating_since(active_at)),
            _ => None,
        };
        if let Some(idle) = was_idle.filter(|idle| !idle.is_zero()) {
            self.controller
                .on_idle_restart(now, idle, &mut self.settings.env(rng));
            self.refresh_pacer(now);
        }
        let snapshot =
            self.sampler
                .on_sent(now, before, bytes.get(), is_probe, self.episodes.period());
        if before.is_zero() {
            self.awaited_since = now;
        }
        self.inflight += bytes;
        self.active_at = Some(now);
        self.rounds.on_sent(bytes.get());
        self.episodes.on_sent();
        self.pacer.on_sent(now, bytes.get());
        self.stats.sent += bytes;
        self.stats.sent_packets += PacketCount::new(1);
        let sent = SentInfo {
            now,
            bytes,
            inflight_before: before,
            is_probe,
            is_mtu_probe: purpose == SendPurpose::MtuProbe,
            ack_eliciting: true,
            was_idle,
        };
        self.controller.on_sent(&sent, &mut self.settings.env(rng));
        if self.inflight + self.settings.packet() > self.cwnd() {
            self.rounds.mark_window_limited();
        }
        snapshot
    }

    /// Nothing more to send: no stream data, datagrams, lost data or control frames, and none held
    /// back by flow control. Ignored while the window is full, since then the window is what
    /// limits.
    pub(crate) fn set_app_limited(&mut self, now: Instant) {
        self.pacer.on_drained(now);
        if self.inflight < self.cwnd() {
            self.sampler.mark_app_limited(now, self.inflight);
        }
    }

    /// Nothing can be sent, because the peer's flow control holds back all that waits. The window
    /// isn't tested, but rate samples count: how fast the peer takes data is a limit like the
    /// path's.
    pub(crate) fn set_flow_limited(&mut self, now: Instant) {
        self.pacer.on_drained(now);
        if self.inflight < self.cwnd() {
            self.sampler.mark_flow_limited(now, self.inflight);
        }
    }

    /// Data wait, and the window has no room for them.
    pub(crate) fn on_window_blocked(&mut self) {
        self.rounds.mark_window_limited();
        self.pacer.on_not_held();
    }

    /// `waiting` bytes wait, the window has room, and the pacer says later. Never a reason to
    /// count as application-limited (RFC 9002, section 7.8): where `waiting` would fill the window,
    /// the round counts as limited by it. Credit for a late timer is only given after this call.
    pub(crate) fn on_pacer_blocked(&mut self, now: Instant, waiting: ByteCount) {
        if self.inflight + waiting + self.settings.packet() > self.cwnd() {
            self.rounds.mark_window_limited();
        }
        self.pacer.on_held(now);
    }

    /// The driver's timers may be this late.
    pub(crate) fn set_timer_granularity(&mut self, now: Instant, granularity: Duration) {
        self.pacer.set_granularity(granularity);
        self.refresh_pacer(now);
    }

    /// The path.
    pub(crate) fn path(&self) -> PathId {
        self.settings.path
    }

    /// The path's packet size.
    pub(crate) fn max_datagram_size(&self) -> u16 {
        self.settings.max_datagram_size
    }

    /// The path's packet size changed.
    pub(crate) fn on_max_datagram_size(&mut self, max_datagram_size: u16, rng: &mut dyn Rng) {
        self.settings.set_max_datagram_size(max_datagram_size);
        self.pacer.set_packet_size(u64::from(max_datagram_size));
        self.controller
            .on_max_datagram_size_change(&mut self.settings.env(rng));
    }

    /// When the controller asks to be called next.
    pub(crate) fn next_controller_timer(&self) -> Option<Instant> {
        let due = self.controller.next_timer()?;
        Some(self.controller_not_before.map_or(due, |at| due.max(at)))
    }

    /// Changes parameters of the running controller; on an error nothing changes.
    pub(crate) fn configure_controller(
        &mut self,
        now: Instant,
        settings: &str,
    ) -> Result<(), ParameterError> {
        self.controller.configure(settings)?;
        self.refresh_pacer(now);
        Ok(())
    }

    /// Gives the controller a rate that was measured elsewhere.
    pub(crate) fn on_external_rate(
        &mut self,
        now: Instant,
        external: &ExternalRate,
        rng: &mut dyn Rng,
    ) {
        self.controller
            .on_external_rate(now, external, &mut self.settings.env(rng));
        self.refresh_pacer(now);
    }

    /// Calls the controller if the time it asked for has come.
    pub(crate) fn on_controller_timer(&mut self, now: Instant, rng: &mut dyn Rng) {
        if self.next_controller_timer().is_none_or(|due| due > now) {
            return;
        }
        self.controller.on_timer(now, &mut self.settings.env(rng));
        self.refresh_pacer(now);
        // A time that is past again would make the driver spin.
        let is_past = self.controller.next_timer().is_some_and(|due| due <= now);
        self.controller_not_before = is_past.then(|| now + GRANULARITY);
    }

    pub(crate) fn controller(&self) -> &dyn Controller {
        &*self.controller
    }

    /// Scales the growth of the window in congestion avoidance, see [`Controller::set_growth_scale`].
    pub(crate) fn set_growth_scale(&mut self, scale: f64) {
        self.controller.set_growth_scale(scale);
    }

    /// The rate of the last delivery-rate sample.
    pub(crate) fn delivery_rate(&self) -> Option<Bandwidth> {
        self.delivery_rate
    }

    /// True while the application limits the flow.
    pub(crate) fn is_app_limited(&self) -> bool {
        self.sampler.is_app_limited()
    }

    /// Of what was sent last, `bytes` stream bytes had been sent before, and `copies` of these were still in
    /// flight.
    pub(crate) fn on_retransmitted(&mut self, bytes: u64, copies: u64) {
        self.stats.retransmitted += ByteCount::new(bytes);
        self.stats.copies += ByteCount::new(copies);
    }

    pub(crate) fn stats(&self) -> RecoveryStats {
        self.stats
    }

    /// The mean of all round-trip times measured, those to former addresses included; zero without one.
    pub(crate) fn mean_rtt(&self) -> Duration {
        self.rtt.mean()
    }

    /// Configures the pacer as the controller asks.
    pub(super) fn refresh_pacer(&mut self, now: Instant) {
        let rtt = self.rtt.view();
        self.pacer.configure(
            now,
            &self.controller.pacing(&rtt),
            self.controller.cwnd(),
            &rtt,
            self.rtt.pto_base(),
            self.settings.initial_window,
        );
    }
}

impl IdleMemory for PathRecovery {
    fn release_idle_memory(&mut self) {
        let Self {
            settings: _,
            rtt: _,
            pacer: _,
            sampler: _,
            rounds: _,
            episodes,
            controller: _,
            loss_judgement: _,
            controller_not_before: _,
            inflight: _,
            active_at: _,
            pto_count: _,
            awaited_since: _,
            unreported_ecn: _,
            delivery_rate: _,
            stats: _,
            scratch,
        } = self;
        episodes.release_idle_memory();
        scratch.release();
    }
}

impl fmt::Debug for PathRecovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PathRecovery")
            .field("path", &self.settings.path)
            .field("controller", &self.controller.name())
            .field("cwnd", &self.cwnd())
            .field("bytes_in_flight", &self.inflight)
            .field("rtt", &self.rtt)
            .field("pto_count", &self.pto_count)
            .finish_non_exhaustive()
    }
}
