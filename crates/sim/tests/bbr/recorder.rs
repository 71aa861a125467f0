//! A controller that wraps another one and records its inputs and outputs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use swiftwater_congestion::{
    AckBatch, Controller, ControllerFactory, EcnBatch, Env, EpisodeId, LossBatch, Pacing, RttView,
    SentInfo, Snapshot, by_name,
};
use swiftwater_units::{ByteCount, Instant, PacketCount};

/// State after an ACK.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) now: Instant,
    pub(crate) state: &'static str,
    pub(crate) cwnd: u64,
    pub(crate) inflight: u64,
    pub(crate) delivered: u64,
    /// True if the ACK's rate sample was limited by the application.
    pub(crate) is_app_limited: Option<bool>,
    /// Pacing rate, bit/s.
    pub(crate) pacing: f64,
    /// Most bytes to leave at once.
    pub(crate) quantum: u64,
    pub(crate) details: Vec<(&'static str, f64)>,
}

impl Entry {
    pub(crate) fn detail(&self, name: &str) -> f64 {
        let found = self.details.iter().find(|(key, _)| *key == name);
        found
            .unwrap_or_else(|| panic!("{name} in {:?}", self.details))
            .1
    }
}

/// What was written down.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Entry>>>);

impl Log {
    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.0.lock().unwrap().clone()
    }

    /// When each stay in `state` started.
    pub(crate) fn visits(&self, state: &str) -> Vec<Instant> {
        let entries = self.entries();
        let pairs = entries.iter().zip(entries.iter().skip(1));
        pairs
            .filter(|(before, after)| before.state != state && after.state == state)
            .map(|(_, after)| after.now)
            .collect()
    }

    /// Bytes delivered from `from` to `to`.
    pub(crate) fn delivered(&self, from: Instant, to: Instant) -> u64 {
        let entries = self.entries();
        let until = |time| {
            let before = entries.iter().take_while(|entry| entry.now <= time);
            before.last().map_or(0, |entry| entry.delivered)
        };
        until(to) - until(from)
    }
}

/// Makes controllers, of which the first is recorded: that of the client, which sends.
#[derive(Debug)]
pub(crate) struct Recorded {
    inner: Arc<dyn ControllerFactory>,
    log: Log,
    has_built: AtomicBool,
}

impl Recorded {
    /// The algorithm of this specification, and its log.
    pub(crate) fn new(specification: &str) -> (Arc<Self>, Log) {
        let log = Log::default();
        let recorded = Self {
            inner: by_name(specification).unwrap(),
            log: log.clone(),
            has_built: AtomicBool::new(false),
        };
        (Arc::new(recorded), log)
    }
}

impl ControllerFactory for Recorded {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn initial_window(&self) -> Option<PacketCount> {
        self.inner.initial_window()
    }

    fn build(&self, now: Instant, env: &mut Env<'_>) -> Box<dyn Controller> {
        let inner = self.inner.build(now, env);
        if self.has_built.swap(true, Ordering::Relaxed) {
            return inner;
        }
        Box::new(Recorder {
            inner,
            log: self.log.clone(),
        })
    }
}

struct Recorder {
    inner: Box<dyn Controller>,
    log: Log,
}

impl Controller for Recorder {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn on_sent(&mut self, sent: &SentInfo, env: &mut Env<'_>) {
        self.inner.on_sent(sent, env);
    }

    fn on_ack(&mut self, ack: &AckBatch, env: &mut Env<'_>) {
        self.inner.on_ack(ack, env);
        let snapshot = self.inner.snapshot();
        let pacing = self.inner.pacing(&ack.rtt);
        self.log.0.lock().unwrap().push(Entry {
            now: ack.now,
            state: snapshot.state,
            cwnd: snapshot.cwnd.get(),
            inflight: ack.inflight.get(),
            delivered: ack.delivered.get(),
            is_app_limited: ack.rate.map(|sample| sample.is_app_limited),
            pacing: pacing.rate.map_or(0.0, |rate| rate.as_bps() as f64),
            quantum: pacing.quantum.map_or(0, ByteCount::get),
            details: snapshot.details,
        });
    }

    fn on_loss(&mut self, loss: &LossBatch<'_>, env: &mut Env<'_>) {
        self.inner.on_loss(loss, env);
    }

    fn on_ce(&mut self, ce: &EcnBatch, env: &mut Env<'_>) {
        self.inner.on_ce(ce, env);
    }

    fn on_spurious(&mut self, episode: EpisodeId, now: Instant, env: &mut Env<'_>) {
        self.inner.on_spurious(episode, now, env);
    }

    fn on_persistent_congestion(&mut self, now: Instant, env: &mut Env<'_>) {
        self.inner.on_persistent_congestion(now, env);
    }

    fn on_pto(&mut self, now: Instant, count: u32, env: &mut Env<'_>) {
        self.inner.on_pto(now, count, env);
    }

    fn on_idle_restart(&mut self, now: Instant, idle: Duration, env: &mut Env<'_>) {
        self.inner.on_idle_restart(now, idle, env);
    }

    fn on_max_datagram_size_change(&mut self, env: &mut Env<'_>) {
        self.inner.on_max_datagram_size_change(env);
    }

    fn on_discard(&mut self, bytes: ByteCount) {
        self.inner.on_discard(bytes);
    }

    fn cwnd(&self) -> ByteCount {
        self.inner.cwnd()
    }

    fn pacing(&self, rtt: &RttView) -> Pacing {
        self.inner.pacing(rtt)
    }

    fn uses_app_limited_mark(&self) -> bool {
        self.inner.uses_app_limited_mark()
    }

    fn next_timer(&self) -> Option<Instant> {
        self.inner.next_timer()
    }

    fn on_timer(&mut self, now: Instant, env: &mut Env<'_>) {
        self.inner.on_timer(now, env);
    }

    fn snapshot(&self) -> Snapshot {
        self.inner.snapshot()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self {
            inner: self.inner.clone_box(),
            log: self.log.clone(),
        })
    }
}
