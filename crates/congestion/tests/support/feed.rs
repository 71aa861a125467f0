//! Reports to a controller on a path that the test describes: ACK by ACK, with delivery-rate samples.
//! Nothing reacts to what the controller does; the test says what is in flight.

#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(
    unreachable_pub,
    reason = "a module of each test program, not a crate of its own"
)]

use std::collections::VecDeque;
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use swiftwater_congestion::{
    AckBatch, Controller, ControllerFactory, EcnCounts, Env, EpisodeId, LossBatch, LossCause,
    LostPacket, RateSample, Round, RttView, by_name,
};
use swiftwater_units::{Bandwidth, ByteCount, Instant, PacketCount, PathId};

pub const MDS: u64 = 1_200;
pub const INITIAL: u64 = 10 * MDS;
/// ACKs per round trip.
pub const ACKS: u32 = 10;

/// Totals when packets were sent that are acknowledged a round trip later.
#[derive(Clone, Copy, Debug, Default)]
struct Past {
    delivered: u64,
    lost: u64,
    marked: u64,
}

pub struct Feed {
    pub cc: Box<dyn Controller>,
    pub now: Instant,
    /// Of the samples.
    pub rtt: Duration,
    pub rate: Bandwidth,
    /// Bytes in flight; `None` is the bandwidth-delay product of the samples.
    pub inflight: Option<u64>,
    pub app_limited: bool,
    pub cwnd_limited: bool,
    /// Share of packets that come back marked.
    pub marks: f64,
    pub delivered: u64,
    pub lost: u64,
    marked: u64,
    marks_due: f64,
    past: VecDeque<Past>,
    rounds: u64,
    round_ends_at: u64,
    episode: u64,
    recovery_ends_at: Option<u64>,
    lost_since_ack: u64,
    rng: ChaCha8Rng,
}

impl Feed {
    /// 12 Mbit/s and 40 ms: 50 packets.
    pub fn new(specification: &str) -> Self {
        Self::with_seed(specification, 5)
    }

    pub fn with_seed(specification: &str, seed: u64) -> Self {
        let factory = by_name(specification).expect("it is known");
        Self::of(factory.as_ref(), seed)
    }

    pub fn of(factory: &dyn ControllerFactory, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        // Late enough that the first packets acknowledged were sent after zero.
        let now = Instant::from_millis(10_000);
        let cc = factory.build(now, &mut env(&mut rng));
        Self {
            cc,
            now,
            rtt: Duration::from_millis(40),
            rate: Bandwidth::from_mbps(12),
            inflight: None,
            app_limited: false,
            cwnd_limited: true,
            marks: 0.0,
            delivered: 0,
            lost: 0,
            marked: 0,
            marks_due: 0.0,
            past: VecDeque::from([Past::default(); ACKS as usize]),
            rounds: 0,
            round_ends_at: 0,
            episode: 0,
            recovery_ends_at: None,
            lost_since_ack: 0,
            rng,
        }
    }

    // --- what the controller shows

    pub fn cwnd(&self) -> u64 {
        self.cc.cwnd().get()
    }

