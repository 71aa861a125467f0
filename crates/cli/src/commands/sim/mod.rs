//! `sim`: flows that share a bottleneck, or several paths, in virtual time, from flags alone.

mod path_arg;

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use swiftwater::TransportConfig;
use swiftwater::link::{
    Buffer, EcnThreshold, Jitter, LossModel, QueueDiscipline, Rate, parse_duration, parse_rate,
};
use swiftwater::policies::{Policies, ReinjectorCatalogue, SchedulerCatalogue, UnknownEntry};
use swiftwater::qlog::DirectoryFactory;
use swiftwater::units::Bandwidth;
use swiftwater_sim::{Cipher, Dumbbell, DumbbellPath, FlowReport, FlowSpec, Report, SimError};
use thiserror::Error;

use crate::duration::parse_positive_duration;
use crate::exit::{Exit, Failure};
use crate::link_args::{parse_ecn_threshold, parse_jitter, read_trace};
use crate::output;
use crate::size::parse_size;
use crate::table::{self, Table};
use crate::transport::{parse_controller, parse_recovery, qlog_failure, recovery_help};

use self::path_arg::PathArg;

/// The longest run; a longer duration is most likely a mistake.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// The scheduler of several paths.
const DEFAULT_SCHEDULER: &str = "min-rtt";

/// Checks the name and parameters of a scheduler.
fn parse_scheduler(specification: &str) -> Result<String, UnknownEntry> {
    SchedulerCatalogue::standard().get(specification)?;
    Ok(specification.to_ascii_lowercase())
}

fn scheduler_help() -> String {
    let catalogue = SchedulerCatalogue::standard();
    let names: Vec<_> = catalogue.names().collect();
    format!(
        "Which path the next packet leaves on, with several --path: {}",
        names.join(", ")
    )
}

/// `sim`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  swiftwater sim --flow cubic --rate 100mbit --rtt 30.6ms --buffer 1bdp --duration 40s
  swiftwater sim --flow cubic --flow newreno,start=5s --loss 0.1% --seed 1 --json
  swiftwater sim --flow cubic,bytes=10MB --trace lte.csv --rtt 60ms
  swiftwater sim --flow cubic --buffer 5bdp --queue codel
  swiftwater sim --flow cubic,bytes=1MB --loss 2% --qlog logs
  swiftwater sim --flow bbr3 --path rate=50mbit,rtt=20ms --path rate=10mbit,rtt=80ms,loss=1%

Flows run from senders to receivers of their own through one bottleneck, on the real stack, in virtual
time. With several --path there are as many bottlenecks, and every flow uses all of them at once. The same flags and seed give the same result on every machine.")]
pub struct SimArgs {
    /// A flow: its controller (cubic, or cubic:beta=0.8,hystart=off), then any of ,start=TIME
    /// ,bytes=SIZE ,extra-rtt=TIME (repeat for several); without bytes it lasts to the end
    #[arg(long = "flow", value_name = "FLOW", default_value = "cubic")]
    pub flows: Vec<FlowArg>,

    /// One of several paths that every flow uses together (multipath): any of rate=RATE or trace=FILE, rtt=TIME,
    /// buffer=SIZE, queue=DISCIPLINE, loss=LOSS, jitter=TIME, ecn-threshold=THRESHOLD, separated by commas;
    /// what is left out is as in the flags below (repeat for each path, 8 at most; the first is that of the
    /// handshake)
    #[arg(long = "path", value_name = "PATH")]
    pub paths: Vec<PathArg>,

    /// Which path the next packet leaves on, with several --path.
    #[arg(long, value_name = "SCHEDULER", requires = "paths", value_parser = parse_scheduler,
          default_value = DEFAULT_SCHEDULER, help = scheduler_help())]
    pub scheduler: String,

    /// Rate of the bottleneck
    #[arg(
        long,
        value_name = "RATE",
        default_value = "100mbit",
        conflicts_with = "trace"
    )]
    pub rate: Rate,

    /// Round-trip time without queues
    #[arg(long, value_name = "TIME", default_value = "30ms",
          value_parser = parse_positive_duration)]
    pub rtt: Duration,

    /// Capacity of the bottleneck's queue: 1bdp, bytes (64kB), packets (100p), unlimited
    #[arg(long, value_name = "SIZE", default_value = "1bdp")]
    pub buffer: Buffer,

    /// The queue discipline: droptail, red, codel, fq-codel or dualpi2, with parameters if needed
    /// (codel:target=5ms,interval=100ms)
    #[arg(long, value_name = "DISCIPLINE", default_value = "droptail")]
    pub queue: QueueDiscipline,

    /// Random loss after the queue: 0.1%, or in bursts: ge:10%,60%@3ms starts a burst with 10 %
    /// probability per step of 3 ms and ends it with 60 %; without @TIME the steps are packets
    #[arg(long, value_name = "LOSS", default_value = "none")]
    pub loss: LossModel,

    /// Random delay: 5ms (uniform) or normal:MEAN,DEVIATION
    #[arg(long, value_name = "JITTER", value_parser = parse_jitter)]
    pub jitter: Option<Jitter>,

    /// Mark ECN-capable packets that find more than this in the queue (droptail only): 30kB, 20p or
    /// 5ms
    #[arg(long, value_name = "THRESHOLD", value_parser = parse_ecn_threshold)]
    pub ecn_threshold: Option<EcnThreshold>,

    /// Follow the rates of a trace file instead of a constant rate
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// Rate of the access links
    #[arg(long, value_name = "RATE", default_value = "1gbit", value_parser = parse_rate)]
    pub access_rate: Bandwidth,

    /// Length of the run, a day at most; it ends early when all flows are finished
    #[arg(long, value_name = "TIME", default_value = "10s",
          value_parser = parse_positive_duration)]
    pub duration: Duration,

    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// How senders repair losses.
    #[arg(long, value_name = "POLICY", value_parser = parse_recovery,
          help = recovery_help("How senders repair losses"))]
    pub recovery: Option<String>,

    /// Log both ends of every flow to files in this directory (qlog, .sqlog); created if missing
    #[arg(long, value_name = "DIR")]
    pub qlog: Option<PathBuf>,

    /// Packet protection: hardly affects the results, but the speed
    #[arg(long, value_enum, default_value_t, value_name = "CIPHER")]
    pub cipher: CipherArg,

    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

