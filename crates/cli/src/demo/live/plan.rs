//! The flags of `demo live`, and the showing they describe. All flags are validated here, before
//! anything runs.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use swiftwater::Profile;
use swiftwater::link::{LossModel, Rate, parse_duration, parse_rate};
use swiftwater::units::Bandwidth;
use swiftwater_media::player::LiveConfig;
use swiftwater_media::source::{SourceKind, SourceSpec};

use super::schedule::Schedule;
use crate::demo::page_file::{PageArgs, default_name};
use crate::demo::presets::Preset;
use crate::exit::{Exit, Failure};
use crate::link_args::{Links, RelayLinkArgs};
use crate::transport::{Basics, parse_recovery, with_recoveries};

/// Default path of the page.
const DEFAULT_PAGE: &str = "swiftwater-demo.html";

/// The recovery that is always shown, first: retransmissions only.
const PLAIN: &str = "arq";

/// The default recovery to compare it with.
const OTHER: &str = "autorec+";

/// Default congestion controller, unless another or a profile is given. It reacts to delay, not to
/// random loss: a controller that treats such losses as congestion would itself cause freezes,
/// whatever the recovery.
const CONTROLLER: &str = "copa";

/// Seconds of a showing, and of a quick one.
const SECONDS: u16 = 30;
const QUICK_SECONDS: u16 = 5;

/// Most recoveries besides the plain one. Each runs in real time on the same cores.
const MAX_OTHERS: usize = 5;

/// `demo live`, and `demo` without a subcommand.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("page", |page| default_name(page, DEFAULT_PAGE)))]
pub struct LiveArgs {
    /// Recovery to compare with plain retransmission, arq (repeat for several).
    #[arg(long, value_name = "POLICY", value_parser = parse_recovery, help = recovery_help())]
    pub recovery: Vec<String>,

    /// Video to send: sample, vbr:4mbit, cbr:4mbit,fps=60, file:PATH [default: sample]
    #[arg(long, value_name = "SOURCE", conflicts_with = "video")]
    pub source: Option<SourceSpec>,

    /// Send the frames of this MP4 file instead
    #[arg(long, value_name = "FILE")]
    pub video: Option<PathBuf>,

    /// Scale the video to this mean rate: 4mbit [default: the video's own]
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    pub bitrate: Option<Bandwidth>,

    /// Length of the stream
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=45),
          default_value_t = SECONDS)]
    pub seconds: u16,

    /// Five seconds of it
    #[arg(long, conflicts_with = "seconds")]
    pub quick: bool,

    /// Playback time that the player buffers before it starts, and after a freeze
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = parse_duration)]
    pub buffer: Duration,

    /// A named network instead of --rate, --rtt and --loss
    #[arg(long, value_enum, value_name = "NAME", conflicts_with_all = ["rate", "rtt", "loss"])]
    pub preset: Option<Preset>,

    /// Rate of the link, each way: 20mbit, unlimited
    #[arg(long, value_name = "RATE", default_value = "12mbit")]
    pub rate: Rate,

    /// Round-trip time of the link
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = parse_duration)]
    pub rtt: Duration,

    /// Random loss of the link, each way: 5% (each packet independently), or in bursts: ge:10%,60%@3ms
    /// starts a burst with 10 % probability per step of 3 ms and ends it with 60 %. Without @TIME the
    /// steps are packets
    #[arg(long, value_name = "LOSS", default_value = "ge:10%,60%@3ms")]
    pub loss: LossModel,

    /// Seed of the links and of the payload
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// The page with plots.
    #[command(flatten)]
    pub page: PageArgs,

    /// Transport settings.
    #[command(flatten)]
    pub tuning: Basics,

    /// Print one JSON object per recovery
    #[arg(long)]
    pub json: bool,
}

/// Help of `--recovery`, with the accepted names.
fn recovery_help() -> String {
    let known =
        with_recoveries("Recovery to compare with plain retransmission, arq (repeat for several)");
    format!("{known} [default: {OTHER}]")
}

/// A showing: all its parameters.
#[derive(Debug)]
pub struct Plan {
    /// The frames.
    pub schedule: Schedule,
    /// The recoveries, plain ARQ first.
    pub recoveries: Vec<String>,
    /// The link of each of them.
    pub links: Links,
    /// Description of the link.
    pub network: String,
    /// Buffering rules of the player.
    pub player: LiveConfig,
    /// Length of the stream.
    pub length: Duration,
    /// Seed of links and payloads.
    pub seed: u64,
    /// Transport settings of both ends.
    pub tuning: Basics,
    /// Path of the page; `None` for no page.
    pub page: Option<PathBuf>,
    /// True if results are printed as JSON.
    pub json: bool,
}

