//! Parses `[[flow]]`: groups of flows with their paths and settings.

use std::sync::Arc;
use std::time::Duration;

use swiftwater_congestion::{ControllerCatalogue, ControllerFactory};
use swiftwater_media::protection::SchemeTables;
use swiftwater_policies::Policies;
use swiftwater_quic::policy::PolicyFactory;
use swiftwater_units::Bandwidth;

use super::apps;
use super::error::{Fault, Read};
use super::library::LoadOptions;
use super::links::read_name;
use super::paths;
use super::reader::{LONGEST, Reader};
use super::run::RunSettings;
use super::setup::{App, FeedbackPolicies, FlowPaths, FlowSpec, LinkSpec, TransportSpec};
use super::streaming;
use super::tunnel;

const KEYS: [&str; 32] = [
    "name",
    "app",
    "cc",
    "recovery",
    "count",
    "enter",
    "exit",
    "paths",
    "scheduler",
    "coupling",
    "migration",
    "start",
    "stagger",
    "start_jitter",
    "stop",
    "access_rate",
    "extra_rtt",
    "initial_window",
    "initial_rtt",
    "ecn",
    "pacing",
    "ack_eliciting_threshold",
    "max_ack_delay",
    "loss_judge",
    "feedback",
    "viewer_feedback",
    tunnel::KEYS[0],
    tunnel::KEYS[1],
    tunnel::KEYS[2],
    tunnel::KEYS[3],
    tunnel::KEYS[4],
    tunnel::KEYS[5],
];

/// Default recovery policy: every loss is retransmitted once.
pub(super) const ARQ: &str = "arq";

/// Most members of a group, and most groups.
const MAX_MEMBERS: u64 = 10_000;
const MAX_GROUPS: usize = 256;

/// Most senders and receivers of all groups.
const MAX_HOSTS: u64 = 100_000;

/// The highest access rate, 10 Tbit/s.
const MAX_ACCESS: Bandwidth = Bandwidth::from_mbps(10_000_000);

/// Source of size distributions.
pub(super) type Sizes<'a> = &'a dyn Fn(&str) -> Result<String, Vec<String>>;

/// Context of parsing flows.
pub(super) struct World<'a> {
    pub(super) run: &'a RunSettings,
    pub(super) links: &'a [LinkSpec],
    /// Whether they are in parallel, instead of a chain.
    pub(super) is_parallel: bool,
    pub(super) sizes: Sizes<'a>,
    pub(super) options: &'a LoadOptions,
    /// Shared by all sessions of the scenario.
    pub(super) tables: &'a Arc<SchemeTables>,
}

