//! Memory of recovery policies, measured by a counting allocator: heap bytes of an idle connection,
//! and during a live stream of 4 Mbit/s (25 frames a second) over 12 Mbit/s, 60 ms and 5 % loss, under
//! BBRv1 and the null cipher.
//!
//! `cargo run --release -p swiftwater-sim --example policy_memory`
//!
//! An idle connection is counted with both of its ends and the simulator's part in it; only the server
//! has the policy. Beside the stream, what counts is the heap that calls into the re-injector took and
//! didn't give back, sampled every 10 ms; `under repair` are the data, in packets of 1,200 bytes, that
//! were lost and not recovered at the time.

#![allow(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use swiftwater_link::{LinkConfig, LossModel};
use swiftwater_quic::policy::{
    AckPolicy, FeedbackPolicy, Hints, LossJudge, NextData, Occasion, OutstandingRange,
    PacketOutcome, PathView, PolicyFactory, ReceivedFeedback, Reinjection, Reinjector, Rejection,
    ReorderingThresholds, Repair, Scheduler,
};
use swiftwater_sim::{Direction, Pair, SimError};
use swiftwater_units::{Bandwidth, ByteCount, Instant, PathId, Side};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

const POLICIES: [&str; 5] = ["arq", "art", "autorec-paper", "autorec", "autorec+"];
/// Idle connections that the mean is of.
const IDLE: usize = 50;
/// Frames of the live stream and their size.
const FRAMES: u32 = 500;
const FRAME: u64 = 20_000;

type Failure = Box<dyn Error>;

fn main() -> Result<(), Failure> {
    let _profiler = dhat::Profiler::builder().testing().build();
    println!(
        "policy         idle bytes  live: mean bytes   max  after  lost data  under repair: mean  max"
    );
    let known = swiftwater_policies::names();
    for policy in POLICIES {
        if known.iter().any(|known| known == policy) {
            let idle = idle(policy)?;
            let live = live(policy)?;
            println!(
                "{policy:<13}  {idle:>10}  {:>16.0}  {:>4}  {:>5}  {:>9}  {:>18.1}  {:>3}",
                live.mean_bytes,
                live.max_bytes,
                live.bytes_after,
                live.lost,
                live.mean_under_repair,
                live.max_under_repair
            );
        }
    }
    Ok(())
}

fn heap() -> usize {
    dhat::HeapStats::get().curr_bytes
}

/// Heap bytes that re-injectors hold.
type Held = Arc<AtomicUsize>;

/// Policies whose re-injectors are weighed.
#[derive(Debug)]
struct Weighing(Arc<dyn PolicyFactory>, Held);

impl PolicyFactory for Weighing {
    fn scheduler(&self) -> Box<dyn Scheduler> {
        self.0.scheduler()
    }

    fn reinjector(&self) -> Box<dyn Reinjector> {
        let inner = weigh(&self.1, || self.0.reinjector());
        Box::new(Weighed(inner, Arc::clone(&self.1)))
    }

    fn ack_policy(&self, threshold: u64) -> Box<dyn AckPolicy> {
        self.0.ack_policy(threshold)
    }

    fn loss_judge(&self, path: PathId, configured: ReorderingThresholds) -> Box<dyn LossJudge> {
        self.0.loss_judge(path, configured)
    }

    fn feedback(&self) -> Box<dyn FeedbackPolicy> {
        self.0.feedback()
    }
}

/// A re-injector of which each call is weighed.
#[derive(Debug)]
struct Weighed(Box<dyn Reinjector>, Held);

fn weigh<R>(held: &Held, call: impl FnOnce() -> R) -> R {
    let before = heap();
    let result = call();
    // Wraps around if less is held than before, as does the sum.
    held.fetch_add(heap().wrapping_sub(before), Ordering::Relaxed);
    result
}

impl Reinjector for Weighed {
    fn is_inert(&self) -> bool {
        self.0.is_inert()
    }

    fn can_use_spare_room(&self) -> bool {
        self.0.can_use_spare_room()
    }

    fn is_asked_on(&self, occasion: Occasion) -> bool {
        self.0.is_asked_on(occasion)
    }

    fn live_copies_defer_retransmission(&self) -> bool {
        self.0.live_copies_defer_retransmission()
    }

