//! What became of sent packets: acknowledgements, losses, marks, and their reports to the controller.
//!
//! Order inside one ACK: late acknowledgements and delivery accounting, losses, bytes in flight,
//! then `on_loss`, `on_ce`, `on_spurious`, `on_ack`, then the pacer.

use rand_core::Rng;
use swiftwater_congestion::{
    AckBatch, EcnBatch, EcnCounts, EpisodeId, LossBatch, LossCause, LostPacket,
};
use swiftwater_units::{ByteCount, Instant, PacketCount};

use super::path::PathRecovery;
use super::{AckedPacket, LostRecord};

/// How long lost packets are kept, in probe timeouts.
const MEMORY_PTOS: u32 = 3;

/// What one ACK newly acknowledged on the present address.
struct Acked {
    /// Bytes and packets that were in flight until now.
    bytes: ByteCount,
    packets: PacketCount,
    prior_inflight: ByteCount,
    /// The packet sent last.
    newest: AckedPacket,
}

/// A run of loss detection.
#[derive(Clone, Copy)]
struct Losses<'a> {
    /// Oldest first.
    packets: &'a [LostRecord],
    cause: LossCause,
    persistent: bool,
}

/// What a run of loss detection took out of flight.
#[derive(Clone, Copy, Default)]
struct Lost {
    bytes: ByteCount,
    /// To stamp into the ledger; `None` if nothing was lost.
    episode: Option<EpisodeId>,
}

impl PathRecovery {
    /// An ACK frame newly acknowledged `acked` (any order; packets that count in flight only) and
    /// revealed `lost` (ascending packet numbers; may be empty). `persistent` says that `lost`
    /// establishes persistent congestion, `ecn` the validated increase of the peer's counts.
    ///
    /// Returns the episode that the ledger has to keep for `lost`, so that it can be handed
    /// back as [`AckedPacket::lost_in`]; `None` if `lost` is empty.
    pub(crate) fn on_ack_batch(
        &mut self,
        now: Instant,
        acked: &[AckedPacket],
        lost: &[LostRecord],
        persistent: bool,
        ecn: EcnCounts,
        rng: &mut dyn Rng,
    ) -> Option<EpisodeId> {
        self.episodes.discard(now);
        let acked = self.take_acked(now, acked);
        // The frame may also have passed the time threshold; the packet threshold is the usual one.
        let cause = LossCause::Reorder;
        let lost = self.take_lost(
            now,
            Losses {
                packets: lost,
                cause,
                persistent,
            },
            rng,
        );
        let ecn = self.with_unreported_counts(ecn, acked.is_some());
        if let Some(acked) = acked {
            if !ecn.ce.is_zero() {
                self.report_ce(now, &acked.newest, ecn, rng);
            }
            let refuted = self.report_spurious(now, rng);
            self.report_ack(now, &acked, lost.bytes, ecn, refuted, rng);
        }
        self.after_results(now);
        lost.episode
    }

    /// The loss timer declared packets lost (ascending packet numbers), or, for
    /// [`LossCause::Abandoned`], their path or space was abandoned: then they leave flight without
    /// being a sign of congestion. Returns what [`PathRecovery::on_ack_batch`] does.
    pub(crate) fn on_losses(
        &mut self,
        now: Instant,
        lost: &[LostRecord],
        cause: LossCause,
        persistent: bool,
        rng: &mut dyn Rng,
    ) -> Option<EpisodeId> {
        self.episodes.discard(now);
        let lost = self.take_lost(
            now,
            Losses {
                packets: lost,
                cause,
                persistent,
            },
            rng,
        );
        self.after_results(now);
        lost.episode
    }

    /// A space was discarded with `bytes` in flight on the present address: they leave flight
    /// silently (RFC 9002, section 6.4).
    pub(crate) fn on_discard(&mut self, bytes: ByteCount) {
        self.inflight -= bytes;
        self.sampler.on_discard(self.inflight);
        self.controller.on_discard(bytes);
    }

    /// Adds the counts that came with ACKs of nothing that counted in flight, which are not
    /// reported to the controller; unless `reported` now, `ecn` is one more of them.
    fn with_unreported_counts(&mut self, ecn: EcnCounts, reported: bool) -> EcnCounts {
        let sum = EcnCounts {
            ect0: self.unreported_ecn.ect0 + ecn.ect0,
            ect1: self.unreported_ecn.ect1 + ecn.ect1,
            ce: self.unreported_ecn.ce + ecn.ce,
        };
        self.unreported_ecn = if reported { EcnCounts::default() } else { sum };
        sum
    }

