//! A custom congestion controller, in addition to those of the library: additive increase,
//! multiplicative decrease, and a queue that is kept below a cap. It is added to a catalogue under
//! the name `own`, run in the laboratory on the first example, and compared.
//!
//! `cargo run -p swiftwater-lab --example own_controller`

use std::error::Error;
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use swiftwater_congestion::blocks::FlightPeak;
use swiftwater_congestion::{
    AckBatch, Controller, ControllerCatalogue, ControllerFactory, EcnBatch, Env, EpisodeId,
    LossBatch, Pacing, RttView, SentInfo, Snapshot, tunable,
};
use swiftwater_lab::claim;
use swiftwater_lab::report::{self, Means};
use swiftwater_lab::run::{ExecuteOptions, execute};
use swiftwater_lab::scenario::{Experiment, Library, LoadOptions};
use swiftwater_lab::store::Results;
use swiftwater_units::{ByteCount, Instant};

/// Parameters. All of them must appear in `Debug`, which distinguishes results.
#[derive(Clone, Copy, Debug)]
pub struct Own {
    /// Packets by which the window grows in a round trip.
    pub gain: f64,
    /// What a reduction multiplies the window by.
    pub beta: f64,
    /// Queueing delay at which the window is reduced as if a packet were lost.
    pub cap: Duration,
}

tunable!(Own {
    "gain" => gain in 0.1..=10.0, "packets by which the window grows in a round trip";
    "beta" => beta in 0.1..=0.95, "what a reduction multiplies the window by";
    "cap" => cap in Duration::from_millis(1)..=Duration::from_secs(10),
        "queueing delay at which the window is reduced";
});

impl Default for Own {
    fn default() -> Self {
        Self {
            gain: 1.0,
            beta: 0.8,
            cap: Duration::from_millis(10),
        }
    }
}

impl ControllerFactory for Own {
    fn name(&self) -> &'static str {
        "own"
    }

    fn build(&self, _now: Instant, env: &mut Env<'_>) -> Box<dyn Controller> {
        Box::new(OwnController {
            config: *self,
            window: env.initial_window.get() as f64,
            slow_start: true,
            peak: FlightPeak::default(),
        })
    }
}

/// State on one path.
#[derive(Clone, Copy, Debug)]
struct OwnController {
    config: Own,
    /// Bytes; with a fraction, so that small steps add up.
    window: f64,
    /// Until the first reduction.
    slow_start: bool,
    peak: FlightPeak,
}

impl OwnController {
    fn reduce(&mut self, env: &Env<'_>) {
        self.slow_start = false;
        self.window = (self.window * self.config.beta).max(env.minimum_window.get() as f64);
    }
}

impl Controller for OwnController {
    fn name(&self) -> &'static str {
        "own"
    }

    fn on_sent(&mut self, _sent: &SentInfo, _env: &mut Env<'_>) {}

    fn on_ack(&mut self, ack: &AckBatch, env: &mut Env<'_>) {
        self.peak.observe(ack);
        // Not during recovery, and not while the application has too little to send.
        if !ack.may_grow() {
            return;
        }
        let queueing = ack.rtt.latest.saturating_sub(ack.rtt.min);
        if queueing > self.config.cap {
            // Once in a round trip: the effect of a reduction is not seen before.
            if ack.round.start {
                self.reduce(env);
            }
            return;
        }
        let acked = ack.acked_bytes.get() as f64;
        let step = if self.slow_start {
            acked
        } else {
            self.config.gain * env.max_datagram_size.get() as f64 * acked / self.window
        };
        // A window far above its use would let a burst out later.
        let most = self.peak.cap(self.slow_start).get() as f64;
        self.window = (self.window + step).min(most.max(self.window));
    }

    fn on_loss(&mut self, loss: &LossBatch<'_>, env: &mut Env<'_>) {
        if loss.new_episode {
            self.reduce(env);
        }
    }

    fn on_ce(&mut self, ce: &EcnBatch, env: &mut Env<'_>) {
        if ce.new_episode {
            self.reduce(env);
        }
    }

    // Could undo the reduction; this controller does not.
    fn on_spurious(&mut self, _episode: EpisodeId, _now: Instant, _env: &mut Env<'_>) {}

    fn on_persistent_congestion(&mut self, _now: Instant, env: &mut Env<'_>) {
        self.slow_start = false;
        self.window = env.minimum_window.get() as f64;
    }

    fn on_max_datagram_size_change(&mut self, env: &mut Env<'_>) {
        self.window = self.window.max(env.minimum_window.get() as f64);
    }

    fn cwnd(&self) -> ByteCount {
        ByteCount::new(self.window as u64)
    }

    fn pacing(&self, _rtt: &RttView) -> Pacing {
        Pacing {
            rate: None,
            gain: if self.slow_start { 2.0 } else { 1.25 },
            quantum: None,
        }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            cwnd: self.cwnd(),
            ssthresh: None,
            state: if self.slow_start {
                "slow_start"
            } else {
                "avoidance"
            },
            details: Vec::new(),
        }
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(*self)
    }
}

