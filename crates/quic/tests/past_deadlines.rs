//! Policies and controllers that ask to be called at a time which is past are called about once per
//! millisecond: they do not make a driver spin.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use swiftwater_congestion::{
    AckBatch, Controller, ControllerFactory, EcnBatch, Env, EpisodeId, LossBatch, Pacing, RttView,
    SentInfo, Snapshot,
};
use swiftwater_quic::policy::{
    Hints, Occasion, OutstandingRange, PathView, PolicyFactory, Reinjection, Reinjector,
};
use swiftwater_quic::{RetryPolicy, TransportConfig};
use swiftwater_units::{ByteCount, Dir, Instant};

use support::{Wire, establish};

/// Calls in a second: one per millisecond, and a few for the connection's own timers.
const MOST_CALLS: u32 = 1_020;

/// How far back the deadline lies.
#[derive(Clone, Copy, Debug)]
enum Past {
    /// At the time of the last call.
    LastCall,
    /// At the beginning of all time.
    Always,
}

/// Counts calls, and asks for the next one at a time that is past.
#[derive(Clone, Debug)]
struct Eager {
    past: Past,
    last: Instant,
    calls: Arc<AtomicU32>,
}

impl Eager {
    fn new(past: Past) -> Self {
        Self {
            past,
            last: Instant::ZERO,
            calls: Arc::default(),
        }
    }

    fn deadline(&self) -> Instant {
        match self.past {
            Past::LastCall => self.last,
            Past::Always => Instant::ZERO,
        }
    }

    fn on_call(&mut self, now: Instant) {
        self.last = now;
        self.calls.fetch_add(1, Ordering::Relaxed);
    }
}

impl Reinjector for Eager {
    fn reinject(
        &mut self,
        now: Instant,
        occasion: Occasion,
        _: &mut dyn Iterator<Item = OutstandingRange>,
        _: &[PathView],
        _: &Hints,
        _: &mut Vec<Reinjection>,
    ) {
        if occasion == Occasion::Timer {
            self.on_call(now);
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        Some(self.deadline())
    }
}

impl PolicyFactory for Eager {
    fn reinjector(&self) -> Box<dyn Reinjector> {
        Box::new(self.clone())
    }
}

impl ControllerFactory for Eager {
    fn name(&self) -> &'static str {
        "eager"
    }
    fn build(&self, _now: Instant, _env: &mut Env<'_>) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

impl Controller for Eager {
    fn name(&self) -> &'static str {
        "eager"
    }
    fn on_sent(&mut self, _sent: &SentInfo, _env: &mut Env<'_>) {}
    fn on_ack(&mut self, _ack: &AckBatch, _env: &mut Env<'_>) {}
    fn on_loss(&mut self, _loss: &LossBatch<'_>, _env: &mut Env<'_>) {}
    fn on_ce(&mut self, _ce: &EcnBatch, _env: &mut Env<'_>) {}
    fn on_spurious(&mut self, _episode: EpisodeId, _now: Instant, _env: &mut Env<'_>) {}
    fn on_persistent_congestion(&mut self, _now: Instant, _env: &mut Env<'_>) {}
    fn on_max_datagram_size_change(&mut self, _env: &mut Env<'_>) {}
    fn cwnd(&self) -> ByteCount {
        ByteCount::new(1 << 20)
    }
    fn pacing(&self, _rtt: &RttView) -> Pacing {
        Pacing {
            rate: None,
            gain: 1.0,
            quantum: None,
        }
    }
    fn next_timer(&self) -> Option<Instant> {
        Some(self.deadline())
    }
    fn on_timer(&mut self, now: Instant, _env: &mut Env<'_>) {
        self.on_call(now);
    }
    fn snapshot(&self) -> Snapshot {
        Snapshot {
            cwnd: self.cwnd(),
            ssthresh: None,
            state: "eager",
            details: Vec::new(),
        }
    }
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

/// Drives a client for a second, and returns how often its timers expired. What it sends is lost if
/// `is_busy`: then data are in flight all the time.
fn drive(config: TransportConfig, eager: &Eager, is_busy: bool) -> u32 {
    let mut wire = Wire::with(false, RetryPolicy::Never, config);
    establish(&mut wire);
    // Those of the client alone count, and not those of the handshake.
    eager.calls.store(0, Ordering::Relaxed);
    let mut now = wire.now;
    let end = now + Duration::from_secs(1);
    let client = wire.client.connection();
    if is_busy {
        let id = client.open(Dir::Uni).unwrap();
        assert!(client.send_stream(id).write(&[7; 5_000]).unwrap() > 0);
    }
    let (mut timeouts, mut buf) = (0, vec![0; 15_000]);
    loop {
        while client.poll_transmit(now, 10, &mut buf).is_some() {}
        match client.poll_timeout() {
            Some(at) if at <= end => now = now.max(at),
            _ => break,
        }
        client.handle_timeout(now);
        timeouts += 1;
        assert!(timeouts <= MOST_CALLS, "{timeouts} calls until {now:?}");
    }
    timeouts
}

/// Runs with each kind of deadline, and holds the calls that `eager` counts against those of the driver.
fn every_deadline(config: impl Fn(&Eager) -> TransportConfig) {
    for past in [Past::LastCall, Past::Always] {
        for is_busy in [false, true] {
            let eager = Eager::new(past);
            let config = config(&eager);
            let timeouts = drive(config, &eager, is_busy);
            let calls = eager.calls.load(Ordering::Relaxed);
            // It is still called.
            assert!(calls >= 900, "{past:?}, {is_busy}: {calls} of {timeouts}");
        }
    }
}

#[test]
fn a_reinjector_whose_deadline_is_past_does_not_spin_the_driver() {
    every_deadline(|eager| TransportConfig {
        policies: Arc::new(eager.clone()),
        ..TransportConfig::default()
    });
}

#[test]
fn a_controller_whose_timer_is_past_does_not_spin_the_driver() {
    every_deadline(|eager| TransportConfig {
        controller: Arc::new(eager.clone()),
        ..TransportConfig::default()
    });
}
