//! A re-injector driven by hand: what the connection would report and ask.

use std::time::Duration;

use swiftwater_quic::Priority;
use swiftwater_quic::policy::{
    Copied, DataRange, Hints, Occasion, PacketFate, PacketOutcome, PathView, Reinjection,
    Reinjector, ReinjectorReport, Rejection, RejectionReason, Repair, RepairCause,
};
use swiftwater_units::{ByteCount, Dir, Instant, PacketNumber, PathId, Side, StreamId};

/// The `nth` data range of 1000 bytes of the first unidirectional stream of a server.
pub fn data_range(nth: u64) -> DataRange {
    DataRange {
        stream: StreamId::new(Side::Server, Dir::Uni, 0),
        offset: nth * 1_000,
        len: 1_000,
    }
}

/// A re-injector, the time, and one path with an RTT of 60 ms. Time starts at one second.
#[derive(Debug)]
pub struct ReinjectorDriver {
    /// The policy.
    pub policy: Box<dyn Reinjector>,
    /// The time.
    pub now: Instant,
    /// The path that packets are reported on.
    pub path: PathView,
    /// New data that wait to be sent, reported before each question.
    pub unsent: ByteCount,
    packets: u64,
}

impl ReinjectorDriver {
    /// Drives `policy`.
    pub fn new(policy: Box<dyn Reinjector>) -> Self {
        let path = PathView::builder(PathId::ZERO)
            .rtt(Duration::from_millis(60))
            .min_rtt(Duration::from_millis(50))
            .rtt_var(Duration::from_millis(2))
            .cwnd(ByteCount::new(100_000))
            .build();
        Self {
            policy,
            now: Instant::from_millis(1_000),
            path,
            unsent: ByteCount::ZERO,
            packets: 0,
        }
    }

    /// Lets `ms` milliseconds pass.
    pub fn wait(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
    }

    /// State of the policy.
    pub fn report(&self) -> ReinjectorReport {
        self.policy.report()
    }

    /// Replicas per lost data range that are granted at present.
    pub fn level(&self) -> u32 {
        self.report().redundancy_level
    }

    /// Whole milliseconds from now to the next deadline.
    pub fn deadline_in(&self) -> Option<u128> {
        let deadline = self.policy.next_deadline()?;
        Some(deadline.saturating_since(self.now).as_micros() / 1_000)
    }

    /// Reports packets of these fates, so many of each; `repeated` if they carried data sent before.
    pub fn outcomes(&mut self, fates: &[(PacketFate, u64)], repeated: bool) {
        let mut outcomes = Vec::new();
        for &(fate, count) in fates {
            for _ in 0..count {
                outcomes.push(PacketOutcome {
                    path: self.path.id,
                    number: PacketNumber::new(self.packets),
                    sent_at: self.now - self.path.smoothed_rtt,
                    size: 1_200,
                    repeated,
                    fate,
                });
                self.packets += 1;
            }
        }
        self.policy.on_outcomes(self.now, &outcomes, &self.path);
    }

    /// An interval of 301 ms in which `lost` of 100 packets are lost passes.
    pub fn interval(&mut self, lost: u64) {
        self.outcomes(
            &[(PacketFate::Acked, 100 - lost), (PacketFate::Lost, lost)],
            false,
        );
        self.wait(301);
        // Shows the policy the time.
        self.outcomes(&[], false);
    }

    /// A retransmission of `range` leaves, in `round`, `detection` milliseconds after its first
    /// transmission.
    pub fn retransmit_as(
        &mut self,
        range: DataRange,
        round: u32,
        detection: u64,
        cause: RepairCause,
    ) {
        let event = Repair::Retransmitted {
            range,
            first_sent_at: self.now - Duration::from_millis(detection),
            lost_at: self.now,
            round,
            cause,
            priority: Priority::default(),
            deadline: None,
        };
        self.policy.on_repair(self.now, &event);
    }

    /// The first retransmission of `range` leaves, 90 ms after its first transmission.
    pub fn retransmit(&mut self, range: DataRange) {
        self.retransmit_as(range, 1, 90, RepairCause::Loss);
    }

    /// A replica of `range` leaves.
    pub fn replica_sent(&mut self, range: DataRange) {
        self.policy
            .on_repair(self.now, &Repair::ReplicaSent { range });
    }

    /// The first retransmission of `range` is acknowledged.
    pub fn recovered(&mut self, range: DataRange) {
        let by = Copied::Retransmission(1);
        self.policy
            .on_repair(self.now, &Repair::Recovered { range, by });
    }

    /// Asks the policy; what it asks for is not sent.
    pub fn ask(&mut self, occasion: Occasion) -> Vec<Reinjection> {
        let mut out = Vec::new();
        self.policy.on_unsent_data(self.now, self.unsent);
        self.policy.reinject(
            self.now,
            occasion,
            &mut std::iter::empty(),
            &[self.path],
            &Hints::default(),
            &mut out,
        );
        out
    }

    /// These copies will not be sent.
    pub fn reject(&mut self, copies: &[Reinjection], reason: RejectionReason) {
        let rejections: Vec<_> = copies
            .iter()
            .map(|&copy| Rejection::new(copy, reason))
            .collect();
        self.policy.on_rejected(self.now, &rejections);
    }

    /// Asks the policy, and lets the copies leave at once.
    pub fn send(&mut self, occasion: Occasion) -> Vec<DataRange> {
        let asked: Vec<_> = self
            .ask(occasion)
            .iter()
            .map(Reinjection::data_range)
            .collect();
        for &range in &asked {
            self.replica_sent(range);
        }
        asked
    }
}
