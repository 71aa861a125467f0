//! Calls a controller as the test requires, one call at a time: for sequences computed by hand.

#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(
    unreachable_pub,
    reason = "a module of each test program, not a crate of its own"
)]

use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use swiftwater_congestion::{
    AckBatch, Controller, ControllerFactory, EcnBatch, EcnCounts, Env, EpisodeId, ExternalRate,
    LossBatch, LossCause, Round, RttView,
};
use swiftwater_units::{ByteCount, Instant, PacketCount, PathId};

pub const MDS: u64 = 1200;

/// A controller and its last input.
pub struct Direct {
    pub cc: Box<dyn Controller>,
    pub now: Instant,
    pub rtt: RttView,
    pub round: u64,
    /// Packets that an ACK acknowledges, and those of them marked CE.
    pub acked: u64,
    pub marked: u64,
    /// When the newest packet of an ACK left; by default a round-trip time ago.
    pub sent_at: Option<Instant>,
    /// The transport counts no recovery period as open.
    pub sent_after_recovery_start: bool,
    pub episode: u64,
    rng: ChaCha8Rng,
}

impl Direct {
    /// A flow with an initial window of `packets` and an unmeasured round-trip time.
    pub fn new(factory: &dyn ControllerFactory, packets: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let now = Instant::ZERO + Duration::from_secs(1);
        let cc = factory.build(now, &mut env(packets, &mut rng));
        Self {
            cc,
            now,
            rtt: RttView {
                latest: Duration::ZERO,
                smoothed: Duration::from_millis(333),
                var: Duration::ZERO,
                min: Duration::ZERO,
                min_at: now,
                has_sample: false,
            },
            round: 0,
            acked: 1,
            marked: 0,
            sent_at: None,
            sent_after_recovery_start: true,
            episode: 0,
            rng,
        }
    }

    pub fn cwnd(&self) -> u64 {
        self.cc.cwnd().get()
    }

    pub fn state(&self) -> &'static str {
        self.cc.snapshot().state
    }

    /// A value among the snapshot's details.
    pub fn detail(&self, name: &str) -> f64 {
        let details = self.cc.snapshot().details;
        let found = details.iter().find(|(key, _)| *key == name);
        found.expect("the controller reports it").1
    }

    /// The round-trip time is now `millis`, the smoothed one too.
    pub fn set_rtt(&mut self, millis: f64) {
        let rtt = Duration::from_secs_f64(millis / 1e3);
        self.rtt.min = if self.rtt.has_sample {
            self.rtt.min.min(rtt)
        } else {
            rtt
        };
        (self.rtt.latest, self.rtt.smoothed) = (rtt, rtt);
        self.rtt.has_sample = true;
    }

    pub fn wait(&mut self, millis: f64) {
        self.now += Duration::from_secs_f64(millis / 1e3);
    }

    fn with(&mut self, act: impl FnOnce(&mut dyn Controller, &mut Env<'_>)) {
        act(self.cc.as_mut(), &mut env(10, &mut self.rng));
    }

    fn counts(&self) -> EcnCounts {
        EcnCounts {
            ect0: PacketCount::ZERO,
            ect1: PacketCount::new(self.acked - self.marked),
            ce: PacketCount::new(self.marked),
        }
    }

    fn newest_sent_at(&self) -> Instant {
        self.sent_at.unwrap_or(self.now - self.rtt.latest)
    }

    /// A tunnel reports.
    pub fn report(&mut self, report: &ExternalRate) {
        let now = self.now;
        self.with(|cc, env| cc.on_external_rate(now, report, env));
    }

    /// The pacing rate, Mbit/s.
    pub fn paced_mbps(&self) -> f64 {
        let rate = self.cc.pacing(&self.rtt).rate.expect("it paces");
        rate.as_bps() as f64 / 1e6
    }

    /// An ACK of a flow that fills its window.
    pub fn ack(&mut self) {
        let batch = self.batch(false);
        self.with(|cc, env| cc.on_ack(&batch, env));
    }

    /// The same, and it begins a round.
    pub fn ack_of_new_round(&mut self) {
        self.round += 1;
        let batch = self.batch(true);
        self.with(|cc, env| cc.on_ack(&batch, env));
    }

    /// An ACK of a flow that the application limits.
    pub fn ack_of_idler(&mut self) {
        let batch = AckBatch {
            app_limited: true,
            cwnd_limited_in_round: false,
            ..self.batch(false)
        };
        self.with(|cc, env| cc.on_ack(&batch, env));
    }

    fn batch(&self, start: bool) -> AckBatch {
        let acked_bytes = ByteCount::new(self.acked * MDS);
        AckBatch {
            now: self.now,
            acked_bytes,
            acked_packets: PacketCount::new(self.acked),
            prior_inflight: self.cc.cwnd(),
            inflight: self.cc.cwnd() - acked_bytes,
            largest_acked_sent_at: self.newest_sent_at(),
            rtt: self.rtt,
            round: Round {
                count: self.round,
                start,
            },
            rate: None,
            delivered: ByteCount::ZERO,
            ecn: self.counts(),
            app_limited: false,
            cwnd_limited_in_round: true,
            newly_lost_bytes: ByteCount::ZERO,
            in_recovery: !self.sent_after_recovery_start,
            recovery_ended: false,
            sent_after_recovery_start: self.sent_after_recovery_start,
        }
    }

    /// Marks were reported.
    pub fn ce(&mut self, new_episode: bool) {
        self.episode += u64::from(new_episode);
        let batch = EcnBatch {
            now: self.now,
            counts: self.counts(),
            largest_acked_sent_at: self.newest_sent_at(),
            new_episode,
            episode: EpisodeId(self.episode),
            inflight: self.cc.cwnd(),
            rtt: self.rtt,
            cwnd_limited_in_round: true,
        };
        self.with(|cc, env| cc.on_ce(&batch, env));
    }

    /// A packet was lost.
    pub fn lose(&mut self, new_episode: bool) {
        self.episode += u64::from(new_episode);
        let batch = LossBatch {
            now: self.now,
            lost_bytes: ByteCount::new(MDS),
            lost_packets: PacketCount::new(1),
            lost_ranges: 1,
            largest_lost_sent_at: self.newest_sent_at(),
            new_episode,
            episode: EpisodeId(self.episode),
            packets: &[],
            prior_inflight: self.cc.cwnd(),
            inflight: self.cc.cwnd(),
            round_lost: ByteCount::new(MDS),
            round_sent: self.cc.cwnd(),
            cause: LossCause::Reorder,
            rtt: self.rtt,
            cwnd_limited_in_round: true,
        };
        self.with(|cc, env| cc.on_loss(&batch, env));
    }

    /// The last episode turned out to be spurious.
    pub fn refute(&mut self) {
        let (now, episode) = (self.now, EpisodeId(self.episode));
        self.with(|cc, env| cc.on_spurious(episode, now, env));
    }

    pub fn persistent_congestion(&mut self) {
        let now = self.now;
        self.with(|cc, env| cc.on_persistent_congestion(now, env));
    }

    pub fn idle(&mut self, millis: f64) {
        self.wait(millis);
        let (now, idle) = (self.now, Duration::from_secs_f64(millis / 1e3));
        self.with(|cc, env| cc.on_idle_restart(now, idle, env));
    }
}

fn env(packets: u64, rng: &mut ChaCha8Rng) -> Env<'_> {
    Env {
        max_datagram_size: ByteCount::new(MDS),
        initial_window: ByteCount::new(packets * MDS),
        minimum_window: ByteCount::new(2 * MDS),
        path: PathId::ZERO,
        rng,
    }
}