    pub fn state(&self) -> &'static str {
        self.cc.snapshot().state
    }

    pub fn try_detail(&self, name: &str) -> Option<f64> {
        let details = self.cc.snapshot().details;
        let found = details.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| *value)
    }

    pub fn detail(&self, name: &str) -> f64 {
        self.try_detail(name)
            .unwrap_or_else(|| panic!("no {name} in {:?}", self.cc.snapshot()))
    }

    pub fn max_mbps(&self) -> f64 {
        self.detail("max_bandwidth_bps") / 1e6
    }

    pub fn pacing_mbps(&self) -> f64 {
        let pacing = self.cc.pacing(&self.rtt_view());
        pacing.rate.expect("BBR paces").as_mbps_f64()
    }

    /// Bandwidth-delay product of the samples.
    pub fn bdp(&self) -> u64 {
        self.rate.bytes_in(self.rtt)
    }

    // --- its input

    pub fn rtt_view(&self) -> RttView {
        RttView {
            latest: self.rtt,
            smoothed: self.rtt,
            var: Duration::ZERO,
            min: self.rtt,
            min_at: self.now,
            has_sample: self.delivered > 0,
        }
    }

    pub fn with_env(&mut self, f: impl FnOnce(&mut dyn Controller, Instant, &mut Env<'_>)) {
        f(self.cc.as_mut(), self.now, &mut env(&mut self.rng));
    }

    pub fn ack(&mut self) {
        let acked = self.bdp() / u64::from(ACKS);
        let packets = (acked / MDS).max(1);
        self.now += self.rtt / ACKS;
        self.delivered += acked;
        self.marks_due += self.marks * packets as f64;
        let ce = self.marks_due as u64;
        self.marks_due -= ce as f64;
        self.marked += ce;
        let sent = self.past.pop_front().expect("a round of them");
        let inflight = self.inflight.unwrap_or_else(|| self.bdp());
        let sample = self.rate_sample(&sent, inflight);
        let round_start = sent.delivered >= self.round_ends_at;
        if round_start {
            self.rounds += 1;
            self.round_ends_at = self.delivered;
        }
        let ended = self.recovery_ends_at.is_some_and(|at| sent.delivered >= at);
        if ended {
            self.recovery_ends_at = None;
        }
        let batch = AckBatch {
            now: self.now,
            acked_bytes: ByteCount::new(acked),
            acked_packets: PacketCount::new(packets),
            prior_inflight: ByteCount::new(inflight + acked),
            inflight: ByteCount::new(inflight),
            largest_acked_sent_at: self.now - self.rtt,
            rtt: self.rtt_view(),
            round: Round {
                count: self.rounds,
                start: round_start,
            },
            rate: Some(sample),
            delivered: ByteCount::new(self.delivered),
            ecn: EcnCounts {
                ce: PacketCount::new(ce),
                ..EcnCounts::default()
            },
            app_limited: self.app_limited,
            cwnd_limited_in_round: self.cwnd_limited,
            newly_lost_bytes: ByteCount::new(std::mem::take(&mut self.lost_since_ack)),
            in_recovery: self.recovery_ends_at.is_some(),
            recovery_ended: ended,
            sent_after_recovery_start: self.recovery_ends_at.is_none(),
        };
        self.with_env(|cc, _, env| cc.on_ack(&batch, env));
        self.past.push_back(Past {
            delivered: self.delivered,
            lost: self.lost,
            marked: self.marked,
        });
    }

    fn rate_sample(&self, sent: &Past, inflight: u64) -> RateSample {
        RateSample {
            delivered: ByteCount::new(self.bdp()),
            interval: self.rtt,
            rate: self.rate,
            is_app_limited: self.app_limited,
            prior_delivered: ByteCount::new(sent.delivered),
            tx_in_flight: ByteCount::new(inflight),
            lost_since_sent: ByteCount::new(self.lost - sent.lost),
            ce_since_sent: PacketCount::new(self.marked - sent.marked),
            send_elapsed: self.rtt,
            ack_elapsed: self.rtt,
        }
    }

    /// Loses `packets` packets in `ranges` runs; the ACK that reports it is the next one. Returns
    /// the episode.
    pub fn lose(&mut self, packets: u64, ranges: u64) -> EpisodeId {
        self.lose_at(packets, ranges, None)
    }

    /// The same; `tx_in_flight` bytes were in flight when each of them left.
    pub fn lose_at(&mut self, packets: u64, ranges: u64, tx_in_flight: Option<u64>) -> EpisodeId {
        let new_episode = self.recovery_ends_at.is_none();
        if new_episode {
            self.episode += 1;
            self.recovery_ends_at = Some(self.delivered + 1);
        }
        let sent = self.past[0];
        let inflight = self.inflight.unwrap_or_else(|| self.bdp());
        let lost = LostPacket {
            size: ByteCount::new(MDS),
            sent_at: self.now - self.rtt,
            tx_in_flight: ByteCount::new(tx_in_flight.unwrap_or(inflight)),
            lost_prior: ByteCount::new(sent.lost),
            delivered_prior: ByteCount::new(sent.delivered),
            is_app_limited: self.app_limited,
        };
        let packets = vec![lost; packets as usize];
        let bytes = packets.len() as u64 * MDS;
        self.lost += bytes;
        self.lost_since_ack += bytes;
        let episode = EpisodeId(self.episode);
        let batch = LossBatch {
            now: self.now,
            lost_bytes: ByteCount::new(bytes),
            lost_packets: PacketCount::new(packets.len() as u64),
            lost_ranges: ranges,
            largest_lost_sent_at: lost.sent_at,
            new_episode,
            episode,
            packets: &packets,
            prior_inflight: ByteCount::new(inflight + bytes),
            inflight: ByteCount::new(inflight),
            round_lost: ByteCount::new(bytes),
            round_sent: ByteCount::new(inflight),
            cause: LossCause::Reorder,
            rtt: self.rtt_view(),
            cwnd_limited_in_round: self.cwnd_limited,
        };
        self.with_env(|cc, _, env| cc.on_loss(&batch, env));
        episode
    }

    /// A round with a loss of so many packets before each ACK. Returns the episode of the first.
    pub fn lossy_round(&mut self, packets: u64) -> EpisodeId {
        let episode = self.lose(packets, 1);
        for _ in 0..ACKS {
            self.ack();
            self.lose(packets, 1);
        }
        episode
    }

    pub fn spurious(&mut self, episode: EpisodeId) {
        self.recovery_ends_at = None;
        self.with_env(|cc, now, env| cc.on_spurious(episode, now, env));
    }

    pub fn rounds(&mut self, n: u32) {
        for _ in 0..n * ACKS {
            self.ack();
        }
    }

    /// Nothing is sent for so long; then sending resumes.
    pub fn idle(&mut self, time: Duration) {
        self.now += time;
        self.with_env(|cc, now, env| cc.on_idle_restart(now, time, env));
    }

    /// Acknowledges until the state is one of `states`; panics after so many rounds.
    pub fn until(&mut self, states: &[&str], rounds: u32) {
        for _ in 0..rounds * ACKS {
            if states.contains(&self.state()) {
                return;
            }
            self.ack();
        }
        panic!(
            "in {} after {rounds} rounds, not in {states:?}",
            self.state()
        );
    }

    /// Through Startup and Drain on a path that is full from the beginning.
    pub fn settled(specification: &str) -> Self {
        let mut feed = Self::new(specification);
        feed.settle();
        feed
    }

    pub fn settle(&mut self) {
        self.until(
            &[
                "probe_bw_up",
                "probe_bw_down",
                "probe_bw_cruise",
                "probe_bw_refill",
            ],
            20,
        );
    }
}

fn env(rng: &mut ChaCha8Rng) -> Env<'_> {
    Env {
        max_datagram_size: ByteCount::new(MDS),
        initial_window: ByteCount::new(INITIAL),
        minimum_window: ByteCount::new(2 * MDS),
        path: PathId::ZERO,
        rng,
    }
}
