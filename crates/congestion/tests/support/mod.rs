//! Plays the transport for one controller: a sender with a perfect ACK clock that measures rounds,
//! episodes and window use as the real one does, and reports them in the order of the contract.
//!
//! Each packet is acknowledged by an ACK of its own, one round-trip time after it left, or later if
//! a bottleneck rate is set. What happens to packets is scripted by the test.

#![allow(dead_code, reason = "each test file uses a part of the driver")]
#![allow(
    unreachable_pub,
    reason = "a module of each test program, not a crate of its own"
)]

pub mod script;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use swiftwater_congestion::{
    AckBatch, Controller, ControllerFactory, EcnBatch, EcnCounts, Env, EpisodeId, LossBatch,
    LossCause, LostPacket, Round, RttView, SentInfo, Snapshot,
};
use swiftwater_units::{Bandwidth, ByteCount, Instant, PacketCount, PathId};

pub const MDS: u64 = 1200;

/// What keeps the sender from sending more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Supply {
    /// Only the window.
    Unlimited,
    /// The application offers no more than this many packets at a time.
    App(u64),
    /// Something that is neither the window nor a lack of data, such as the pacer or the peer's
    /// flow control, allows no more than this many packets at a time.
    Blocked(u64),
}

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fate {
    Arrive,
    Lose,
    /// Arrive behind as many packets sent later.
    Behind(usize),
    /// Arrive marked CE.
    Mark,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    number: u64,
    sent_at: Instant,
    arrives: Instant,
    fate: Fate,
    declared_lost: Option<EpisodeId>,
}

pub struct Transport {
    pub cc: Box<dyn Controller>,
    pub now: Instant,
    pub rtt: Duration,
    pub rate: Option<Bandwidth>,
    pub supply: Supply,
    pub mds: u64,
    pub initial_window: u64,
    pub minimum_window: u64,
    pub fate: Box<dyn FnMut(u64) -> Fate>,
    /// Congestion events so far.
    pub events: u64,
    pub rounds: u64,
    /// Episodes reported as spurious so far; the test may reset it.
    pub undone: u64,
    rng: ChaCha8Rng,
    next: u64,
    /// In order of arrival at the peer.
    flying: VecDeque<Packet>,
    /// Held back by `Fate::Behind`, with the packets still to pass.
    held: Vec<(usize, Packet)>,
    /// Packets that arrive, or will, behind later ones.
    late: usize,
    /// Lost packets of each episode that have not shown up yet.
    missing: BTreeMap<EpisodeId, u64>,
    inflight: u64,
    delivered: u64,
    round_began_at: u64,
    filled: bool,
    filled_before: bool,
    episode: u64,
    recovery_from: Option<u64>,
    recovering: bool,
    last_arrival: Instant,
    quiet_since: Instant,
    min_rtt: Option<Duration>,
    smoothed: Duration,
    latest: Duration,
}