    fn on_outcomes(&mut self, now: Instant, outcomes: &[PacketOutcome], path: &PathView) {
        weigh(&self.1, || self.0.on_outcomes(now, outcomes, path));
    }

    fn on_repair(&mut self, now: Instant, event: &Repair) {
        weigh(&self.1, || self.0.on_repair(now, event));
    }

    fn on_rejected(&mut self, now: Instant, rejections: &[Rejection]) {
        weigh(&self.1, || self.0.on_rejected(now, rejections));
    }

    fn on_feedback(&mut self, now: Instant, feedback: &ReceivedFeedback) {
        weigh(&self.1, || self.0.on_feedback(now, feedback));
    }

    fn on_new_data(&mut self, now: Instant, size: ByteCount) {
        weigh(&self.1, || self.0.on_new_data(now, size));
    }

    fn on_unsent_data(&mut self, now: Instant, waiting: ByteCount) {
        weigh(&self.1, || self.0.on_unsent_data(now, waiting));
    }

    fn on_next_data(&mut self, now: Instant, next: Option<NextData>) {
        weigh(&self.1, || self.0.on_next_data(now, next));
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
        // Room in the connection's list isn't the policy's.
        out.reserve(64);
        weigh(&self.1, || {
            self.0
                .reinject(now, occasion, outstanding, paths, hints, out);
        });
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.0.next_deadline()
    }
}

fn pair(policies: Arc<dyn PolicyFactory>, loss: f64) -> Result<Pair, Failure> {
    let controller = swiftwater_congestion::by_name("bbr1")?;
    let way = || {
        LinkConfig::default()
            .rate(Bandwidth::from_mbps(12))
            .delay(Duration::from_millis(30))
    };
    let built: Result<Pair, SimError> = Pair::builder()
        .links(way(), way().loss(LossModel::Bernoulli(loss)))
        .both_configs(|config| config.max_idle_timeout = None)
        .server_config(|config| {
            config.policies = policies;
            config.controller = controller;
        })
        .build();
    Ok(built?)
}

/// Heap bytes of a connection on which nothing was sent.
fn idle(policy: &str) -> Result<usize, Failure> {
    let mut pair = pair(swiftwater_policies::by_name(policy)?, 0.0)?;
    if !pair.connect() {
        return Err("no connection".into());
    }
    pair.advance(Duration::from_secs(2));
    let before = heap();
    for _ in 0..IDLE {
        pair.start()?;
        pair.advance(Duration::from_secs(2));
    }
    Ok((heap() - before) / IDLE)
}

/// Heap bytes that the re-injector held, and what was under repair.
#[derive(Default)]
struct Live {
    mean_bytes: f64,
    max_bytes: usize,
    bytes_after: usize,
    lost: u64,
    mean_under_repair: f64,
    max_under_repair: u64,
}

fn live(policy: &str) -> Result<Live, Failure> {
    let held = Held::default();
    let policies = Weighing(swiftwater_policies::by_name(policy)?, Arc::clone(&held));
    let mut pair = pair(Arc::new(policies), 0.05)?;
    if !pair.connect() {
        return Err("no connection".into());
    }
    pair.advance(Duration::from_secs(1));
    let mut live = Live::default();
    let mut samples = 0_u32;
    for _ in 0..FRAMES {
        pair.start_transfer(FRAME, Direction::ToClient);
        for _ in 0..4 {
            pair.advance(Duration::from_millis(10));
            let bytes = held.load(Ordering::Relaxed);
            let repair = pair.stats(Side::Server).repair;
            let left = repair.lost_bytes.get() - repair.recovered_bytes.get();
            let under_repair = left.div_ceil(1_200);
            samples += 1;
            live.mean_bytes += bytes as f64;
            live.max_bytes = live.max_bytes.max(bytes);
            live.mean_under_repair += under_repair as f64;
            live.max_under_repair = live.max_under_repair.max(under_repair);
        }
    }
    live.mean_bytes /= f64::from(samples);
    live.mean_under_repair /= f64::from(samples);
    if !pair.finish_transfers() {
        return Err("the stream did not arrive".into());
    }
    pair.advance(Duration::from_secs(5));
    live.bytes_after = held.load(Ordering::Relaxed);
    live.lost = pair.stats(Side::Server).repair.lost_data;
    Ok(live)
}