/// Reads all groups; `rows` are the tables with the case's values substituted. A group with `count`
/// 0 does not exist in this case.
pub(super) fn read(rows: &[Reader<'_>], world: &World<'_>) -> Read<Vec<FlowSpec>> {
    if rows.len() > MAX_GROUPS {
        return Err(Fault::new(
            rows[MAX_GROUPS].line(),
            format!("{} groups of flows", rows.len()),
            format!("at most {MAX_GROUPS}"),
        ));
    }
    let mut flows: Vec<FlowSpec> = Vec::new();
    let mut names: Vec<String> = Vec::new();
    let mut hosts = 0;
    for (index, row) in rows.iter().enumerate() {
        let name = read_name(row, &format!("flow{index}"))?;
        let row = row.renamed(format!("[[flow]] `{name}`"));
        let taken = names.contains(&name) || world.links.iter().any(|link| link.name == name);
        if taken {
            return Err(row.fault("name", "another flow or link has that name"));
        }
        let flow = read_flow(&row, name, world)?;
        let receivers = match flow.app {
            App::Poisson { receivers, .. } => receivers,
            _ => flow.count,
        };
        hosts += u64::from(flow.count) + u64::from(receivers);
        if hosts > MAX_HOSTS {
            return Err(row.fault("count", format!("at most {MAX_HOSTS} hosts in all")));
        }
        names.push(flow.name.clone());
        if flow.count > 0 {
            flows.push(flow);
        }
    }
    check_sessions(rows, &flows, world)?;
    if flows.is_empty() {
        let line = rows.first().map_or(1, Reader::line);
        let expected = "at least one [[flow]] needs a `count` above 0";
        return Err(Fault::new(line, "a case has no flows", expected));
    }
    Ok(flows)
}

/// A session or a browsing user runs alone, over one link.
fn check_sessions(rows: &[Reader<'_>], flows: &[FlowSpec], world: &World<'_>) -> Read<()> {
    let mut sessions = flows
        .iter()
        .filter(|flow| matches!(flow.app, App::Session(_) | App::Web(_)));
    let Some(session) = sessions.next() else {
        return Ok(());
    };
    let is_alone = flows.len() == 1 && session.count == 1 && world.links.len() == 1;
    if is_alone && session.enter < session.exit {
        return Ok(());
    }
    let what = match session.app {
        App::Web(_) => "browsing user",
        _ => "session",
    };
    let is_session = |row: &&Reader<'_>| matches!(row.string("app"), Ok(Some("session" | "web")));
    let line = rows.iter().find(is_session).map_or(1, Reader::line);
    Err(Fault::new(
        line,
        format!(
            "a {what} in a case of {} groups of flows and {} links",
            flows.len(),
            world.links.len()
        ),
        "it runs alone: one group with `count` 1 and one [[link]] (`count = 0` leaves others out)",
    ))
}

fn read_flow(row: &Reader<'_>, name: String, world: &World<'_>) -> Read<FlowSpec> {
    let paths = paths::read(row, world)?;
    let (enter, exit) = match &paths {
        Some(paths) => (2 * paths.links[0], 2 * paths.links[0] + 1),
        None => read_ends(row, world.links.len())?,
    };
    let first_link = match &paths {
        Some(paths) => &world.links[paths.links[0]].forward,
        None if enter < exit => &world.links[enter].forward,
        None => &world.links[enter - 1].backward,
    };
    let place = apps::Place {
        bottleneck: first_link.rate.mean(),
        sizes: world.sizes,
        policies: &world.options.policies,
        tables: world.tables,
    };
    let app = apps::read(row, &KEYS, &place)?;
    let several = paths.as_ref().is_some_and(FlowPaths::are_several);
    if several && matches!(app, App::Poisson { .. }) {
        return Err(row.fault("paths", "flows with random arrivals have one path"));
    }
    let migrates = paths.as_ref().is_some_and(|paths| paths.migrates);
    if migrates && !matches!(app, App::ChunkedVideo(_) | App::ShortVideo(_)) {
        let why = "only viewers of video on demand migrate";
        return Err(row.fault("migration", why));
    }
    let tunnel = tunnel::read(row, &app, (enter, exit), world)?;
    let in_tunnel = tunnel.as_ref().is_some_and(|tunnel| tunnel.config.reports);
    let feedback = streaming::read_feedback(row, &app, in_tunnel, &world.options.feedback)?;
    let long = Duration::ZERO..=LONGEST;
    let flow = FlowSpec {
        name,
        count: row.whole("count", 0..=MAX_MEMBERS)?.unwrap_or(1) as u32,
        enter,
        exit,
        start: row.duration("start", long.clone())?.unwrap_or_default(),
        stagger: row.duration("stagger", long.clone())?.unwrap_or_default(),
        start_jitter: row
            .duration("start_jitter", long.clone())?
            .unwrap_or(Duration::from_millis(10)),
        stop: row.duration("stop", long.clone())?,
        access_rate: read_access_rate(row, world.links)?,
        extra_rtt: row.duration("extra_rtt", long)?.unwrap_or_default(),
        controller: controller(row, &app, &world.options.catalogue)?,
        controller_text: row.text("cc")?,
        recovery: recovery(row, paths.as_ref(), feedback.as_ref(), world.options)?,
        recovery_text: row.string("recovery")?.unwrap_or(ARQ).trim().to_owned(),
        feedback,
        transport: match app {
            // It has no pacing switch; its `pacing` is a rate.
            App::Session(_) => TransportSpec::default(),
            _ => read_transport(row)?,
        },
        app,
        paths,
        tunnel,
    };
    check_times(row, &flow, world.run)?;
    paths::check_coupling(row, flow.paths.as_ref(), &*flow.controller)?;
    Ok(flow)
}

/// The routers at which data enters and leaves.
fn read_ends(row: &Reader<'_>, links: usize) -> Read<(usize, usize)> {
    let routers = 0..=links as u64;
    let enter = row.whole("enter", routers.clone())?.unwrap_or(0) as usize;
    let exit = row.whole("exit", routers)?.unwrap_or(links as u64) as usize;
    if enter == exit {
        let key = if row.has("exit") { "exit" } else { "enter" };
        return Err(row.fault(key, "a flow must leave at another router than it enters"));
    }
    Ok((enter, exit))
}

fn read_access_rate(row: &Reader<'_>, links: &[LinkSpec]) -> Read<Bandwidth> {
    if let Some(rate) = row.rate("access_rate")? {
        return Ok(rate);
    }
    let rates = links
        .iter()
        .flat_map(|link| [&link.forward.rate, &link.backward.rate])
        .filter_map(swiftwater_link::Rate::mean);
    let fastest = rates.max().unwrap_or_default();
    let floor = Bandwidth::from_mbps(1_000);
    Ok(fastest.scaled(10.0).max(floor).min(MAX_ACCESS))
}

fn controller(
    row: &Reader<'_>,
    app: &App,
    catalogue: &ControllerCatalogue,
) -> Read<Arc<dyn ControllerFactory>> {
    let known = || catalogue.names().collect::<Vec<_>>().join(", ");
    let text = match (row.string("cc")?, app) {
        // A session has no congestion control, so the name has no effect.
        (None, App::Session(_)) => Some("newreno"),
        (text, _) => text,
    };
    let text = text.ok_or_else(|| {
        row.fault(
            "cc",
            format!("it is required: a congestion controller: {}", known()),
        )
    })?;
    catalogue
        .get(text)
        .map_err(|error| row.fault("cc", error.to_string()))
}

fn recovery(
    row: &Reader<'_>,
    paths: Option<&FlowPaths>,
    feedback: Option<&FeedbackPolicies>,
    options: &LoadOptions,
) -> Read<Arc<dyn PolicyFactory>> {
    let reinjector = (options.policies)
        .get(row.string("recovery")?.unwrap_or(ARQ))
        .map_err(|error| row.fault("recovery", error.to_string()))?;
    let mut policies = Policies::default().with_reinjector(reinjector);
    if let Some(paths) = paths.filter(|paths| paths.are_several()) {
        let scheduler = (options.schedulers)
            .get(&paths.scheduler_text)
            .map_err(|error| row.fault("scheduler", error.to_string()))?;
        policies = policies.with_scheduler(scheduler);
    }
    if let Some(text) = row.string("loss_judge")? {
        let judge = (options.loss_judges)
            .get(text)
            .map_err(|error| row.fault("loss_judge", error.to_string()))?;
        policies = policies.with_loss_judge(judge);
    }
    if let Some(feedback) = feedback {
        policies = policies.with_feedback(Arc::clone(&feedback.server));
    }
    Ok(Arc::new(policies))
}

fn read_transport(row: &Reader<'_>) -> Read<TransportSpec> {
    let short = Duration::from_micros(1)..=Duration::from_secs(60);
    // Below 2^14 ms (RFC 9000, section 18.2).
    let ack_delay = Duration::ZERO..=Duration::from_millis((1 << 14) - 1);
    Ok(TransportSpec {
        initial_window: row.whole("initial_window", 1..=1_000_000)?,
        initial_rtt: row.duration("initial_rtt", short)?,
        ecn: row.truth("ecn")?,
        pacing: row.truth("pacing")?,
        ack_eliciting_threshold: row.whole("ack_eliciting_threshold", 1..=1_000)?,
        max_ack_delay: row.duration("max_ack_delay", ack_delay)?,
    })
}

/// Every member must start within the run.
fn check_times(row: &Reader<'_>, flow: &FlowSpec, run: &RunSettings) -> Read<()> {
    let last = flow.start + flow.stagger * flow.count.saturating_sub(1);
    let key = if row.has("stagger") {
        "stagger"
    } else {
        "start"
    };
    if last >= run.duration {
        return Err(row.fault(
            key,
            format!(
                "the last flow would start at {last:?}, after the run of {:?}",
                run.duration
            ),
        ));
    }
    match flow.stop {
        Some(_) if matches!(flow.app, App::Transfer { .. }) => {
            Err(row.fault("stop", "a transfer ends with its last byte: leave it out"))
        }
        Some(stop) if stop <= last => {
            Err(row.fault("stop", format!("it must be after the last start, {last:?}")))
        }
        _ => Ok(()),
    }
}
