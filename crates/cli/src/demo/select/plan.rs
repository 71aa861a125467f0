//! The flags of `demo select`, and what they describe.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::content::Browsing;
use super::course::Course;
use super::strategy::Strategy;
use crate::demo::page_file::{PageArgs, default_name};
use crate::demo::tcp_controller;
use crate::demo::wanted::wanted_or_all;
use crate::exit::Failure;
use crate::transport::Tuning;

/// Default path of the page.
const DEFAULT_PAGE: &str = "swiftwater-select.html";

/// `demo select`.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("page", |page| default_name(page, DEFAULT_PAGE)))]
pub struct SelectDemoArgs {
    /// Only this course (repeat for several)
    #[arg(long = "course", value_enum, value_name = "NAME")]
    pub courses: Vec<Course>,

    /// Only this strategy (repeat for several)
    #[arg(long = "strategy", value_enum, value_name = "NAME")]
    pub strategies: Vec<Strategy>,

    /// Sessions of 9 s instead of 45 s; QUIC gives a silent connection up after 3 s, not 10 s
    #[arg(long)]
    pub quick: bool,

    /// Seed of the networks, of what is requested and when, and of select+
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Congestion controller of the kernel's TCP, such as cubic or bbr [default: the kernel's]
    #[arg(long, value_name = "NAME")]
    pub tcp_cc: Option<String>,

    /// The page with plots.
    #[command(flatten)]
    pub page: PageArgs,

    /// Transport settings.
    #[command(flatten)]
    pub tuning: Tuning,

    /// Print one JSON object per course and strategy
    #[arg(long)]
    pub json: bool,
}

/// All parameters, checked.
#[derive(Debug)]
pub struct Plan {
    /// What happens to the network.
    pub courses: Vec<Course>,
    /// How protocols are chosen.
    pub strategies: Vec<Strategy>,
    /// What is requested, and when.
    pub browsing: Browsing,
    /// Length of a session.
    pub session: Duration,
    /// How much later a response may come.
    pub grace: Duration,
    /// How long a QUIC connection may be silent.
    pub idle: Duration,
    /// Seed of the networks and of `select+`.
    pub seed: u64,
    /// Congestion controller of the kernel's TCP; `None` for the kernel's default.
    pub tcp_controller: Option<String>,
    /// Transport settings of both ends.
    pub tuning: Tuning,
    /// Path of the page; `None` for no page.
    pub page: Option<PathBuf>,
    /// True if results are printed as JSON.
    pub json: bool,
}

impl Plan {
    /// Checks the flags and makes what is requested.
    pub fn new(args: SelectDemoArgs) -> Result<Self, Failure> {
        let seconds = |quick, usual| Duration::from_secs(if args.quick { quick } else { usual });
        let session = seconds(9, 45);
        if let Some(wanted) = &args.tcp_cc {
            tcp_controller::check(wanted)?;
        }
        Ok(Self {
            courses: wanted_or_all(&args.courses),
            strategies: wanted_or_all(&args.strategies),
            browsing: Browsing::generate(session, args.seed),
            session,
            grace: seconds(12, 20),
            idle: seconds(3, 10),
            seed: args.seed,
            tcp_controller: args.tcp_cc,
            tuning: args.tuning,
            page: args.page.path(args.json, DEFAULT_PAGE)?,
            json: args.json,
        })
    }
}
