//! T15: packets leave at the rate that the pacer is set to, in bursts no longer than permitted, on
//! the record of a link that never holds them up.

use crate::support;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use swiftwater_congestion::{
    AckBatch, Controller, ControllerFactory, EcnBatch, Env, EpisodeId, FixedWindow, LossBatch,
    Pacing, RttView, SentInfo, Snapshot,
};
use swiftwater_link::LinkConfig;
use swiftwater_sim::{Direction, Pair, Verdict};
use swiftwater_units::{Bandwidth, ByteCount, Instant, PathId, Side};

use support::{millis, secs};

/// Full datagrams of these pairs.
const PACKET: u64 = 1_452;

/// A window that never limits, and a separate rate.
#[derive(Clone, Debug)]
struct OwnRate {
    rate: Bandwidth,
    quantum: Option<ByteCount>,
}

impl ControllerFactory for OwnRate {
    fn name(&self) -> &'static str {
        "own-rate"
    }
    fn build(&self, _now: Instant, _env: &mut Env<'_>) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

impl Controller for OwnRate {
    fn name(&self) -> &'static str {
        "own-rate"
    }
    fn on_sent(&mut self, _sent: &SentInfo, _env: &mut Env<'_>) {}
    fn on_ack(&mut self, _ack: &AckBatch, _env: &mut Env<'_>) {}
    fn on_loss(&mut self, _loss: &LossBatch<'_>, _env: &mut Env<'_>) {}
    fn on_ce(&mut self, _ce: &EcnBatch, _env: &mut Env<'_>) {}
    fn on_spurious(&mut self, _episode: EpisodeId, _now: Instant, _env: &mut Env<'_>) {}
    fn on_persistent_congestion(&mut self, _now: Instant, _env: &mut Env<'_>) {}
    fn on_max_datagram_size_change(&mut self, _env: &mut Env<'_>) {}
    fn cwnd(&self) -> ByteCount {
        ByteCount::new(1 << 40)
    }
    fn pacing(&self, _rtt: &RttView) -> Pacing {
        Pacing {
            rate: Some(self.rate),
            gain: 1.0,
            quantum: self.quantum,
        }
    }
    fn snapshot(&self) -> Snapshot {
        Snapshot {
            cwnd: self.cwnd(),
            ssthresh: None,
            state: "paced",
            details: Vec::new(),
        }
    }
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

/// Time and size of each datagram sent.
type Sent = Rc<RefCell<Vec<(Instant, u64)>>>;

fn factory(controller: impl ControllerFactory + 'static) -> Arc<dyn ControllerFactory> {
    Arc::new(controller)
}

/// A client that sends without end.
fn sending(controller: &Arc<dyn ControllerFactory>, lose: Option<u64>) -> (Pair, Sent) {
    let (mut pair, sent) = connected(controller, lose);
    pair.start_transfer(200_000_000, Direction::ToServer);
    (pair, sent)
}

/// A pair over a link without a rate, 20 ms each way, and what the client sends from now on.
fn connected(controller: &Arc<dyn ControllerFactory>, lose: Option<u64>) -> (Pair, Sent) {
    let mut pair = Pair::builder()
        .link(LinkConfig::default().delay(millis(20)))
        .both_configs(|config| {
            config.controller = Arc::clone(controller);
            config.initial_max_datagram_size = PACKET as u16;
            for window in [
                &mut config.stream_receive_window,
                &mut config.max_stream_receive_window,
                &mut config.receive_window,
                &mut config.max_receive_window,
                &mut config.send_window,
            ] {
                *window = ByteCount::new(64 << 20);
            }
        })
        .build()
        .unwrap();
    assert!(pair.connect());
    let sent = Sent::default();
    let log = Rc::clone(&sent);
    pair.tap(Direction::ToServer, move |datagram| {
        log.borrow_mut()
            .push((datagram.now, datagram.data.len() as u64));
        if lose == Some(datagram.index) {
            return Verdict::Drop;
        }
        Verdict::Pass
    });
    (pair, sent)
}

/// The rate that the client's pacer follows, bits per second.
fn rate(pair: &Pair) -> f64 {
    let client = pair.view(Side::Client).unwrap();
    let stats = client.path_stats(PathId::ZERO).unwrap();
    stats.pacing_rate.unwrap().as_bps() as f64
}

/// Runs for `time` and holds what was sent against the rate in force, millisecond by millisecond.
fn check_mean(pair: &mut Pair, sent: &Sent, time: Duration, name: &str) {
    let (start, from) = (pair.now(), sent.borrow().len());
    let (mut wanted, step) = (0.0, millis(1));
    while pair.now() < start + time {
        let before = rate(pair);
        pair.advance(step);
        wanted += before.midpoint(rate(pair)) * step.as_secs_f64() / 8.0;
    }
    let bytes: u64 = sent.borrow()[from..].iter().map(|(_, size)| size).sum();
    let error = bytes as f64 / wanted - 1.0;
    assert!(error.abs() < 0.01, "{name}: {bytes} of {wanted}");
}

/// Packets that leave at the same instant are no more than `burst` bytes; and no interval has more
/// than the rate permits beside one burst.
fn check_bursts(sent: &[(Instant, u64)], rate: f64, burst: u64, name: &str) {
    let mut level: f64 = 0.0;
    let mut last = sent[0].0;
    for &(now, size) in sent {
        let elapsed = now.saturating_since(last).as_secs_f64();
        level = (level - elapsed * rate / 8.0).max(0.0) + size as f64;
        last = now;
        // A nanosecond of rounding is less than a byte.
        assert!(level <= burst as f64 + 8.0, "{name}: {level} at {now:?}");
    }
}

#[test]
fn a_controllers_own_rate_is_kept() {
    for (mbps, quantum, burst) in [
        (2, None, 2 * PACKET),
        (20, None, 2 * PACKET),
        // A millisecond of the rate.
        (60, None, 7_500),
        (200, None, 10 * PACKET),
        (20, Some(1), PACKET),
        (20, Some(4), 4 * PACKET),
    ] {
        let own = OwnRate {
            rate: Bandwidth::from_mbps(mbps),
            quantum: quantum.map(|packets: u64| ByteCount::new(packets * PACKET)),
        };
        let name = format!("{own:?}");
        let (mut pair, sent) = sending(&factory(own), None);
        // What was saved up while nothing was in flight goes first.
        pair.advance(millis(100));
        let from = sent.borrow().len();
        check_mean(&mut pair, &sent, millis(500), &name);
        check_bursts(&sent.borrow()[from..], mbps as f64 * 1e6, burst, &name);
    }
}

#[test]
fn bursts_after_a_pause_are_as_long_as_permitted_and_no_longer() {
    for (quantum, burst) in [(None, 2 * PACKET), (Some(1), PACKET), (Some(4), 4 * PACKET)] {
        let own = OwnRate {
            rate: Bandwidth::from_mbps(20),
            quantum: quantum.map(|packets: u64| ByteCount::new(packets * PACKET)),
        };
        let name = format!("{own:?}");
        let (mut pair, sent) = connected(&factory(own), None);
        // 17 ms of sending and 3 ms of pause, with packets in flight all the time.
        for _ in 0..30 {
            pair.start_transfer(30 * PACKET, Direction::ToServer);
            pair.advance(millis(20));
        }
        let sent = sent.borrow();
        let later = sent.partition_point(|(now, _)| *now < pair.now() - millis(500));
        let sent = &sent[later..];
        check_bursts(sent, 20e6, burst, &name);
        let together = sent
            .chunk_by(|a, b| a.0 == b.0)
            .map(|burst| burst.iter().map(|(_, size)| size).sum::<u64>());
        let longest = together.max().unwrap();
        assert!(
            longest > burst - PACKET && longest <= burst,
            "{name}: {longest}"
        );
    }
}

#[test]
fn a_fixed_window_is_spread_over_the_round_trip() {
    let window = ByteCount::new(100 * PACKET);
    let fixed = FixedWindow { window, gain: 1.0 };
    let (mut pair, sent) = sending(&factory(fixed), None);
    pair.advance(millis(400));
    let from = sent.borrow().len();
    check_mean(&mut pair, &sent, secs(1), "fixed");
    // 100 packets in 40 ms are 3.6 packets in a millisecond.
    let rate = 8.0 * window.get() as f64 / 0.04;
    check_bursts(&sent.borrow()[from..], 1.01 * rate, 4 * PACKET, "fixed");
}

#[test]
fn window_based_algorithms_send_at_their_window_per_round_trip() {
    for name in ["newreno", "cubic"] {
        // With a gain of 1 the pacer, not the window, is what limits.
        let specification = format!("{name}:pacing_gain=1,pacing_gain_slow_start=1");
        let controller = swiftwater_congestion::by_name(&specification).unwrap();
        let (mut pair, sent) = sending(&controller, Some(300));
        pair.advance(secs(2));
        assert_eq!(
            support::path(&pair, Side::Client).lost_packets.get(),
            1,
            "slow start is over"
        );
        let from = sent.borrow().len();
        check_mean(&mut pair, &sent, secs(1), name);
        // The rate only grows here, so its last value bounds all.
        let last = rate(&pair);
        let burst = (last / 8.0 * 0.001).max(2.0 * PACKET as f64);
        let burst = burst.min(10.0 * PACKET as f64);
        check_bursts(&sent.borrow()[from..], last, burst as u64, name);
    }
}
