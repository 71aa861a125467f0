//! The flags of `demo multipath`, and what they describe.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;
use swiftwater::link::parse_duration;
use swiftwater_media::player::LiveConfig;
use swiftwater_media::source::SourceSpec;

use super::content::Content;
use super::networks::{Incident, NetworkName};
use crate::commands::relay::change::RelayFault;
use crate::demo::page_file;
use crate::exit::{Exit, Failure};
use crate::multipath::parse_scheduler;
use crate::transport::Tuning;

/// Default path of the page.
const DEFAULT_PAGE: &str = "swiftwater-multipath.html";

/// The live stream: 2 Mbit/s, 30 frames a second.
const VIDEO: &str = "vbr:2mbit,fps=30,gop=60,key=5,sigma=0.3";

/// Playback time that the player buffers.
const BUFFER: Duration = Duration::from_millis(200);

/// How much longer than the live stream everything may take.
const GRACE: Duration = Duration::from_secs(12);

/// `demo multipath`.
#[derive(Args, Clone, Debug)]
pub struct MultipathDemoArgs {
    /// Only this strategy (repeat for several)
    #[arg(long = "strategy", value_enum, value_name = "NAME")]
    pub strategies: Vec<Strategy>,

    /// Only this job (repeat for several)
    #[arg(long = "job", value_enum, value_name = "NAME")]
    pub jobs: Vec<Job>,

    /// The network that fails
    #[arg(long, value_enum, value_name = "NAME", default_value = "wifi")]
    pub fails: NetworkName,

    /// What happens to it: cut, cut-up (towards the server), cut-down, loss:50%, delay:10 (ten times the
    /// propagation delay). Before a cut Wi-Fi fades out for a second
    #[arg(long, value_name = "WHAT", default_value = "cut")]
    pub fault: RelayFault,

    /// When it fails, after the start of the jobs [default: 5s, with --quick 2s]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub at: Option<Duration>,

    /// How long the fault lasts [default: 6s, with --quick 2500ms]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    pub lasts: Option<Duration>,

    /// Scheduler of both ends with several paths
    #[arg(long, value_name = "NAME", value_parser = parse_scheduler, default_value = "min-rtt")]
    pub scheduler: String,

    /// A download of 10 MB and a stream of 6 s instead of 30 MB and 16 s
    #[arg(long)]
    pub quick: bool,

    /// Seed of the networks and of what is sent
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Where to write the page with plots; an older one is replaced [default: swiftwater-multipath.html,
    /// none with --json]
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,

    /// Write no page
    #[arg(long, conflicts_with = "page")]
    pub no_page: bool,

    /// Transport settings.
    #[command(flatten)]
    pub tuning: Tuning,

    /// Print one JSON object per strategy and job
    #[arg(long)]
    pub json: bool,
}

/// How a client with two networks uses them.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Wi-Fi only
    SinglePath,
    /// Wi-Fi until nothing new arrives for 4 probe timeouts, 500 ms at least; then the connection migrates
    Migration,
    /// Both at once (RFC 10069)
    Multipath,
}

impl Strategy {
    /// The name in tables.
    pub const fn title(self) -> &'static str {
        match self {
            Self::SinglePath => "single path",
            Self::Migration => "migration",
            Self::Multipath => "multipath",
        }
    }
}

/// What is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Job {
    /// A file, as fast as possible
    Download,
    /// Live video, frame by frame in real time
    Live,
}

impl Job {
    /// The name in tables.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Download => "download",
            Self::Live => "live video",
        }
    }
}

/// All parameters, checked.
#[derive(Debug)]
pub struct Plan {
    /// Strategies to compare.
    pub strategies: Vec<Strategy>,
    /// The jobs, each with what is sent.
    pub jobs: Vec<(Job, Content)>,
    /// What happens to which network.
    pub incident: Incident,
    /// Scheduler with several paths.
    pub scheduler: String,
    /// Buffering rules of the player.
    pub player: LiveConfig,
    /// Time limit of a job.
    pub limit: Duration,
    /// Seed of the networks.
    pub seed: u64,
    /// Transport settings of both ends.
    pub tuning: Tuning,
    /// Path of the page; `None` for no page.
    pub page: Option<PathBuf>,
    /// True if results are printed as JSON.
    pub json: bool,
}

impl Plan {
    /// Checks the flags and makes what is sent.
    pub fn new(args: MultipathDemoArgs) -> Result<Self, Failure> {
        let quick = |quick: u64, usual: u64| if args.quick { quick } else { usual };
        let at = args.at.unwrap_or(Duration::from_millis(quick(2000, 5000)));
        let lasts = (args.lasts).unwrap_or(Duration::from_millis(quick(2500, 6000)));
        let length = Duration::from_secs(quick(6, 16));
        let video: SourceSpec = VIDEO
            .parse()
            .map_err(|error| Failure::new(Exit::Failure, error))?;
        let mut jobs = Vec::new();
        for job in chosen(&args.jobs) {
            let content = match job {
                // Megabytes fit.
                Job::Download => Content::file(quick(10, 30) as usize * 1_000_000, args.seed),
                Job::Live => Content::video(&video, length, args.seed)?,
            };
            jobs.push((job, content));
        }
        let incident = Incident {
            network: args.fails,
            fault: args.fault,
            at,
            until: at + lasts,
        };
        Ok(Self {
            strategies: chosen(&args.strategies),
            jobs,
            limit: length.max(incident.until) + GRACE,
            incident,
            scheduler: args.scheduler,
            player: LiveConfig {
                start_buffer: BUFFER,
                rebuffer: BUFFER,
            },
            seed: args.seed,
            tuning: args.tuning,
            page: page_file::choose(args.page, args.no_page || args.json, DEFAULT_PAGE)?,
            json: args.json,
        })
    }
}

/// The wanted ones, or all.
fn chosen<T: ValueEnum + Copy>(wanted: &[T]) -> Vec<T> {
    if wanted.is_empty() {
        T::value_variants().to_vec()
    } else {
        wanted.to_vec()
    }
}