impl Transport {
    pub fn new(factory: &dyn ControllerFactory) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let (initial, minimum) = (10 * MDS, 2 * MDS);
        let cc = factory.build(Instant::ZERO, &mut env(MDS, initial, minimum, &mut rng));
        Self {
            cc,
            now: Instant::ZERO,
            rtt: Duration::from_millis(50),
            rate: None,
            supply: Supply::Unlimited,
            mds: MDS,
            initial_window: initial,
            minimum_window: minimum,
            fate: Box::new(|_| Fate::Arrive),
            events: 0,
            rounds: 0,
            undone: 0,
            rng,
            next: 0,
            flying: VecDeque::new(),
            held: Vec::new(),
            late: 0,
            missing: BTreeMap::new(),
            inflight: 0,
            delivered: 0,
            round_began_at: 0,
            filled: false,
            filled_before: false,
            episode: 0,
            recovery_from: None,
            recovering: false,
            last_arrival: Instant::ZERO,
            quiet_since: Instant::ZERO,
            min_rtt: None,
            smoothed: Duration::from_millis(333),
            latest: Duration::ZERO,
        }
    }

    pub fn cwnd(&self) -> u64 {
        self.cc.cwnd().get()
    }

    /// The window in packets.
    pub fn packets(&self) -> f64 {
        self.cwnd() as f64 / self.mds as f64
    }

    pub fn snapshot(&self) -> Snapshot {
        self.cc.snapshot()
    }

    /// A value among the snapshot's details.
    pub fn detail(&self, name: &str) -> f64 {
        let details = self.snapshot().details;
        details
            .iter()
            .find(|(key, _)| *key == name)
            .expect("the controller reports it")
            .1
    }

    pub fn inflight(&self) -> u64 {
        self.inflight
    }

    pub fn rtt_view(&self) -> RttView {
        RttView {
            latest: self.latest,
            smoothed: self.smoothed,
            var: Duration::ZERO,
            min: self.min_rtt.unwrap_or_default(),
            min_at: Instant::ZERO,
            has_sample: self.min_rtt.is_some(),
        }
    }

    pub fn gain(&self) -> f64 {
        self.cc.pacing(&self.rtt_view()).gain
    }

    /// Lets the controller do `f` in its environment.
    pub fn with_env(&mut self, f: impl FnOnce(&mut dyn Controller, Instant, &mut Env<'_>)) {
        let mut env = env(
            self.mds,
            self.initial_window,
            self.minimum_window,
            &mut self.rng,
        );
        f(self.cc.as_mut(), self.now, &mut env);
    }

    /// Loses the packets whose number is a multiple of `n`.
    pub fn lose_every(&mut self, n: u64) {
        self.fate = Box::new(move |number| {
            if number % n == n - 1 {
                Fate::Lose
            } else {
                Fate::Arrive
            }
        });
    }

    /// The next packet to be sent meets `fate`; all others arrive.
    pub fn next_packet(&mut self, fate: Fate) {
        let chosen = self.next;
        self.fate = Box::new(move |number| if number == chosen { fate } else { Fate::Arrive });
    }

    /// Runs until `n` more rounds have begun.
    pub fn run_rounds(&mut self, n: u64) {
        let until = self.rounds + n;
        while self.rounds < until {
            self.step();
        }
    }

    /// Runs until virtual time has advanced by `time`.
    pub fn run_for(&mut self, time: Duration) {
        let until = self.now + time;
        while self.now < until {
            self.step();
        }
    }

    /// Runs until `done`, at most `rounds` rounds; true if it got there.
    pub fn run_until(&mut self, rounds: u64, mut done: impl FnMut(&Self) -> bool) -> bool {
        let until = self.rounds + rounds;
        while self.rounds < until {
            if done(self) {
                return true;
            }
            self.step();
        }
        done(self)
    }

    /// Loses one packet and runs until the loss is reported to the controller.
    pub fn one_loss(&mut self) {
        self.next_packet(Fate::Lose);
        let events = self.events;
        assert!(
            self.run_until(20, |t| t.events > events),
            "the loss is detected"
        );
    }

    /// Loses all that is sent over the next `flights` flights; afterwards packets arrive again.
    pub fn black_out(&mut self, flights: u64) {
        self.fate = Box::new(|_| Fate::Lose);
        let until = self.events + flights;
        while self.events < until {
            self.step();
        }
        self.fate = Box::new(|_| Fate::Arrive);
    }

    /// Lets everything in flight arrive without sending anew, then waits.
    pub fn idle(&mut self, time: Duration) {
        while !self.flying.is_empty() {
            self.arrive();
        }
        self.now += time;
    }

    /// Fills the window, then lets one packet reach the peer and its ACK come back.
    pub fn step(&mut self) {
        self.fill();
        self.arrive();
    }

    pub fn fill(&mut self) {
        let limit = match self.supply {
            Supply::Unlimited => u64::MAX,
            Supply::App(n) | Supply::Blocked(n) => n * self.mds,
        };
        while self.inflight + self.mds <= self.cwnd() && self.inflight + self.mds <= limit {
            self.send();
        }
        if self.inflight + self.mds > self.cwnd() {
            self.filled = true;
        }
        while self.flying.is_empty() {
            // The tail is lost or held back: a probe brings news of it.
            self.send();
        }
    }

    fn send(&mut self) {
        let idle = self.now - self.quiet_since;
        let was_idle = (self.inflight == 0 && self.next > 0).then_some(idle);
        let (now, mds, before) = (self.now, self.mds, self.inflight);
        self.with_env(|cc, now, env| {
            if let Some(idle) = was_idle {
                cc.on_idle_restart(now, idle, env);
            }
            let sent = SentInfo {
                now,
                bytes: ByteCount::new(mds),
                inflight_before: ByteCount::new(before),
                is_probe: false,
                is_mtu_probe: false,
                ack_eliciting: true,
                was_idle,
            };
            cc.on_sent(&sent, env);
        });
        let fate = (self.fate)(self.next);
        let gap = self
            .rate
            .map_or(Duration::ZERO, |rate| rate.time_to_send(mds));
        self.last_arrival = (now + self.rtt).max(self.last_arrival + gap);
        let packet = Packet {
            number: self.next,
            sent_at: now,
            arrives: self.last_arrival,
            fate,
            declared_lost: None,
        };
        self.next += 1;
        self.inflight += mds;
        self.quiet_since = now;
        if let Fate::Behind(n) = fate {
            self.late += 1;
            self.held.push((n, packet));
        } else {
            self.flying.push_back(packet);
            self.release_held();
        }
    }

    fn release_held(&mut self) {
        for (left, _) in &mut self.held {
            *left = left.saturating_sub(1);
        }
        while let Some(at) = self.held.iter().position(|(left, _)| *left == 0) {
            let (_, mut packet) = self.held.remove(at);
            packet.arrives = self.last_arrival;
            self.flying.push_back(packet);
        }
    }

    fn arrive(&mut self) {
        // A lost packet waits at the head until three later ones have arrived.
        let Some(at) = self.flying.iter().position(|p| p.fate != Fate::Lose) else {
            return self.time_out();
        };
        let packet = self.flying.remove(at).expect("it was found there");
        self.now = self.now.max(packet.arrives);
        self.quiet_since = self.now;
        self.measure(packet);
        let prior = self.inflight;
        if packet.declared_lost.is_none() {
            self.inflight -= self.mds;
        }
        if matches!(packet.fate, Fate::Behind(_)) {
            self.late -= 1;
        }
        let lost = self.detect(packet.number, at, prior);
        if packet.fate == Fate::Mark {
            self.mark(packet);
        }
        if let Some(episode) = self.episode_of_lost_then_acked(packet) {
            self.undone += 1;
            self.with_env(|cc, now, env| cc.on_spurious(episode, now, env));
            self.recovery_from = None;
            self.recovering = false;
        }
        self.acknowledge(packet, prior, lost);
    }

    fn measure(&mut self, packet: Packet) {
        self.latest = self.now - packet.sent_at;
        let first = self.min_rtt.is_none();
        self.min_rtt = Some(self.min_rtt.unwrap_or(self.latest).min(self.latest));
        self.smoothed = if first {
            self.latest
        } else {
            (self.smoothed * 7 + self.latest) / 8
        };
    }

    /// Declares what packet threshold 3 finds lost; returns the bytes. Only the first `ahead`
    /// packets can be, unless some are late.
    fn detect(&mut self, acked: u64, ahead: usize, prior: u64) -> u64 {
        let ahead = if self.late > 0 {
            self.flying.len()
        } else {
            ahead
        };
        let overtaken = |packet: &Packet| packet.number + 3 <= acked;
        let held: Vec<Packet> = self.held.iter().map(|(_, packet)| *packet).collect();
        let lost: Vec<Packet> = self
            .flying
            .iter()
            .take(ahead)
            .chain(&held)
            .filter(|p| overtaken(p) && p.declared_lost.is_none())
            .copied()
            .collect();
        self.declare(&lost, LossCause::Reorder, prior);
        lost.len() as u64 * self.mds
    }

    /// Everything left in flight is lost, and nothing will overtake it.
    fn time_out(&mut self) {
        let lost: Vec<Packet> = self.flying.iter().copied().collect();
        self.now += self.rtt;
        self.declare(&lost, LossCause::Time, self.inflight);
    }

    fn declare(&mut self, lost: &[Packet], cause: LossCause, prior: u64) {
        let Some(newest) = lost.iter().max_by_key(|p| p.number).copied() else {
            return;
        };
        let new_episode = self.opens_episode(newest.number);
        let (episode, bytes) = (EpisodeId(self.episode), lost.len() as u64 * self.mds);
        self.inflight -= bytes;
        let numbers: Vec<u64> = lost.iter().map(|p| p.number).collect();
        *self.missing.entry(episode).or_default() += numbers.len() as u64;
        let held = self.held.iter_mut().map(|(_, packet)| packet);
        for packet in self.flying.iter_mut().chain(held) {
            if numbers.contains(&packet.number) {
                packet.declared_lost = Some(episode);
            }
        }
        self.flying
            .retain(|p| !(p.fate == Fate::Lose && p.declared_lost.is_some()));
        let packets: Vec<LostPacket> = lost.iter().map(|p| self.remembered(p)).collect();
        let (rtt, limited) = (self.rtt_view(), self.filled || self.filled_before);
        let inflight = ByteCount::new(self.inflight);
        self.with_env(|cc, now, env| {
            let batch = LossBatch {
                now,
                lost_bytes: ByteCount::new(bytes),
                lost_packets: PacketCount::new(packets.len() as u64),
                lost_ranges: 1,
                largest_lost_sent_at: newest.sent_at,
                new_episode,
                episode,
                packets: &packets,
                prior_inflight: ByteCount::new(prior),
                inflight,
                round_lost: ByteCount::new(bytes),
                round_sent: ByteCount::new(prior),
                cause,
                rtt,
                cwnd_limited_in_round: limited,
            };
            cc.on_loss(&batch, env);
        });
    }

    fn remembered(&self, packet: &Packet) -> LostPacket {
        LostPacket {
            size: ByteCount::new(self.mds),
            sent_at: packet.sent_at,
            tx_in_flight: ByteCount::new(self.inflight),
            lost_prior: ByteCount::ZERO,
            delivered_prior: ByteCount::new(self.delivered),
            is_app_limited: false,
        }
    }

    /// True if trouble with packet `number` is a new congestion event, which it then opens.
    fn opens_episode(&mut self, number: u64) -> bool {
        let new = self.recovery_from.is_none_or(|from| number >= from);
        if new {
            self.episode += 1;
            self.events += 1;
            self.recovery_from = Some(self.next);
            self.recovering = true;
        }
        new
    }

    fn mark(&mut self, packet: Packet) {
        let new_episode = self.opens_episode(packet.number);
        let (rtt, limited) = (self.rtt_view(), self.filled || self.filled_before);
        let (episode, inflight) = (EpisodeId(self.episode), ByteCount::new(self.inflight));
        self.with_env(|cc, now, env| {
            let batch = EcnBatch {
                now,
                counts: EcnCounts {
                    ce: PacketCount::new(1),
                    ..EcnCounts::default()
                },
                largest_acked_sent_at: packet.sent_at,
                new_episode,
                episode,
                inflight,
                rtt,
                cwnd_limited_in_round: limited,
            };
            cc.on_ce(&batch, env);
        });
    }

    /// The episode that is refuted now that a packet declared lost has arrived.
    fn episode_of_lost_then_acked(&mut self, packet: Packet) -> Option<EpisodeId> {
        let episode = packet.declared_lost?;
        let left = self.missing.get_mut(&episode)?;
        *left -= 1;
        (*left == 0).then_some(episode)
    }

    fn acknowledge(&mut self, packet: Packet, prior: u64, lost: u64) {
        let fresh = packet.declared_lost.is_none();
        self.delivered += self.mds;
        let start = packet.number >= self.round_began_at;
        if start {
            self.rounds += 1;
            self.round_began_at = self.next;
            self.filled_before = self.filled;
            self.filled = false;
        }
        let after = self.recovery_from.is_none_or(|from| packet.number >= from);
        let ended = after && self.recovering;
        self.recovering &= !after;
        let ack = AckBatch {
            now: self.now,
            acked_bytes: ByteCount::new(if fresh { self.mds } else { 0 }),
            acked_packets: PacketCount::new(u64::from(fresh)),
            prior_inflight: ByteCount::new(prior),
            inflight: ByteCount::new(self.inflight),
            largest_acked_sent_at: packet.sent_at,
            rtt: self.rtt_view(),
            round: Round {
                count: self.rounds,
                start,
            },
            rate: None,
            delivered: ByteCount::new(self.delivered),
            ecn: EcnCounts::default(),
            app_limited: matches!(self.supply, Supply::App(_)) && prior < self.cwnd(),
            cwnd_limited_in_round: self.filled || self.filled_before,
            newly_lost_bytes: ByteCount::new(lost),
            in_recovery: self.recovering,
            recovery_ended: ended,
            sent_after_recovery_start: after,
        };
        self.with_env(|cc, _, env| cc.on_ack(&ack, env));
    }
}