impl Plan {
    /// Checks the flags and reads the source.
    pub fn new(args: LiveArgs) -> Result<Self, Failure> {
        let seconds = if args.quick {
            QUICK_SECONDS
        } else {
            args.seconds
        };
        let length = Duration::from_secs(seconds.into());
        let recoveries = recoveries(&args.recovery)?;
        let links = links(&args)?;
        let network = network(&args);
        let schedule = Schedule::new(&source(&args)?, length, args.seed)?;
        let page = args.page.path(args.json, DEFAULT_PAGE)?;
        let mut tuning = args.tuning;
        if tuning.profile.is_none() {
            tuning.cc.get_or_insert_with(|| CONTROLLER.to_owned());
        }
        tuning.profile.get_or_insert(Profile::Live);
        Ok(Self {
            schedule,
            recoveries,
            links,
            network,
            player: LiveConfig {
                start_buffer: args.buffer,
                rebuffer: args.buffer,
            },
            length,
            seed: args.seed,
            tuning,
            page,
            json: args.json,
        })
    }
}

fn recoveries(others: &[String]) -> Result<Vec<String>, Failure> {
    if others.len() > MAX_OTHERS {
        return Err(Failure::new(
            Exit::Usage,
            format_args!(
                "at most {MAX_OTHERS} recoveries run beside plain retransmission at the same time"
            ),
        ));
    }
    let mut all = vec![PLAIN.to_owned()];
    if others.is_empty() {
        all.push(OTHER.to_owned());
    }
    all.extend_from_slice(others);
    Ok(all)
}

fn source(args: &LiveArgs) -> Result<SourceSpec, Failure> {
    let mut spec = match (&args.video, &args.source) {
        (Some(file), _) => SourceSpec {
            kind: SourceKind::File {
                path: file.to_str().map(str::to_owned).ok_or_else(|| {
                    let name = file.display();
                    Failure::new(Exit::Usage, format_args!("{name}: the name is not UTF-8"))
                })?,
                rate: None,
            },
            length: None,
        },
        (None, Some(spec)) => spec.clone(),
        (None, None) => SourceSpec {
            kind: SourceKind::Sample { rate: None },
            length: None,
        },
    };
    let Some(bitrate) = args.bitrate else {
        return Ok(spec);
    };
    let refused = |why: &str| Failure::new(Exit::Usage, format_args!("--bitrate {why}"));
    match &mut spec.kind {
        _ if bitrate.is_zero() => Err(refused("0 leaves no video")),
        SourceKind::File { rate, .. } | SourceKind::Sample { rate } => {
            *rate = Some(bitrate);
            Ok(spec)
        }
        _ => Err(refused(
            "scales a recorded video; a generated one has its rate in --source",
        )),
    }
}

fn links(args: &LiveArgs) -> Result<Links, Failure> {
    if let Some(preset) = args.preset {
        return Ok(preset.links(args.seed));
    }
    let link = RelayLinkArgs {
        rate: Some(args.rate.clone()),
        delay: Some(args.rtt / 2),
        loss: Some(args.loss),
        ..RelayLinkArgs::default()
    };
    link.links()
}

fn network(args: &LiveArgs) -> String {
    if let Some(preset) = args.preset {
        return preset.to_string();
    }
    let loss = loss(args.loss);
    let rtt = rounded(args.rtt.as_secs_f64() * 1e3);
    format!("{}, RTT {rtt} ms, {loss} each way", args.rate)
}

/// Description of the loss of a link.
fn loss(model: LossModel) -> String {
    let mean = rounded(model.mean_loss() * 100.0);
    match model {
        LossModel::None => "no loss".to_owned(),
        LossModel::Bernoulli(_) => format!("{mean} % loss"),
        LossModel::GilbertElliott { r, .. } => {
            let packets = rounded(1.0 / r);
            format!("{mean} % loss in bursts of {packets} packets on average")
        }
        LossModel::GilbertElliottStepped { r, step, .. } => {
            let length = rounded(step.as_secs_f64() * 1e3 / r);
            format!("{mean} % loss in bursts of {length} ms on average")
        }
    }
}

/// To a hundredth, so that 0.07 is not 7.000000000000001 %.
fn rounded(value: f64) -> f64 {
    (value * 1e2).round() / 1e2
}
