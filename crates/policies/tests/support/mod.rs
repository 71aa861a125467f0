//! A re-injector driven by hand: what the connection would tell and ask.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary uses a part of it"
)]

use std::time::Duration;

use swiftwater_policies::reinjector_by_name;
use swiftwater_quic::policy::{
    Copied, Datum, Hints, Occasion, PacketFate, PacketOutcome, PathView, Reinjection, Reinjector,
    ReinjectorReport, Rejection, RejectionReason, Repair, RepairCause,
};
use swiftwater_units::{ByteCount, Dir, Instant, PacketNumber, PathId, Side, StreamId};

pub const SRTT: Duration = Duration::from_millis(60);

pub fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// The `nth` datum of 1000 bytes.
pub fn datum(nth: u64) -> Datum {
    Datum {
        stream: StreamId::new(Side::Server, Dir::Uni, 0),
        offset: nth * 1_000,
        len: 1_000,
    }
}

pub fn view() -> PathView {
    PathView::builder(PathId::ZERO)
        .smoothed_rtt(SRTT)
        .min_rtt(millis(50))
        .rtt_var(millis(2))
        .cwnd(ByteCount::new(100_000))
        .build()
}

/// A re-injector and the time.
#[derive(Debug)]
pub struct Driver {
    pub policy: Box<dyn Reinjector>,
    pub now: Instant,
    packets: u64,
}

impl Driver {
    pub fn new(specification: &str) -> Self {
        Self {
            policy: reinjector_by_name(specification).expect("a specification"),
            now: at(1_000),
            packets: 0,
        }
    }

    pub fn wait(&mut self, ms: u64) {
        self.now += millis(ms);
    }

    pub fn report(&self) -> ReinjectorReport {
        self.policy.report()
    }

    pub fn level(&self) -> u32 {
        self.report().redundancy_level
    }

    /// Milliseconds from now to the next deadline.
    pub fn deadline_in(&self) -> Option<u128> {
        let deadline = self.policy.next_deadline()?;
        Some(deadline.saturating_since(self.now).as_micros() / 1_000)
    }

    /// Packets of these fates are settled.
    pub fn outcomes(&mut self, fates: &[(PacketFate, u64)], repeated: bool) {
        let mut outcomes = Vec::new();
        for &(fate, count) in fates {
            for _ in 0..count {
                outcomes.push(PacketOutcome {
                    path: PathId::ZERO,
                    number: PacketNumber::new(self.packets),
                    sent_at: self.now - SRTT,
                    size: 1_200,
                    repeated,
                    fate,
                });
                self.packets += 1;
            }
        }
        self.policy.on_outcomes(self.now, &outcomes, &view());
    }

    /// An interval in which `lost` of 100 packets are lost passes.
    pub fn interval(&mut self, lost: u64) {
        self.outcomes(
            &[(PacketFate::Acked, 100 - lost), (PacketFate::Lost, lost)],
            false,
        );
        self.wait(301);
        // Shows the policy the time.
        self.policy.on_outcomes(self.now, &[], &view());
    }

    /// A retransmission of `datum` leaves, in `round`, `detection` ms after its first transmission.
    pub fn retransmit_as(&mut self, datum: Datum, round: u32, detection: u64, cause: RepairCause) {
        let event = Repair::Retransmitted {
            datum,
            first_sent_at: self.now - millis(detection),
            lost_at: self.now,
            round,
            cause,
            priority: swiftwater_quic::Priority::default(),
            deadline: None,
        };
        self.policy.on_repair(self.now, &event);
    }

    /// The first retransmission of `datum`, 90 ms after its first transmission.
    pub fn retransmit(&mut self, datum: Datum) {
        self.retransmit_as(datum, 1, 90, RepairCause::Loss);
    }

    pub fn replica_sent(&mut self, datum: Datum) {
        self.policy
            .on_repair(self.now, &Repair::ReplicaSent { datum });
    }

    pub fn recovered(&mut self, datum: Datum) {
        let by = Copied::Retransmission(1);
        self.policy
            .on_repair(self.now, &Repair::Recovered { datum, by });
    }

    pub fn ask(&mut self, occasion: Occasion) -> Vec<Reinjection> {
        let mut out = Vec::new();
        self.policy.reinject(
            self.now,
            occasion,
            &mut std::iter::empty(),
            &[view()],
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

    /// Asks for data, and lets the copies leave at once.
    pub fn send(&mut self, occasion: Occasion) -> Vec<Datum> {
        let asked: Vec<_> = self.ask(occasion).iter().map(named).collect();
        for &datum in &asked {
            self.replica_sent(datum);
        }
        asked
    }
}

/// The datum of a request.
pub fn named(copy: &Reinjection) -> Datum {
    Datum {
        stream: copy.stream,
        offset: copy.offset,
        len: copy.len,
    }
}
