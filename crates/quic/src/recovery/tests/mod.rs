//! Tests of one path's recovery, by topic, against a controller that records its calls.

mod episodes;
mod flight;
mod pacing;
mod properties;
mod rounds;
mod rtt;
mod sampling;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use swiftwater_congestion::{
    AckBatch, Controller, ControllerFactory, EcnBatch, EcnCounts, Env, EpisodeId, LossBatch,
    LossCause, LostPacket, Pacing, RttView, SentInfo, Snapshot,
};
use swiftwater_units::{Bandwidth, ByteCount, Instant, PacketCount, PacketNumber, PathId};

use super::{AckedPacket, DeliverySnapshot, LostRecord, PathRecovery, SendPurpose};
use crate::config::TransportConfig;

const MDS: u16 = 1200;

/// The controller's input.
#[derive(Clone, Debug, PartialEq)]
enum Call {
    Sent(SentInfo),
    Ack(AckBatch),
    Loss(Loss),
    Ce(EcnBatch),
    Spurious(EpisodeId),
    Persistent,
    Pto(u32),
    Idle(Duration),
    Mds(ByteCount, ByteCount, ByteCount),
    Discard(ByteCount),
    Timer,
}

/// A `LossBatch` that owns its packets.
#[derive(Clone, Debug, PartialEq)]
struct Loss {
    bytes: ByteCount,
    packets: Vec<LostPacket>,
    ranges: u64,
    new_episode: bool,
    episode: EpisodeId,
    prior_inflight: ByteCount,
    inflight: ByteCount,
    round_lost: ByteCount,
    round_sent: ByteCount,
    cause: LossCause,
}

/// The controller's answers and its input.
#[derive(Debug)]
struct Script {
    calls: Vec<Call>,
    cwnd: ByteCount,
    pacing: Pacing,
    wants_mark: bool,
    timer: Option<Instant>,
    built_with: Option<(ByteCount, ByteCount, ByteCount)>,
}

/// Records every call, answers from the script.
#[derive(Clone, Debug)]
struct Recorder(Arc<Mutex<Script>>);

impl Recorder {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap()
    }

    fn log(&self, call: Call) {
        self.script().calls.push(call);
    }
}

fn windows(env: &Env<'_>) -> (ByteCount, ByteCount, ByteCount) {
    (
        env.max_datagram_size,
        env.initial_window,
        env.minimum_window,
    )
}

impl ControllerFactory for Recorder {
    fn name(&self) -> &'static str {
        "recorder"
    }
    fn build(&self, _now: Instant, env: &mut Env<'_>) -> Box<dyn Controller> {
        self.script().built_with = Some(windows(env));
        Box::new(self.clone())
    }
}

impl Controller for Recorder {
    fn name(&self) -> &'static str {
        "recorder"
    }
    fn on_sent(&mut self, sent: &SentInfo, _env: &mut Env<'_>) {
        self.log(Call::Sent(*sent));
    }
    fn on_ack(&mut self, ack: &AckBatch, _env: &mut Env<'_>) {
        self.log(Call::Ack(*ack));
    }
    fn on_loss(&mut self, loss: &LossBatch<'_>, _env: &mut Env<'_>) {
        self.log(Call::Loss(Loss {
            bytes: loss.lost_bytes,
            packets: loss.packets.to_vec(),
            ranges: loss.lost_ranges,
            new_episode: loss.new_episode,
            episode: loss.episode,
            prior_inflight: loss.prior_inflight,
            inflight: loss.inflight,
            round_lost: loss.round_lost,
            round_sent: loss.round_sent,
            cause: loss.cause,
        }));
    }
    fn on_ce(&mut self, ce: &EcnBatch, _env: &mut Env<'_>) {
        self.log(Call::Ce(*ce));
    }
    fn on_spurious(&mut self, episode: EpisodeId, _now: Instant, _env: &mut Env<'_>) {
        self.log(Call::Spurious(episode));
    }
    fn on_persistent_congestion(&mut self, _now: Instant, _env: &mut Env<'_>) {
        self.log(Call::Persistent);
    }
    fn on_pto(&mut self, _now: Instant, count: u32, _env: &mut Env<'_>) {
        self.log(Call::Pto(count));
    }
    fn on_idle_restart(&mut self, _now: Instant, idle: Duration, _env: &mut Env<'_>) {
        self.log(Call::Idle(idle));
    }
    fn on_max_datagram_size_change(&mut self, env: &mut Env<'_>) {
        let (mds, initial, minimum) = windows(env);
        self.log(Call::Mds(mds, initial, minimum));
    }
    fn on_discard(&mut self, bytes: ByteCount) {
        self.log(Call::Discard(bytes));
    }
    fn cwnd(&self) -> ByteCount {
        self.script().cwnd
    }
    fn pacing(&self, _rtt: &RttView) -> Pacing {
        self.script().pacing
    }
    fn uses_app_limited_mark(&self) -> bool {
        self.script().wants_mark
    }
    fn next_timer(&self) -> Option<Instant> {
        self.script().timer
    }
    fn on_timer(&mut self, _now: Instant, _env: &mut Env<'_>) {
        self.log(Call::Timer);
    }
    fn snapshot(&self) -> Snapshot {
        Snapshot {
            cwnd: self.cwnd(),
            ssthresh: None,
            state: "scripted",
            details: Vec::new(),
        }
    }
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

