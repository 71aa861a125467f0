//! The flags of clients and servers with several paths.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use swiftwater::paths::{LocalEnd, PathAction, PathPlanner, PathPolicy, interface_addresses};
use swiftwater::policies::scheduler_by_name;
use swiftwater::policies::{FeedbackCatalogue, SchedulerCatalogue};
use swiftwater::units::Instant;
use swiftwater::{Builder, ClientBuilder, MultipathConfig, MultipathVersions};

use super::path_arg::PathArg;
use crate::exit::{Exit, Failure};

/// Which versions of the multipath extension this end declares.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum MultipathOffer {
    /// RFC 10069
    #[default]
    Rfc10069,
    /// draft-ietf-quic-multipath-10, for peers of its age
    Draft10,
    /// Either; that of the RFC if the peer declares both
    Both,
}

impl MultipathOffer {
    fn versions(self) -> MultipathVersions {
        match self {
            Self::Rfc10069 => MultipathVersions::Rfc10069,
            Self::Draft10 => MultipathVersions::Draft10,
            Self::Both => MultipathVersions::Both,
        }
    }

    /// The settings with these versions.
    fn config(offer: Option<Self>) -> MultipathConfig {
        MultipathConfig {
            versions: offer.unwrap_or_default().versions(),
            ..MultipathConfig::default()
        }
    }
}

/// Paths of a client.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Paths")]
pub struct PathArgs {
    /// Keep a path open from this local address or interface; repeatable, the first one is where the
    /// connection starts. backup: for data only while no other path works; cost: what a byte costs, for
    /// schedulers that regard it; to: another address of the server
    #[arg(
        long,
        global = true,
        value_name = "ADDR|IFACE[,backup][,cost=N][,to=ADDR:PORT]"
    )]
    pub path: Vec<PathArg>,

    /// Paths that this end permits at once, 1 to 8 [default: 4, or as many as there are --path]
    #[arg(
        long,
        global = true,
        value_name = "N",
        value_parser = clap::value_parser!(u8).range(1..=8)
    )]
    pub max_paths: Option<u8>,

    /// Scheduler: which path carries the next packet of this end
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        value_parser = parse_scheduler,
        help = scheduler_help("Which path carries the next packet of this end")
    )]
    pub scheduler: Option<String>,

    /// Versions of the multipath extension that this end declares [default: rfc10069]
    #[arg(long, global = true, value_enum, value_name = "VERSION")]
    pub multipath_version: Option<MultipathOffer>,
}

/// Several paths at a server.
#[derive(Args, Clone, Debug, Default)]
pub struct MultipathArgs {
    /// Let clients open several paths in a connection (RFC 10069)
    #[arg(long, help_heading = "Paths")]
    pub multipath: bool,

    /// Paths that this end permits at once, 1 to 8; implies --multipath [default: 4]
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u8).range(1..=8),
        help_heading = "Paths"
    )]
    pub max_paths: Option<u8>,

    /// Scheduler of this end; implies --multipath
    #[arg(
        long,
        value_name = "NAME",
        value_parser = parse_scheduler,
        help = scheduler_help("Which path carries the next packet of this end; implies --multipath"),
        help_heading = "Paths"
    )]
    pub scheduler: Option<String>,

    /// What players of video are told about the paths, and whether what they tell is accepted: chorus, or none;
    /// implies --multipath
    #[arg(long, value_name = "NAME", value_parser = parse_feedback, help_heading = "Paths")]
    pub feedback: Option<String>,

    /// Versions of the multipath extension that this end declares; implies --multipath [default: rfc10069]
    #[arg(long, value_enum, value_name = "VERSION", help_heading = "Paths")]
    pub multipath_version: Option<MultipathOffer>,
}

/// Checks the specification of a scheduler.
///
/// # Errors
///
/// There is none of that name, or it has no such parameter.
pub fn parse_scheduler(specification: &str) -> Result<String, swiftwater::policies::UnknownEntry> {
    scheduler_by_name(specification)?;
    Ok(specification.to_ascii_lowercase())
}

/// Checks the specification of a feedback policy.
///
/// # Errors
///
/// There is none of that name, or it has no such parameter.
pub fn parse_feedback(specification: &str) -> Result<String, swiftwater::policies::UnknownEntry> {
    FeedbackCatalogue::standard().get(specification)?;
    Ok(specification.to_ascii_lowercase())
}

