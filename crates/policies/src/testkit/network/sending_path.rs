//! The sender's side of one path: RTT estimates, packets in flight, loss detection and probe timeouts
//! (RFC 9002).

use std::collections::BTreeMap;
use std::time::Duration;

use swiftwater_quic::policy::{PacketFate, PacketOutcome, PathView};
use swiftwater_units::{Instant, PacketNumber, PathId};

use super::super::report::PathReport;
use super::super::scripted_path::ScriptedPath;
use super::Sending;

/// kPacketThreshold of RFC 9002, section 6.1.1.
const PACKET_THRESHOLD: u64 = 3;

#[derive(Clone, Copy, Debug)]
pub(super) struct SentPacket {
    pub(super) cell: usize,
    pub(super) sent_at: Instant,
    pub(super) size: u64,
    pub(super) sending: Sending,
    pub(super) round: u32,
    pub(super) delivered: u64,
}

/// A path with what its sender keeps of it.
#[derive(Debug)]
pub(super) struct SendingPath {
    pub(super) script: ScriptedPath,
    pub(super) view: PathView,
    pub(super) next_number: u64,
    pub(super) in_flight: BTreeMap<u64, SentPacket>,
    pub(super) largest_acked: Option<u64>,
    pub(super) last_sent_at: Instant,
    pub(super) delivered: u64,
    pub(super) lost: u64,
    pub(super) report: PathReport,
}

impl SendingPath {
    pub(super) fn new(id: PathId, script: ScriptedPath) -> Self {
        let view = PathView::builder(id)
            .rtt(2 * script.delay)
            .has_rtt_sample(false)
            .cwnd(script.cwnd)
            .local_status(script.status)
            .cost(script.cost)
            .build();
        Self {
            script,
            view,
            next_number: 0,
            in_flight: BTreeMap::new(),
            largest_acked: None,
            last_sent_at: Instant::ZERO,
            delivered: 0,
            lost: 0,
            report: PathReport {
                id,
                ..PathReport::default()
            },
        }
    }

    /// RFC 9002, section 5.3.
    pub(super) fn on_rtt_sample(&mut self, rtt: Duration) {
        let view = &mut self.view;
        view.latest_rtt = rtt;
        if view.has_rtt_sample {
            let deviation = view.smoothed_rtt.abs_diff(rtt);
            view.rtt_var = (view.rtt_var * 3 + deviation) / 4;
            view.smoothed_rtt = (view.smoothed_rtt * 7 + rtt) / 8;
            view.min_rtt = view.min_rtt.min(rtt);
        } else {
            (view.smoothed_rtt, view.rtt_var) = (rtt, rtt / 2);
            (view.min_rtt, view.has_rtt_sample) = (rtt, true);
        }
    }

    pub(super) fn time_threshold(&self) -> Duration {
        self.view.smoothed_rtt.max(self.view.latest_rtt) * 9 / 8
    }

    /// When something happens on the path without an acknowledgement: time threshold, else probe
    /// timeout.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let oldest = self.in_flight.iter().next()?;
        if self
            .largest_acked
            .is_some_and(|largest| *oldest.0 < largest)
        {
            return Some(oldest.1.sent_at + self.time_threshold());
        }
        let timeout = self.view.smoothed_rtt + 4 * self.view.rtt_var;
        Some(self.last_sent_at + timeout * 2_u32.pow(self.view.pto_count.min(6)))
    }

    /// Takes what the thresholds say out of flight (RFC 9002, section 6.1).
    pub(super) fn detect_lost(&mut self, now: Instant) -> Vec<(u64, SentPacket)> {
        let Some(largest) = self.largest_acked else {
            return Vec::new();
        };
        let delay = self.time_threshold();
        let lost: Vec<_> = self
            .in_flight
            .range(..largest)
            .filter(|(number, packet)| {
                **number + PACKET_THRESHOLD <= largest || packet.sent_at + delay <= now
            })
            .map(|(number, packet)| (*number, *packet))
            .collect();
        for (number, _) in &lost {
            self.in_flight.remove(number);
        }
        lost
    }

    pub(super) fn outcome(
        &self,
        number: u64,
        packet: &SentPacket,
        fate: PacketFate,
    ) -> PacketOutcome {
        PacketOutcome {
            path: self.view.id,
            number: PacketNumber::new(number),
            sent_at: packet.sent_at,
            size: packet.size as u16,
            repeated: packet.sending != Sending::New,
            fate,
        }
    }
}