/// The library's controllers and this one.
pub fn catalogue() -> ControllerCatalogue {
    let mut catalogue = ControllerCatalogue::standard();
    catalogue.add("own", "AIMD with a cap on queueing delay", Own::default());
    catalogue
}

/// Runs the first example with other values of its axis `cc`; rows and report are kept in `folder`.
pub fn run(folder: &Path, quick: bool) -> Result<(Experiment, Results), Box<dyn Error>> {
    // Separated by `;`, because a specification may contain commas.
    let controllers = "newreno; cubic; own; own:gain=2,cap=5ms";
    let options = LoadOptions {
        quick,
        catalogue: catalogue(),
        set: vec![("cc".to_owned(), controllers.to_owned())],
        ..LoadOptions::default()
    };
    // The scenarios of the repository are part of the library; `Library::folder` uses others.
    let experiment = Library::embedded().load("examples/first", &options)?;
    let mut results = Results::open(folder, &experiment)?;
    let execution = ExecuteOptions {
        jobs: thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
        shard: None,
        only: None,
        stop: &AtomicBool::new(false),
    };
    let summary = execute(&experiment, &mut results, &execution, &mut ())?;
    match summary.failures.into_iter().next() {
        None => Ok((experiment, results)),
        Some(failure) => Err(failure.into()),
    }
}

/// Evaluates the rows, writes the report and returns the verdicts and the means as text.
pub fn conclude(experiment: &Experiment, results: &Results) -> Result<String, Box<dyn Error>> {
    let verdicts = claim::evaluate(experiment, &results.table()?);
    results.write_report(&report::render(experiment, results, &verdicts)?)?;
    let verdicts = report::markdown(experiment, &verdicts);
    Ok(format!("{verdicts}\n{}", means(experiment, results)?))
}

/// A line for each case: goodput, queueing delay, packets lost.
fn means(experiment: &Experiment, results: &Results) -> Result<String, Box<dyn Error>> {
    let measures = [
        "subject.goodput_mbps",
        "bottleneck.queue_delay_mean_ms",
        "subject.lost_share",
    ];
    let table = results.table()?;
    let means = Means::new(experiment, &table);
    let mut text = "buffer   controller              Mbit/s   queue ms   lost %\n".to_owned();
    for (index, case) in experiment.cases.iter().enumerate() {
        let mean = |measure| means.point(&[index], means.column(measure)?).mean;
        let [goodput, delay, lost] = measures.map(|measure| mean(measure).unwrap_or(f64::NAN));
        writeln!(
            text,
            "{:<7}  {:<20}  {goodput:>8.2}  {delay:>9.2}  {:>7.2}",
            case.labels[0],
            case.labels[1],
            lost * 100.0
        )?;
    }
    Ok(text)
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let (experiment, results) = run(folder.path(), false)?;
    print!("{}", conclude(&experiment, &results)?);
    Ok(())
}
