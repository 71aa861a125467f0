//! A witness of what a server sends: an observer of its packets and a policy in front of the one under
//! test, which receives the fates of packets. From these alone it derives, byte by byte, the number of
//! transmissions and the acknowledgements.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use swiftwater_quic::crypto::EncryptionLevel;
use swiftwater_quic::observe::{Observation, Observer, ObserverFactory, Purpose, SentFrame};
use swiftwater_quic::policy::{
    AckPolicy, ConfigureError, FeedbackPolicy, Hints, LossJudge, NextData, Occasion,
    OutstandingRange, PacketFate, PacketOutcome, PathView, PolicyFactory, ReceivedFeedback,
    Reinjection, Reinjector, ReinjectorReport, Rejection, ReorderingThresholds, Repair, Scheduler,
};
use swiftwater_units::{ByteCount, Instant, PacketNumber, PathId, Side, StreamId};

/// State of one byte of a stream.
#[derive(Clone, Copy, Debug, Default)]
struct Byte {
    sent: bool,
    retransmitted: bool,
    acked: bool,
    replicas: u32,
    /// Since the last retransmission.
    replicas_of_round: u32,
}

/// What was seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Witnessed {
    bytes: BTreeMap<StreamId, Vec<Byte>>,
    carried: BTreeMap<PacketNumber, Vec<SentFrame>>,
    packets: Vec<Vec<SentFrame>>,
    /// Bytes sent for the first time and bytes of replicas.
    sent: Vec<(Instant, u64, u64)>,
    most_replicas: u32,
    most_replicas_a_round: u32,
    faults: Vec<String>,
}

impl Witnessed {
    fn on_packet(&mut self, now: Instant, number: PacketNumber, frames: &[SentFrame]) {
        for frame in frames {
            if let SentFrame::Stream {
                id,
                offset,
                len,
                purpose,
                ..
            } = *frame
            {
                self.on_stream_frame(now, id, offset, len, purpose);
            }
        }
        self.carried.insert(number, frames.to_vec());
        self.packets.push(frames.to_vec());
    }

    fn on_stream_frame(
        &mut self,
        now: Instant,
        id: StreamId,
        offset: u64,
        len: u32,
        purpose: Purpose,
    ) {
        let stream = self.bytes.entry(id).or_default();
        let (start, end) = (offset as usize, offset as usize + len as usize);
        if stream.len() < end {
            stream.resize(end, Byte::default());
        }
        let mut fault = None;
        for byte in &mut stream[start..end] {
            if byte.acked {
                fault = Some("acknowledged bytes");
            }
            match purpose {
                Purpose::New if byte.sent => fault = Some("bytes sent before, as new ones"),
                Purpose::New => byte.sent = true,
                _ if !byte.sent => fault = Some("bytes never sent, as copies"),
                Purpose::Retransmission => {
                    byte.retransmitted = true;
                    byte.replicas_of_round = 0;
                }
                Purpose::Replica => {
                    if !byte.retransmitted {
                        fault = Some("replicas before any retransmission");
                    }
                    byte.replicas += 1;
                    byte.replicas_of_round += 1;
                    self.most_replicas = self.most_replicas.max(byte.replicas);
                    let a_round = &mut self.most_replicas_a_round;
                    *a_round = (*a_round).max(byte.replicas_of_round);
                }
            }
        }
        match purpose {
            Purpose::New => self.sent.push((now, len.into(), 0)),
            Purpose::Replica => self.sent.push((now, 0, len.into())),
            Purpose::Retransmission => {}
        }
        if let Some(fault) = fault {
            self.faults.push(format!(
                "{fault}: {id:?} {offset}+{len} as {purpose:?} at {now:?}"
            ));
        }
    }

    fn on_acked(&mut self, number: PacketNumber) {
        for frame in self.carried.get(&number).into_iter().flatten() {
            let SentFrame::Stream {
                id, offset, len, ..
            } = *frame
            else {
                continue;
            };
            let start = offset as usize;
            let stream = self.bytes.entry(id).or_default();
            for byte in &mut stream[start..start + len as usize] {
                byte.acked = true;
            }
        }
    }

    /// Panics if something left that must not.
    pub(crate) fn assert_faultless(&self) {
        let faults = &self.faults;
        assert!(
            faults.is_empty(),
            "{} faults, first {}",
            faults.len(),
            faults[0]
        );
    }

    /// Replicas of the byte that has the most.
    pub(crate) fn most_replicas(&self) -> u32 {
        self.most_replicas
    }

    /// The same, between two retransmissions.
    pub(crate) fn most_replicas_a_round(&self) -> u32 {
        self.most_replicas_a_round
    }

    pub(crate) fn new_bytes(&self) -> u64 {
        self.sent.iter().map(|(_, new, _)| new).sum()
    }

    pub(crate) fn replica_bytes(&self) -> u64 {
        self.sent.iter().map(|(_, _, replicas)| replicas).sum()
    }

    pub(crate) fn acked_bytes(&self) -> usize {
        let acked = self.bytes.values().flatten().filter(|byte| byte.acked);
        acked.count()
    }

