//! What the re-injector hears, and what it asks for.
//!
//! Facts go out as they happen: fates of packets, and what happened to data under repair. Its wishes
//! come back as stream ranges, which wait in `Policies::reinjections` until `fill` writes them.

use swiftwater_units::Instant;

use crate::frame_writer::Carried;
use crate::observe::Observation;
use crate::policy::{Hints, Occasion, OutstandingRange, PacketFate, PacketOutcome, Reinjection};
use crate::recovery::{AckedPacket, LostRecord};
use crate::streams::RepairEvent;

use super::Connection;

/// Copies that may wait to be sent; a re-injector that wants more is ahead of what can leave.
const MAX_REINJECTIONS: usize = 4096;

impl Connection {
    /// Tells the re-injector the fate of 1-RTT packets.
    pub(super) fn emit_outcomes(
        &mut self,
        now: Instant,
        acked: &[AckedPacket],
        lost: &[LostRecord],
    ) {
        if self.policies.reinjector.is_inert() || (acked.is_empty() && lost.is_empty()) {
            return;
        }
        let mut outcomes = std::mem::take(&mut self.scratch.need().outcomes);
        let entry = self.paths.first();
        let path = entry.path.id;
        let record = |number, sent_at, size, fate| {
            let packet = entry.space.ledger.packet(number);
            PacketOutcome {
                path,
                number,
                sent_at,
                size,
                repeated: packet.is_some_and(|packet| packet.retransmission),
                fate,
            }
        };
        outcomes.extend(acked.iter().map(|packet| {
            let fate = match packet.lost_in {
                None => PacketFate::Acked,
                Some(_) => PacketFate::Spurious,
            };
            record(packet.number, packet.sent_at, packet.size, fate)
        }));
        outcomes
            .extend(lost.iter().map(|packet| {
                record(packet.number, packet.sent_at, packet.size, PacketFate::Lost)
            }));
        outcomes.sort_unstable_by_key(|outcome| outcome.number);
        self.refresh_path_views(now);
        if let Some(view) = self.scratch.need().views.first() {
            self.policies.reinjector.on_outcomes(now, &outcomes, view);
        }
        outcomes.clear();
        self.scratch.need().outcomes = outcomes;
        self.observe_redundancy(now);
    }

    /// Tells the re-injector and the observer what happened to data under repair.
    pub(super) fn emit_repairs(&mut self, now: Instant) {
        while let Some(event) = self.streams.poll_repair() {
            match event {
                RepairEvent::Policy(event) => self.policies.reinjector.on_repair(now, &event),
                RepairEvent::Lost {
                    datum,
                    detection_time,
                    cause,
                } => self.monitor.observe(
                    now,
                    &Observation::DataLost {
                        datum,
                        detection_time,
                        cause,
                    },
                ),
                RepairEvent::Recovered(recovery) => self.monitor.observe(
                    now,
                    &Observation::DataRecovered {
                        datum: recovery.datum,
                        by: recovery.by,
                        recovery_latency: recovery.latency,
                        detection_time: recovery.detection_time,
                        retransmissions: recovery.retransmissions,
                        replicas: recovery.replicas,
                    },
                ),
            }
        }
    }

    /// Tells the re-injector and the observer what resets of streams brought about, and the observer
    /// which streams came and went.
    pub(super) fn emit_resets(&mut self, now: Instant) {
        while let Some((id, begins)) = self.streams.poll_life() {
            let observation = if begins {
                Observation::StreamOpened { id }
            } else {
                Observation::StreamClosed { id }
            };
            self.monitor.observe(now, &observation);
        }
        while let Some(notice) = self.streams.poll_notice() {
            self.monitor.observe(
                now,
                &Observation::StreamReset {
                    id: notice.id,
                    cause: notice.cause,
                    code: notice.code,
                    final_size: notice.final_size,
                    reliable_size: notice.reliable_size,
                },
            );
            self.emit_repairs(now);
        }
    }

    /// The connection closes: the re-injector hears that nobody waits for the data it looks after.
    pub(super) fn end_repairs(&mut self, now: Instant) {
        self.policies.reinjections.clear();
        self.streams.abandon_repairs();
        self.emit_repairs(now);
    }

    /// Shows the observer a change of the re-injector's mind.
    fn observe_redundancy(&mut self, now: Instant) {
        if !self.monitor.is_watched() {
            return;
        }
        let report = self.policies.reinjector.report();
        if report.decisions != self.policies.decisions_seen {
            self.policies.decisions_seen = report.decisions;
            let report = &report;
            self.monitor
                .observe(now, &Observation::Redundancy { report });
        }
    }

    /// Asks the re-injector what to send a second time.
    pub(super) fn consult_reinjector(&mut self, now: Instant, occasion: Occasion) {
        let reinjector = &self.policies.reinjector;
        let is_asked_for = matches!(occasion, Occasion::SpareRoom | Occasion::Timer);
        let is_deaf = !(is_asked_for || reinjector.wants(occasion));
        if reinjector.is_inert() || is_deaf || !self.lifecycle.is_open() {
            return;
        }
        self.refresh_path_views(now);
        let mut out = std::mem::take(&mut self.scratch.need().reinjections);
        out.clear();
        let entry = self.paths.first();
        let mut outstanding =
            entry
                .space
                .ledger
                .outstanding()
                .filter_map(|(packet, sent, carried)| match carried {
                    Carried::Stream {
                        id,
                        offset,
                        len,
                        fin,
                        ..
                    } => Some(OutstandingRange {
                        path: entry.path.id,
                        packet,
                        sent_at: sent.sent_at,
                        stream: id,
                        offset,
                        len,
                        fin,
                        retransmission: sent.retransmission,
                    }),
                    _ => None,
                });
        let none = Hints::default();
        self.policies.reinjector.reinject(
            now,
            occasion,
            &mut outstanding,
            &self.scratch.need().views,
            self.policies.hints.get().unwrap_or(&none),
            &mut out,
        );
        // A policy that asks for nonsense or without end harms only itself.
        let room = MAX_REINJECTIONS.saturating_sub(self.policies.reinjections.len());
        let sane = |copy: &Reinjection| copy.offset.checked_add(copy.len.into()).is_some();
        let asked = out.len();
        let before = self.policies.reinjections.len();
        self.policies
            .reinjections
            .extend(out.drain(..).filter(sane).take(room));
        let taken = self.policies.reinjections.len() - before;
        self.monitor.stats.invalid_decisions += (asked - taken) as u64;
        self.scratch.need().reinjections = out;
    }
}