    /// Delivery accounting of the newly acknowledged packets; `None` if none was sent to the
    /// present address.
    fn take_acked(&mut self, now: Instant, acked: &[AckedPacket]) -> Option<Acked> {
        let prior_inflight = self.inflight;
        let (mut bytes, mut packets) = (ByteCount::ZERO, PacketCount::ZERO);
        let mut newest: Option<&AckedPacket> = None;
        for packet in acked {
            let size = ByteCount::new(u64::from(packet.size));
            self.stats.delivered += size;
            if packet.lost_in.is_some() {
                self.stats.spurious_packets += PacketCount::new(1);
            }
            if !self.episodes.is_current(packet.snapshot.period) {
                continue;
            }
            self.sampler.on_delivered(now, packet);
            if let Some(episode) = packet.lost_in {
                self.episodes.on_late_ack(episode);
            } else {
                bytes += size;
                packets += PacketCount::new(1);
            }
            let sent = (packet.sent_at, packet.number);
            if newest.is_none_or(|other| sent > (other.sent_at, other.number)) {
                newest = Some(packet);
            }
        }
        self.sampler.expire_marks();
        self.inflight -= bytes;
        let newest = *newest?;
        self.active_at = self.active_at.max(Some(now));
        Some(Acked {
            bytes,
            packets,
            prior_inflight,
            newest,
        })
    }

    /// Takes lost packets out of flight and reports them to the controller.
    fn take_lost(&mut self, now: Instant, losses: Losses<'_>, rng: &mut dyn Rng) -> Lost {
        if losses.packets.is_empty() {
            return Lost::default();
        }
        let prior_inflight = self.inflight;
        let mut lost = self.record_losses(losses.packets, losses.cause);
        lost.episode = Some(self.episodes.last());
        self.inflight -= lost.bytes;
        if losses.cause == LossCause::Abandoned {
            self.sampler.on_discard(self.inflight);
            self.controller.on_discard(lost.bytes);
            return lost;
        }
        // Periods rise with packet numbers: those of a former address come first.
        let former = losses
            .packets
            .partition_point(|p| !self.episodes.is_current(p.snapshot.period));
        let current = Losses {
            packets: &losses.packets[former..],
            ..losses
        };
        let Some(newest) = current.packets.last() else {
            return lost;
        };
        self.active_at = self.active_at.max(Some(now));
        let episode = self.report_loss(now, &current, newest, lost.bytes, prior_inflight, rng);
        if losses.persistent {
            self.stats.persistent_congestions += 1;
            self.episodes.on_persistent_congestion();
            self.rtt.discard_min(now);
            self.controller
                .on_persistent_congestion(now, &mut self.settings.env(rng));
        }
        Lost {
            episode: Some(episode),
            ..lost
        }
    }

    /// Reports lost packets of the present address, of which `newest` was sent last, to the controller;
    /// returns the episode that they belong to.
    fn report_loss(
        &mut self,
        now: Instant,
        losses: &Losses<'_>,
        newest: &LostRecord,
        lost_bytes: ByteCount,
        prior_inflight: ByteCount,
        rng: &mut dyn Rng,
    ) -> EpisodeId {
        let memory = self.rtt.pto_base().saturating_mul(MEMORY_PTOS);
        let packets = self.scratch.get().map_or(0, Vec::len) as u64;
        let (episode, new_episode) =
            self.episodes
                .on_loss(now, newest.snapshot.period, packets, memory);
        self.stats.congestion_events += u64::from(new_episode);
        if let Some(judgement) = self.loss_judgement.as_deref_mut().filter(|_| new_episode) {
            judgement.on_loss_episode(now);
        }
        let batch = LossBatch {
            now,
            lost_bytes,
            lost_packets: PacketCount::new(packets),
            lost_ranges: count_ranges(losses.packets),
            largest_lost_sent_at: newest.sent_at,
            new_episode,
            episode,
            packets: self.scratch.get().map_or(&[], Vec::as_slice),
            prior_inflight,
            inflight: self.inflight,
            round_lost: self.rounds.lost(),
            round_sent: self.rounds.sent(),
            cause: losses.cause,
            rtt: self.rtt.view(),
            cwnd_limited_in_round: self.rounds.window_limited(),
        };
        self.controller.on_loss(&batch, &mut self.settings.env(rng));
        episode
    }