    /// The largest share of replica bytes to new bytes in the `window` before any replica, and when
    /// that was.
    pub(crate) fn worst_cost(&self, window: Duration) -> (f64, Instant) {
        let mut worst = (0.0, Instant::ZERO);
        let (mut first, mut new, mut replicas) = (0, 0, 0);
        for &(at, sent, copied) in &self.sent {
            new += sent;
            replicas += copied;
            while self.sent[first].0 + window < at {
                new -= self.sent[first].1;
                replicas -= self.sent[first].2;
                first += 1;
            }
            let cost = replicas as f64 / new.max(1) as f64;
            if copied > 0 && cost > worst.0 {
                worst = (cost, at);
            }
        }
        worst
    }
}

/// True if data are among the frames.
pub(crate) fn has_stream(frames: &[SentFrame]) -> bool {
    let is_stream = |frame: &SentFrame| matches!(frame, SentFrame::Stream { .. });
    frames.iter().any(is_stream)
}

/// Observes one server's connection.
#[derive(Clone, Debug)]
pub(crate) struct Witness(Arc<Mutex<Witnessed>>);

impl Witness {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    /// What was seen so far.
    pub(crate) fn take(&self) -> Witnessed {
        self.0.lock().unwrap().clone()
    }

    /// Number of 1-RTT packets seen so far.
    pub(crate) fn packets(&self) -> usize {
        self.0.lock().unwrap().packets.len()
    }

    pub(crate) fn packets_since(&self, start: usize) -> Vec<Vec<SentFrame>> {
        self.0.lock().unwrap().packets[start..].to_vec()
    }

    /// `policies`, with the witness as a wrapper of the re-injector.
    pub(crate) fn policies(&self, policies: Arc<dyn PolicyFactory>) -> Arc<dyn PolicyFactory> {
        Arc::new(Listening {
            policies,
            witness: self.clone(),
        })
    }
}

impl ObserverFactory for Witness {
    fn observer(&self, side: Side) -> Option<Box<dyn Observer>> {
        side.is_server()
            .then(|| Box::new(self.clone()) as Box<dyn Observer>)
    }
}

impl Observer for Witness {
    fn observe(&mut self, now: Instant, observation: &Observation<'_>) {
        if let Observation::PacketSent {
            level: EncryptionLevel::OneRtt,
            number,
            frames,
            ..
        } = *observation
        {
            self.0.lock().unwrap().on_packet(now, number, frames);
        }
    }
}

#[derive(Debug)]
struct Listening {
    policies: Arc<dyn PolicyFactory>,
    witness: Witness,
}

impl PolicyFactory for Listening {
    fn scheduler(&self) -> Box<dyn Scheduler> {
        self.policies.scheduler()
    }

    fn reinjector(&self) -> Box<dyn Reinjector> {
        Box::new(Listener {
            inner: self.policies.reinjector(),
            witness: self.witness.clone(),
        })
    }

    fn ack_policy(&self, threshold: u64) -> Box<dyn AckPolicy> {
        self.policies.ack_policy(threshold)
    }

    fn loss_judge(&self, path: PathId, configured: ReorderingThresholds) -> Box<dyn LossJudge> {
        self.policies.loss_judge(path, configured)
    }

    fn feedback(&self) -> Box<dyn FeedbackPolicy> {
        self.policies.feedback()
    }
}

/// Records the inputs of the re-injector without changing them.
#[derive(Debug)]
struct Listener {
    inner: Box<dyn Reinjector>,
    witness: Witness,
}

impl Reinjector for Listener {
    fn can_use_spare_room(&self) -> bool {
        !self.inner.is_inert() && self.inner.can_use_spare_room()
    }

    fn is_asked_on(&self, occasion: Occasion) -> bool {
        self.inner.is_asked_on(occasion)
    }

    fn live_copies_defer_retransmission(&self) -> bool {
        self.inner.live_copies_defer_retransmission()
    }

    fn on_outcomes(&mut self, now: Instant, outcomes: &[PacketOutcome], path: &PathView) {
        let mut witnessed = self.witness.0.lock().unwrap();
        for outcome in outcomes {
            if outcome.fate != PacketFate::Lost {
                witnessed.on_acked(outcome.number);
            }
        }
        self.inner.on_outcomes(now, outcomes, path);
    }

    fn on_repair(&mut self, now: Instant, event: &Repair) {
        self.inner.on_repair(now, event);
    }

    fn on_rejected(&mut self, now: Instant, rejections: &[Rejection]) {
        self.inner.on_rejected(now, rejections);
    }

    fn on_feedback(&mut self, now: Instant, feedback: &ReceivedFeedback) {
        self.inner.on_feedback(now, feedback);
    }

    fn on_new_data(&mut self, now: Instant, size: ByteCount) {
        self.inner.on_new_data(now, size);
    }

    fn on_unsent_data(&mut self, now: Instant, waiting: ByteCount) {
        self.inner.on_unsent_data(now, waiting);
    }

    fn on_next_data(&mut self, now: Instant, next: Option<NextData>) {
        self.inner.on_next_data(now, next);
    }

    fn reinject(
        &mut self,
        now: Instant,
        occasion: Occasion,
        outstanding: &mut dyn Iterator<Item = OutstandingRange>,
        paths: &[PathView],
        hints: &Hints,
        out: &mut Vec<Reinjection>,
    ) {
        self.inner
            .reinject(now, occasion, outstanding, paths, hints, out);
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.inner.next_deadline()
    }

    fn configure(&mut self, settings: &str) -> Result<(), ConfigureError> {
        self.inner.configure(settings)
    }

    fn report(&self) -> ReinjectorReport {
        self.inner.report()
    }
}