/// A packet as the ledger would keep it.
#[derive(Clone, Copy, Debug)]
struct Packet {
    number: PacketNumber,
    sent_at: Instant,
    size: u16,
    snapshot: DeliverySnapshot,
    lost_in: Option<EpisodeId>,
}

impl Packet {
    fn acked(self) -> AckedPacket {
        let Self {
            number,
            sent_at,
            size,
            snapshot,
            lost_in,
        } = self;
        AckedPacket {
            number,
            sent_at,
            size,
            snapshot,
            lost_in,
        }
    }

    fn lost(self) -> LostRecord {
        let Self {
            number,
            sent_at,
            size,
            snapshot,
            ..
        } = self;
        LostRecord {
            number,
            sent_at,
            size,
            snapshot,
        }
    }
}

/// A path under test: its recovery, its controller's script, a clock and packet numbers.
struct Bench {
    path: PathRecovery,
    cc: Recorder,
    config: Arc<TransportConfig>,
    rng: ChaCha8Rng,
    now: Instant,
    next: u64,
}

impl Bench {
    /// No pacing, a window of 100 packets.
    fn new() -> Self {
        Self::with(|config| config.pacing = false)
    }

    fn with(change: impl FnOnce(&mut TransportConfig)) -> Self {
        let cc = Recorder(Arc::new(Mutex::new(Script {
            calls: Vec::new(),
            cwnd: packets(100),
            pacing: Pacing {
                rate: None,
                gain: 1.25,
                quantum: None,
            },
            wants_mark: false,
            timer: None,
            built_with: None,
        })));
        let mut config = TransportConfig {
            controller: Arc::new(cc.clone()),
            ..TransportConfig::default()
        };
        change(&mut config);

        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let config = Arc::new(config);
        let path = PathRecovery::new(Instant::ZERO, PathId::ZERO, &config, MDS, &mut rng);
        let now = Instant::from_millis(1_000);
        Self {
            path,
            cc,
            config,
            rng,
            now,
            next: 0,
        }
    }

    fn wait(&mut self, by: Duration) {
        self.now += by;
    }

    fn send_size(&mut self, size: u16, is_probe: bool) -> Packet {
        let purpose = if is_probe {
            SendPurpose::TimeoutProbe
        } else {
            SendPurpose::Data
        };
        let snapshot = self.path.on_sent(self.now, size, purpose, &mut self.rng);
        let number = PacketNumber::new(self.next);
        self.next += 1;
        Packet {
            number,
            sent_at: self.now,
            size,
            snapshot,
            lost_in: None,
        }
    }

    fn send(&mut self) -> Packet {
        self.send_size(MDS, false)
    }

    fn send_many(&mut self, count: usize) -> Vec<Packet> {
        (0..count).map(|_| self.send()).collect()
    }

    /// An RTT sample from a packet sent `rtt` ago.
    fn sample_rtt(&mut self, rtt: Duration, ack_delay: Duration) {
        self.path.on_rtt_sample(self.now, self.now - rtt, ack_delay);
    }

    /// One ACK with everything it may bring; stamps the lost packets as the ledger would.
    fn result(&mut self, acked: &[Packet], lost: &mut [Packet], persistent: bool, ce: u64) {
        let acked: Vec<_> = acked.iter().map(|p| p.acked()).collect();
        let records: Vec<_> = lost.iter().map(|p| p.lost()).collect();
        let ecn = EcnCounts {
            ce: PacketCount::new(ce),
            ..EcnCounts::default()
        };
        let episode =
            self.path
                .on_ack_batch(self.now, &acked, &records, persistent, ecn, &mut self.rng);
        assert_eq!(episode.is_some(), !lost.is_empty());
        for packet in lost {
            packet.lost_in = episode;
        }
    }

    fn ack(&mut self, acked: &[Packet]) {
        self.result(acked, &mut [], false, 0);
    }

    /// Losses found by the loss timer.
    fn lose(&mut self, lost: &mut [Packet], persistent: bool) {
        let records: Vec<_> = lost.iter().map(|p| p.lost()).collect();
        let episode = self.path.on_losses(
            self.now,
            &records,
            LossCause::Time,
            persistent,
            &mut self.rng,
        );
        for packet in lost {
            packet.lost_in = episode;
        }
    }

    fn calls(&self) -> Vec<Call> {
        std::mem::take(&mut self.cc.script().calls)
    }

    fn acks(&self) -> Vec<AckBatch> {
        let calls = self.calls().into_iter();
        calls
            .filter_map(|c| {
                if let Call::Ack(ack) = c {
                    Some(ack)
                } else {
                    None
                }
            })
            .collect()
    }

    fn last_ack(&self) -> AckBatch {
        self.acks().pop().unwrap()
    }

    fn losses(&self) -> Vec<Loss> {
        let calls = self.calls().into_iter();
        calls
            .filter_map(|c| {
                if let Call::Loss(loss) = c {
                    Some(loss)
                } else {
                    None
                }
            })
            .collect()
    }

    fn spurious(&self) -> Vec<EpisodeId> {
        let calls = self.calls().into_iter();
        calls
            .filter_map(|c| {
                if let Call::Spurious(id) = c {
                    Some(id)
                } else {
                    None
                }
            })
            .collect()
    }

    fn set_cwnd(&mut self, cwnd: ByteCount) {
        self.cc.script().cwnd = cwnd;
    }
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn us(n: u64) -> Duration {
    Duration::from_micros(n)
}

fn packets(n: u64) -> ByteCount {
    ByteCount::new(n * u64::from(MDS))
}
