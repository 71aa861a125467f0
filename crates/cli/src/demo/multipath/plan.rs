//! The flags of `demo multipath`, and what they describe.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;
use swiftwater::link::parse_duration;
use swiftwater_media::player::LiveConfig;
use swiftwater_media::source::SourceSpec;

use super::content::Content;
use super::networks::{Incident, NetworkName};
use super::video::VideoPlan;
use super::video::segments::Segments;
use super::video::strategy::VideoStrategy;
use crate::commands::relay::change::RelayFault;
use crate::demo::page_file::{PageArgs, default_name};
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
#[command(mut_arg("page", |page| default_name(page, DEFAULT_PAGE)))]
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

    /// Scheduler of both ends with several paths, of download and live video
    #[arg(long, value_name = "NAME", value_parser = parse_scheduler, default_value = "min-rtt")]
    pub scheduler: String,

    /// A download of 10 MB, a stream of 6 s and viewers who stay for 16 s instead of 30 MB, 16 s and 60 s
    #[arg(long)]
    pub quick: bool,

    /// Seed of the networks and of what is sent
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// The page with plots.
    #[command(flatten)]
    pub page: PageArgs,

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
    /// Video on demand over both, with the scheduler of that name
    MinRtt,
    /// Video on demand with XLINK's copies
    Xlink,
    /// Video on demand with Chorus
    Chorus,
    /// Video on demand with the project's variant of Chorus
    #[value(name = "chorus+")]
    #[serde(rename = "chorus+")]
    ChorusPlus,
}

impl Strategy {
    /// The name in tables.
    pub const fn title(self) -> &'static str {
        match self {
            Self::SinglePath => "single path",
            Self::Migration => "migration",
            Self::Multipath => "multipath",
            Self::MinRtt => "min-rtt",
            Self::Xlink => "XLINK",
            Self::Chorus => "Chorus",
            Self::ChorusPlus => "chorus+",
        }
    }

    /// Whether download and live video are run with it.
    const fn is_of_failover(self) -> bool {
        matches!(self, Self::SinglePath | Self::Migration | Self::Multipath)
    }

    /// That of video on demand.
    const fn of_video(self) -> Option<VideoStrategy> {
        Some(match self {
            Self::SinglePath => VideoStrategy::SinglePath,
            Self::MinRtt => VideoStrategy::MinRtt,
            Self::Xlink => VideoStrategy::Xlink,
            Self::Chorus => VideoStrategy::Chorus,
            Self::ChorusPlus => VideoStrategy::ChorusPlus,
            Self::Migration | Self::Multipath => return None,
        })
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
    /// Video on demand at adaptive bitrates over HTTP/3, on networks whose rates vary; after the others
    Video,
}

impl Job {
    /// The name in tables.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Download => "download",
            Self::Live => "live video",
            Self::Video => "video on demand",
        }
    }
}

/// All parameters, checked.
#[derive(Debug)]
pub struct Plan {
    /// Strategies of download and live video to compare.
    pub strategies: Vec<Strategy>,
    /// Video on demand, if that is to be run.
    pub video: Option<VideoPlan>,
    /// Download and live video, as far as they are to be run, each with what is sent.
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
        let wanted = chosen(&args.strategies);
        let strategies: Vec<_> = (wanted.iter().copied())
            .filter(|strategy| strategy.is_of_failover())
            .collect();
        let of_video: Vec<_> = wanted.iter().filter_map(|one| one.of_video()).collect();
        let mut jobs = Vec::new();
        let mut on_demand = None;
        for job in chosen(&args.jobs) {
            let content = match job {
                Job::Video if of_video.is_empty() => continue,
                Job::Video => {
                    on_demand = Some(VideoPlan {
                        strategies: of_video.clone(),
                        segments: Arc::new(Segments::generate(args.seed)?),
                        session: Duration::from_secs(quick(16, 60)),
                    });
                    continue;
                }
                Job::Download | Job::Live if strategies.is_empty() => continue,
                // Megabytes fit.
                Job::Download => Content::file(quick(10, 30) as usize * 1_000_000, args.seed),
                Job::Live => Content::video(&video, length, args.seed)?,
            };
            jobs.push((job, content));
        }
        if jobs.is_empty() && on_demand.is_none() {
            let text = "none of these strategies is for this job: download and live take single-path, migration and \
                        multipath, video takes single-path, min-rtt, xlink, chorus and chorus+";
            return Err(Failure::new(Exit::Usage, text));
        }
        let incident = Incident {
            network: args.fails,
            fault: args.fault,
            at,
            until: at + lasts,
        };
        Ok(Self {
            strategies,
            video: on_demand,
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
            page: args.page.path(args.json, DEFAULT_PAGE)?,
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
