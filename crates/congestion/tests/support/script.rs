//! Reports to a controller exactly what the test states, with no transport in between: ACKs with a scripted
//! round-trip time, losses, marks. ACKs here acknowledge nothing, so that the window moves by
//! decisions only, unless the test asks for growth.

use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use swiftwater_congestion::{
    AckBatch, Controller, ControllerFactory, EcnBatch, EcnCounts, Env, EpisodeId, LossBatch,
    LossCause, LostPacket, Round, RttView, SentInfo,
};
use swiftwater_units::{ByteCount, Instant, PacketCount};

use super::{MDS, env};

/// Base round-trip time of the scripts.
pub const BASE_MS: u64 = 40;

pub struct Script {
    pub cc: Box<dyn Controller>,
    pub now: Instant,
    /// The round-trip time that ACKs bring.
    pub rtt: Duration,
    pub app_limited: bool,
    pub episode: u64,
    /// Packets in flight when the packets were sent that are lost next; `None` leaves it open.
    pub lost_flight: Option<u64>,
    round: u64,
    recovery_from: Option<Instant>,
    rng: ChaCha8Rng,
}

impl Script {
    /// A path of 100 packets of window whose base round-trip time is known.
    pub fn new(factory: &dyn ControllerFactory) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let cc = factory.build(Instant::ZERO, &mut script_env(&mut rng));
        let mut script = Self {
            cc,
            now: Instant::from_millis(1_000),
            rtt: Duration::from_millis(BASE_MS),
            app_limited: false,
            episode: 0,
            lost_flight: None,
            round: 0,
            recovery_from: None,
            rng,
        };
        script.ack();
        script
    }

    /// The same after its first loss event and the recovery from it: 70 packets of CUBIC.
    pub fn after_first_event(factory: &dyn ControllerFactory) -> Self {
        let mut script = Self::new(factory);
        script.lose(1);
        script.settle();
        script
    }

    pub fn with(&mut self, f: impl FnOnce(&mut dyn Controller, Instant, &mut Env<'_>)) {
        f(self.cc.as_mut(), self.now, &mut script_env(&mut self.rng));
    }

    pub fn rtt_view(&self) -> RttView {
        RttView {
            latest: self.rtt,
            smoothed: Duration::from_millis(BASE_MS),
            var: Duration::ZERO,
            min: Duration::from_millis(BASE_MS),
            min_at: Instant::ZERO,
            has_sample: true,
        }
    }

    fn batch(&self, sent_at: Instant) -> AckBatch {
        let after = self.recovery_from.is_none_or(|from| sent_at >= from);
        AckBatch {
            now: self.now,
            acked_bytes: ByteCount::ZERO,
            acked_packets: PacketCount::new(0),
            prior_inflight: self.cc.cwnd(),
            inflight: self.cc.cwnd(),
            largest_acked_sent_at: sent_at,
            rtt: self.rtt_view(),
            round: Round {
                count: self.round,
                start: false,
            },
            rate: None,
            delivered: ByteCount::ZERO,
            ecn: EcnCounts::default(),
            app_limited: self.app_limited,
            cwnd_limited_in_round: !self.app_limited,
            newly_lost_bytes: ByteCount::ZERO,
            in_recovery: !after,
            recovery_ended: false,
            sent_after_recovery_start: after,
        }
    }

    /// An ACK now, of a packet sent one base round-trip time ago.
    pub fn ack(&mut self) {
        let batch = self.batch(self.now - Duration::from_millis(BASE_MS));
        self.with(|cc, _, env| cc.on_ack(&batch, env));
    }

    /// An ACK now that acknowledges `packets` packets.
    pub fn ack_packets(&mut self, packets: u64) {
        let mut batch = self.batch(self.now - Duration::from_millis(BASE_MS));
        batch.acked_bytes = ByteCount::new(packets * MDS);
        batch.acked_packets = PacketCount::new(packets);
        batch.inflight = batch.prior_inflight - batch.acked_bytes;
        self.with(|cc, _, env| cc.on_ack(&batch, env));
    }

    pub fn wait(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
    }

    /// An ACK each millisecond for so long.
    pub fn acks_for(&mut self, ms: u64) {
        for _ in 0..ms {
            self.wait(1);
            self.ack();
        }
    }

    /// Until what was sent so far is acknowledged.
    pub fn settle(&mut self) {
        self.acks_for(BASE_MS + 1);
    }

    /// From now on the round-trip time is so much above the base, and the delay signal has it.
    pub fn queue_of(&mut self, ms: f64) {
        self.rtt = Duration::from_secs_f64((BASE_MS as f64 + ms) / 1e3);
        // Half a base round-trip time until the smallest one has gone, and 200 ACKs for the mean,
        // all at one moment each, so that no period ends.
        self.wait(BASE_MS / 2 + 1);
        for _ in 0..200 {
            self.ack();
        }
    }

    /// A round in which so many packets are sent; its losses come after.
    pub fn round_of(&mut self, sent: u64) {
        self.round += 1;
        self.ack();
        let now = self.now;
        self.with(|cc, _, env| {
            for _ in 0..sent {
                cc.on_sent(
                    &SentInfo {
                        now,
                        bytes: ByteCount::new(MDS),
                        inflight_before: ByteCount::ZERO,
                        is_probe: false,
                        is_mtu_probe: false,
                        ack_eliciting: true,
                        was_idle: None,
                    },
                    env,
                );
            }
        });
    }

    /// A new loss event of so many packets.
    pub fn lose(&mut self, packets: u64) {
        self.episode += 1;
        self.recovery_from = Some(self.now);
        self.losses(packets, true);
    }

    /// More losses of the same event.
    pub fn lose_more(&mut self, packets: u64) {
        self.losses(packets, false);
    }

    fn lost_packets(&self, packets: u64) -> Vec<LostPacket> {
        let Some(flight) = self.lost_flight else {
            return Vec::new();
        };
        let packet = LostPacket {
            size: ByteCount::new(MDS),
            sent_at: self.now - Duration::from_millis(BASE_MS),
            tx_in_flight: ByteCount::new(flight * MDS),
            lost_prior: ByteCount::ZERO,
            delivered_prior: ByteCount::ZERO,
            is_app_limited: false,
        };
        (0..packets).map(|_| packet).collect()
    }

    fn losses(&mut self, packets: u64, new_episode: bool) {
        let lost_packets = self.lost_packets(packets);
        let lost = ByteCount::new(packets * MDS);
        let batch = LossBatch {
            now: self.now,
            lost_bytes: lost,
            lost_packets: PacketCount::new(packets),
            lost_ranges: 1,
            largest_lost_sent_at: self.now - Duration::from_millis(BASE_MS),
            new_episode,
            episode: EpisodeId(self.episode),
            packets: &lost_packets,
            prior_inflight: self.cc.cwnd(),
            inflight: self.cc.cwnd() - lost,
            round_lost: lost,
            round_sent: self.cc.cwnd(),
            cause: LossCause::Reorder,
            rtt: self.rtt_view(),
            cwnd_limited_in_round: true,
        };
        self.with(|cc, _, env| cc.on_loss(&batch, env));
    }

    /// A mark; it opens an episode unless one is open.
    pub fn mark(&mut self) {
        let sent_at = self.now - Duration::from_millis(BASE_MS);
        let new_episode = self.recovery_from.is_none_or(|from| sent_at >= from);
        if new_episode {
            self.episode += 1;
            self.recovery_from = Some(self.now);
        }
        let batch = EcnBatch {
            now: self.now,
            counts: EcnCounts {
                ce: PacketCount::new(1),
                ..EcnCounts::default()
            },
            largest_acked_sent_at: sent_at,
            new_episode,
            episode: EpisodeId(self.episode),
            inflight: self.cc.cwnd(),
            rtt: self.rtt_view(),
            cwnd_limited_in_round: true,
        };
        self.with(|cc, _, env| cc.on_ce(&batch, env));
    }

    /// Episode `episode` is refuted.
    pub fn refute(&mut self, episode: u64) {
        self.recovery_from = None;
        self.with(|cc, now, env| cc.on_spurious(EpisodeId(episode), now, env));
    }

    pub fn cwnd(&self) -> u64 {
        self.cc.cwnd().get()
    }

    pub fn state(&self) -> &'static str {
        self.cc.snapshot().state
    }

    pub fn detail(&self, name: &str) -> f64 {
        let details = self.cc.snapshot().details;
        details
            .iter()
            .find(|(key, _)| *key == name)
            .expect("the controller reports it")
            .1
    }
}

fn script_env(rng: &mut ChaCha8Rng) -> Env<'_> {
    env(MDS, 100 * MDS, 2 * MDS, rng)
}

/// The window after it was multiplied by each factor in turn.
pub fn times(window: u64, factors: &[f64]) -> u64 {
    factors
        .iter()
        .fold(ByteCount::new(window), |window, factor| {
            window.scaled(*factor)
        })
        .get()
}