/// Packet protection of simulated packets.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum CipherArg {
    /// None, with packets of the same size: fast
    #[default]
    Null,
    /// TLS 1.3 with AES-128-GCM
    Aes,
}

/// A `--flow`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FlowArg {
    /// Congestion controller.
    pub controller: String,
    /// When it starts.
    pub start: Duration,
    /// Bytes to send; `None` sends to the end.
    pub bytes: Option<u64>,
    /// Round-trip time in addition to `--rtt`.
    pub extra_rtt: Duration,
}

impl FromStr for FlowArg {
    type Err = FlowArgError;

    fn from_str(input: &str) -> Result<Self, FlowArgError> {
        let mut flow = Self {
            controller: String::new(),
            start: Duration::ZERO,
            bytes: None,
            extra_rtt: Duration::ZERO,
        };
        // Other keys are parameters of the controller.
        let mut controller = Vec::new();
        for part in input.split(',').map(str::trim) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let duration =
                || parse_duration(value).map_err(|error| FlowArgError(error.to_string()));
            match key.trim() {
                "start" => flow.start = duration()?,
                "extra-rtt" => flow.extra_rtt = duration()?,
                "bytes" => {
                    let bytes =
                        parse_size(value).map_err(|error| FlowArgError(error.to_string()))?;
                    flow.bytes = Some(bytes);
                }
                _ => controller.push(part),
            }
        }
        if let [name, other, ..] = controller[..]
            && !name.contains(':')
        {
            let text = format!(
                "'{other}' is no property of a flow: write start=, bytes= or extra-rtt=; parameters \
                 of a controller follow a colon, as in cubic:beta=0.8"
            );
            return Err(FlowArgError(text));
        }
        flow.controller = parse_controller(&controller.join(","))
            .map_err(|error| FlowArgError(error.to_string()))?;
        Ok(flow)
    }
}

/// A `--flow` that could not be parsed.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{0}")]
pub struct FlowArgError(String);

/// Rejects runs that are most likely mistakes.
fn check(args: &SimArgs) -> Result<(), Failure> {
    if args.duration > LONGEST {
        return Err(Failure::new(
            Exit::Usage,
            "the duration is out of range: a day (1440min) at most",
        ));
    }
    for (flow, number) in args.flows.iter().zip(1_usize..) {
        if flow.start >= args.duration {
            let text = format!(
                "flow {number} starts after {:?}, when the run of {:?} is over",
                flow.start, args.duration
            );
            return Err(Failure::new(Exit::Usage, text));
        }
    }
    Ok(())
}

pub(crate) fn run(args: &SimArgs) -> Result<(), Failure> {
    check(args)?;
    let dumbbell = dumbbell(args)?;
    let start = Instant::now();
    let mut report = dumbbell.run().map_err(|error| sim_failure(&error))?;
    report.wall_s = start.elapsed().as_secs_f64();
    if args.json {
        output::json(&report)?;
    } else {
        output::line(&text(&report))?;
    }
    if report.flows.iter().all(|flow| flow.intact) {
        Ok(())
    } else {
        Err(Failure::new(
            Exit::Differs,
            "bytes arrived that were not sent: this is a bug",
        ))
    }
}