/// An environment with datagrams of `mds` bytes.
pub fn env(mds: u64, initial: u64, minimum: u64, rng: &mut ChaCha8Rng) -> Env<'_> {
    Env {
        max_datagram_size: ByteCount::new(mds),
        initial_window: ByteCount::new(initial),
        minimum_window: ByteCount::new(minimum),
        path: PathId::new(0),
        rng,
    }
}

/// Average window in packets with a loss each `n` packets. The first is timed so that the window
/// starts near `expected`: from further away the cycle is approached only over hundreds of losses.
pub fn average_window(
    factory: &dyn ControllerFactory,
    n: u64,
    rtt: Duration,
    expected: f64,
) -> f64 {
    let mut t = Transport::new(factory);
    t.rtt = rtt;
    // Slow start doubles the window until the loss is noticed.
    t.run_until(30, |t| t.packets() >= 1.08 / 2.0 * expected);
    t.one_loss();
    t.lose_every(n);
    t.run_until(u64::MAX / 2, |t| t.events == 6);
    let (start, mut from, mut area) = (t.now, t.now, 0.0);
    while t.events < 18 {
        let window = t.packets();
        t.step();
        area += window * (t.now - from).as_secs_f64();
        from = t.now;
    }
    area / (t.now - start).as_secs_f64()
}

/// An ACK of `packets` packets for a flow that has ten in flight and fills its window.
pub fn ack(t: &Transport, packets: u64) -> AckBatch {
    AckBatch {
        now: t.now,
        acked_bytes: ByteCount::new(packets * t.mds),
        acked_packets: PacketCount::new(packets),
        prior_inflight: ByteCount::new(10 * t.mds),
        inflight: ByteCount::new((10 - packets) * t.mds),
        largest_acked_sent_at: t.now,
        rtt: t.rtt_view(),
        round: Round {
            count: 1,
            start: false,
        },
        rate: None,
        delivered: ByteCount::new(packets * t.mds),
        ecn: EcnCounts::default(),
        app_limited: false,
        cwnd_limited_in_round: true,
        newly_lost_bytes: ByteCount::ZERO,
        in_recovery: false,
        recovery_ended: false,
        sent_after_recovery_start: true,
    }
}