    /// Counts lost packets and fills the scratch list with those of the present address; their
    /// bytes are returned.
    fn record_losses(&mut self, packets: &[LostRecord], cause: LossCause) -> Lost {
        let reported = self.scratch.need();
        reported.clear();
        let mut lost = Lost::default();
        for packet in packets {
            let size = ByteCount::new(u64::from(packet.size));
            if cause != LossCause::Abandoned {
                self.stats.lost_bytes += size;
                self.stats.lost_packets += PacketCount::new(1);
            }
            if !self.episodes.is_current(packet.snapshot.period) {
                continue;
            }
            lost.bytes += size;
            if cause == LossCause::Abandoned {
                continue;
            }
            self.sampler.on_lost(packet);
            self.rounds.on_lost(size);
            reported.push(LostPacket {
                size,
                sent_at: packet.sent_at,
                tx_in_flight: ByteCount::new(packet.snapshot.tx_in_flight),
                lost_prior: ByteCount::new(packet.snapshot.lost),
                delivered_prior: ByteCount::new(packet.snapshot.delivered),
                is_app_limited: packet.snapshot.is_app_limited,
            });
        }
        lost
    }

    fn report_ce(
        &mut self,
        now: Instant,
        newest: &AckedPacket,
        counts: EcnCounts,
        rng: &mut dyn Rng,
    ) {
        self.sampler.on_ce(counts.ce);
        self.stats.ce_packets += counts.ce;
        let (episode, new_episode) = self.episodes.on_ce(newest.snapshot.period);
        self.stats.congestion_events += u64::from(new_episode);
        let batch = EcnBatch {
            now,
            counts,
            largest_acked_sent_at: newest.sent_at,
            new_episode,
            episode,
            inflight: self.inflight,
            rtt: self.rtt.view(),
            cwnd_limited_in_round: self.rounds.window_limited(),
        };
        self.controller.on_ce(&batch, &mut self.settings.env(rng));
    }

    /// Reports refuted episodes to the controller, newest first, so that undoing each in turn ends
    /// at the state before the oldest. True if the recovery period ended by it.
    fn report_spurious(&mut self, now: Instant, rng: &mut dyn Rng) -> bool {
        let mut recovery_ended = false;
        while let Some((episode, closed)) = self.episodes.take_refuted() {
            recovery_ended |= closed;
            self.stats.spurious_events += 1;
            self.controller
                .on_spurious(episode, now, &mut self.settings.env(rng));
        }
        recovery_ended
    }

    fn report_ack(
        &mut self,
        now: Instant,
        acked: &Acked,
        newly_lost_bytes: ByteCount,
        ecn: EcnCounts,
        refuted: bool,
        rng: &mut dyn Rng,
    ) {
        let snapshot = &acked.newest.snapshot;
        let rate = self.sampler.sample(&acked.newest, self.rtt.min());
        self.delivery_rate = rate.map(|sample| sample.rate).or(self.delivery_rate);
        let round = self
            .rounds
            .on_ack(snapshot.delivered, self.sampler.delivered());
        let ended = self.episodes.on_ack(snapshot.period);
        let batch = AckBatch {
            now,
            acked_bytes: acked.bytes,
            acked_packets: acked.packets,
            prior_inflight: acked.prior_inflight,
            inflight: self.inflight,
            largest_acked_sent_at: acked.newest.sent_at,
            rtt: self.rtt.view(),
            round,
            rate,
            delivered: ByteCount::new(self.sampler.delivered()),
            ecn,
            app_limited: self.sampler.is_window_untested(),
            cwnd_limited_in_round: self.rounds.window_limited(),
            newly_lost_bytes,
            in_recovery: self.episodes.in_recovery(),
            recovery_ended: ended || refuted,
            sent_after_recovery_start: self.episodes.sent_after_start(snapshot.period),
        };
        self.controller.on_ack(&batch, &mut self.settings.env(rng));
        if self.controller.uses_app_limited_mark() {
            self.sampler.mark_held_back(now, self.inflight);
        }
    }

    fn after_results(&mut self, now: Instant) {
        if self.inflight.is_zero() {
            self.pacer.on_idle(now);
        }
        self.refresh_pacer(now);
    }
}

/// Runs of consecutive packet numbers in an ascending list.
fn count_ranges(packets: &[LostRecord]) -> u64 {
    let gaps = packets
        .windows(2)
        .filter(|pair| pair[0].number.next() != pair[1].number);
    u64::from(!packets.is_empty()) + gaps.count() as u64
}