fn scheduler_help(what: &str) -> String {
    let catalogue = SchedulerCatalogue::standard();
    let names: Vec<_> = catalogue.names().collect();
    format!("{what}: {} [default: min-rtt]", names.join(", "))
}

impl MultipathArgs {
    /// True if several paths are permitted.
    pub(crate) fn is_used(&self) -> bool {
        self.multipath
            || self.max_paths.is_some()
            || self.scheduler.is_some()
            || self.feedback.is_some()
            || self.multipath_version.is_some()
    }

    /// The settings, applied to a server.
    pub(crate) fn apply<Side>(&self, builder: Builder<Side>) -> Builder<Side> {
        if !self.is_used() {
            return builder;
        }
        let default = MultipathOffer::config(self.multipath_version);
        let config = MultipathConfig {
            max_paths: self.max_paths.unwrap_or(default.max_paths),
            ..default
        };
        let builder = permit(builder, config, self.scheduler.as_deref());
        match &self.feedback {
            Some(name) => builder.feedback(name),
            None => builder,
        }
    }
}

fn permit<Side>(
    builder: Builder<Side>,
    config: MultipathConfig,
    scheduler: Option<&str>,
) -> Builder<Side> {
    let builder = builder.multipath(config);
    match scheduler {
        Some(name) => builder.scheduler(name),
        None => builder,
    }
}

impl PathArgs {
    /// True if several paths were asked for.
    pub(crate) fn is_used(&self) -> bool {
        !self.path.is_empty()
            || self.max_paths.is_some()
            || self.scheduler.is_some()
            || self.multipath_version.is_some()
    }

    /// The paths to keep open.
    pub(crate) fn policy(&self) -> PathPolicy {
        let rules = self.path.iter().map(|path| path.0.clone());
        PathPolicy {
            max_paths: self.path.len().max(1),
            ..PathPolicy::new(rules)
        }
    }

    /// The settings, applied to a client of `host`, whose connections start at the first path.
    pub(crate) fn apply(
        &self,
        builder: ClientBuilder,
        host: Option<&str>,
    ) -> Result<ClientBuilder, Failure> {
        if !self.is_used() {
            return Ok(builder);
        }
        let default = MultipathOffer::config(self.multipath_version);
        let paths = u8::try_from(self.path.len()).unwrap_or(u8::MAX);
        let config = MultipathConfig {
            max_paths: self.max_paths.unwrap_or(default.max_paths.max(paths)),
            ..default
        };
        let builder = permit(builder, config, self.scheduler.as_deref());
        match self.path.first() {
            Some(first) => Ok(builder.bind(start(first, host)?)),
            None => Ok(builder),
        }
    }
}

/// Where the connection starts: the address of the first path from which `host` can be reached, if that is an
/// address.
fn start(first: &PathArg, host: Option<&str>) -> Result<SocketAddr, Failure> {
    let host: Option<IpAddr> = host.and_then(|host| host.parse().ok());
    let remotes: Vec<SocketAddr> = match (first.0.remote, host) {
        (_, Some(ip)) => vec![(ip, 443).into()],
        (Some(remote), None) => vec![remote],
        // A name: by any address of any server (RFC 5737, RFC 3849), or this host.
        (None, None) => vec![
            (Ipv4Addr::new(192, 0, 2, 1), 443).into(),
            (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1), 443).into(),
            (Ipv4Addr::LOCALHOST, 443).into(),
            (Ipv6Addr::LOCALHOST, 443).into(),
        ],
    };
    let mut rule = first.0.clone();
    rule.remote = None;
    let interfaces = interface_addresses()?;
    let mut planner = PathPlanner::new(PathPolicy::new([rule]), remotes);
    if let [PathAction::Open { local, .. }] = planner.plan(Instant::ZERO, &interfaces, &[])[..] {
        return Ok(local);
    }
    let name = match &first.0.local {
        LocalEnd::Address(ip) => ip.to_string(),
        LocalEnd::Interface(name) => name.clone(),
    };
    let text = format_args!(
        "--path {name}: there is no such address or interface here, or the server can't be reached from it"
    );
    Err(Failure::new(Exit::Usage, text))
}