fn dumbbell(args: &SimArgs) -> Result<Dumbbell, Failure> {
    let flows = args.flows.iter().map(|flow| {
        let spec = FlowSpec::new(&flow.controller)?
            .start(flow.start)
            .extra_rtt(flow.extra_rtt);
        Ok(match flow.bytes {
            Some(bytes) => spec.bytes(bytes),
            None => spec,
        })
    });
    let flows = flows
        .collect::<Result<_, _>>()
        .map_err(|error| sim_failure(&error))?;
    let bottleneck = bottleneck(args)?;
    let paths = args.paths.iter().map(|path| path.resolve(&bottleneck));
    let paths = paths.collect::<Result<_, _>>()?;
    let DumbbellPath {
        rate,
        rtt,
        buffer,
        queue,
        loss,
        jitter,
        ecn_threshold,
    } = bottleneck;
    Ok(Dumbbell {
        flows,
        rate,
        rtt,
        buffer,
        queue,
        loss,
        jitter,
        ecn_threshold,
        paths,
        access_rate: args.access_rate,
        duration: args.duration,
        cipher: match args.cipher {
            CipherArg::Null => Cipher::Null,
            CipherArg::Aes => Cipher::Tls,
        },
        seed: args.seed,
        transport: transport(args)?,
        ..Dumbbell::default()
    })
}

/// What the flags of the bottleneck describe.
fn bottleneck(args: &SimArgs) -> Result<DumbbellPath, Failure> {
    let rate = match &args.trace {
        Some(path) => Rate::Trace(read_trace(path)?),
        None => args.rate.clone(),
    };
    Ok(DumbbellPath {
        rate,
        rtt: args.rtt,
        buffer: args.buffer,
        queue: args.queue,
        loss: args.loss,
        jitter: args.jitter.unwrap_or_default(),
        ecn_threshold: args.ecn_threshold,
    })
}

/// Settings common to all flows.
fn transport(args: &SimArgs) -> Result<TransportConfig, Failure> {
    let mut transport = TransportConfig::default();
    if args.recovery.is_some() || args.paths.len() > 1 {
        transport.policies =
            Arc::new(policies(args).map_err(|error| Failure::new(Exit::Usage, error))?);
    }
    if let Some(directory) = &args.qlog {
        // The same run produces the same logs.
        let factory = DirectoryFactory::new(directory)
            .map_err(|error| qlog_failure(directory, &error))?
            .without_wall_clock();
        transport.observer = Some(Arc::new(factory));
    }
    Ok(transport)
}

fn policies(args: &SimArgs) -> Result<Policies, UnknownEntry> {
    let mut policies = Policies::default();
    if let Some(name) = &args.recovery {
        policies = policies.with_reinjector(ReinjectorCatalogue::standard().get(name)?);
    }
    if args.paths.len() > 1 {
        let scheduler = SchedulerCatalogue::standard().get(&args.scheduler)?;
        policies = policies.with_scheduler(scheduler);
    }
    Ok(policies)
}

fn sim_failure(error: &SimError) -> Failure {
    let exit = match error {
        SimError::Link(_) | SimError::Controller(_) | SimError::OutOfRange { .. } => Exit::Usage,
        _ => Exit::Failure,
    };
    Failure::new(exit, error)
}

fn text(report: &Report) -> String {
    let mut table = Table::new([
        "flow",
        "start",
        "bytes",
        "finished",
        "goodput",
        "retransmitted",
        "mean RTT",
    ]);
    for (index, flow) in report.flows.iter().enumerate() {
        table.row([
            format!("{} {}", index + 1, flow.cc),
            format!("{:.3} s", flow.start_s),
            table::bytes(flow.bytes),
            flow.finish_s
                .map_or_else(|| "-".to_owned(), |finish| format!("{finish:.3} s")),
            table::rate(flow.goodput_bps),
            table::percent(flow.retransmitted_share),
            format!("{:.1} ms", flow.srtt_ms_mean),
        ]);
    }
    let queue = &report.queue;
    let used = report.utilisation.map_or_else(String::new, |share| {
        format!(", {:.1} % of the rate used", share * 100.0)
    });
    let marked = match report.ecn_marks {
        0 => String::new(),
        marks => format!(", {marks} marked"),
    };
    let paths = report.flows.iter().any(|flow| flow.paths.len() > 1);
    let paths = if paths {
        format!("\n\n{}", path_table(&report.flows))
    } else {
        String::new()
    };
    format!(
        "{}{paths}\n\nqueue: {} on average, {} at most, {} packets dropped{marked}{used}\n\
         {:.1} s simulated in {:.2} s",
        table.render(),
        table::bytes(queue.mean_bytes.round() as u64),
        table::bytes(queue.max_bytes),
        queue.dropped_packets,
        report.simulated_s,
        report.wall_s
    )
}

/// What the sender of each flow did on each path.
fn path_table(flows: &[FlowReport]) -> String {
    let mut table = Table::new(["flow", "path", "sent", "share", "copies", "last RTT"]);
    for (index, flow) in flows.iter().enumerate() {
        let all: u64 = flow.paths.iter().map(|path| path.bytes_sent).sum();
        for (number, path) in flow.paths.iter().enumerate() {
            table.row([
                format!("{} {}", index + 1, flow.cc),
                format!("{}", number + 1),
                table::bytes(path.bytes_sent),
                table::percent(path.bytes_sent as f64 / all.max(1) as f64),
                table::bytes(path.copies),
                format!("{:.1} ms", path.srtt_ms),
            ]);
        }
    }
    table.render()
}
