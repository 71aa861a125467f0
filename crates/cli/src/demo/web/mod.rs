//! `demo web`: one page and the calls of its program, over HTTP/3 and over HTTP/2 on the kernel's TCP,
//! across the same emulated networks.
//!
//! ```text
//! Website (page, calls) --> visit: EmulatedLink (link) + server + browser, made anew each time --> Visit
//! Visits of a network, both protocols in turn --> Row --> table, JSON
//! ```
//!
//! Both protocols have the same server (one tower service), client, certificate, page, calls, request
//! priorities, limit of concurrent requests, link parameters and link seeds. Every visit has its own
//! namespaces, sockets and caches, so that neither the client nor the kernel has state about the
//! server. Every byte is checked on arrival.

pub mod browser;
pub mod emulated_link;
pub mod plan;
pub mod row;
mod server;
pub mod visit;
pub mod website;

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc;
use tokio::task::{JoinSet, spawn_blocking};

use self::emulated_link::{LinkKind, best_way};
use self::plan::{WebArgs, WebProtocol};
use self::row::VisitRow;
use self::visit::{Stage, Visit, visit};
use self::website::Website;
use super::presets::Preset;
use crate::demo::tcp_controller;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::progress::Progress;
use crate::runtime::{interrupted, stop_requested};
use crate::table;

/// Steps that require a single-threaded process: an ordinary user needs a user namespace to create
/// network namespaces.
pub(crate) fn prepare(args: &WebArgs) {
    #[cfg(target_os = "linux")]
    if !args.no_tun {
        // Where that is refused, network namespaces are too, and the reason is reported then.
        let _ = swiftwater::net::relay::tun::own_user_namespace();
    }
    #[cfg(not(target_os = "linux"))]
    let _ = args;
}

pub(crate) async fn run(args: WebArgs) -> Result<(), Failure> {
    let start = Instant::now();
    if let Some(wanted) = &args.tcp_cc {
        tcp_controller::check(wanted)?;
    }
    let (way, why_not) = if args.no_tun {
        (LinkKind::UdpRelay, Some("--no-tun".to_owned()))
    } else {
        let found = spawn_blocking(best_way).await;
        found.map_err(|error| Failure::new(Exit::Failure, error))?
    };
    let website = Website::generate(args.extent(), args.seed);
    let networks = args.networks();
    if !args.json {
        announce(&args, &website, networks.len(), way)?;
    }
    if let Some(why) = &why_not {
        output::note(&format!(
            "HTTP/2 is left out: TCP crosses no relay of datagrams ({why})"
        ));
    }
    let stage = Stage::new(website, args.tuning.clone(), args.tcp_cc.clone(), way)?;
    let show = Arc::new(Show {
        stage: Arc::new(stage),
        loads: args.loads(),
        seed: args.seed,
        why_not,
    });
    let mut rows = all_networks(&show, &networks, args.json).await?;
    rows.sort_by_key(|row| (row.preset, row.protocol));
    if !args.json {
        print_results(&rows, start)?;
    }
    verdict(&rows)
}

/// The protocols shown on every network.
struct Show {
    stage: Arc<Stage>,
    loads: u32,
    seed: u64,
    /// Why HTTP/2 is left out.
    why_not: Option<String>,
}

/// Runs all networks concurrently, each in a thread.
async fn all_networks(
    show: &Arc<Show>,
    networks: &[Preset],
    json: bool,
) -> Result<Vec<VisitRow>, Failure> {
    let progress = Progress::new(!json);
    let per_network = show.loads as usize * show.protocols().len();
    let bar = progress.steps("pages", (networks.len() * per_network) as u64);
    let (stepped, mut steps) = mpsc::unbounded_channel();
    let mut running = JoinSet::new();
    for &preset in networks {
        let (show, stepped) = (Arc::clone(show), stepped.clone());
        running.spawn_blocking(move || show.network(preset, &stepped));
    }
    drop(stepped);
    let mut done = 0;
    let mut rows = Vec::new();
    let mut stop = std::pin::pin!(stop_requested());
    loop {
        tokio::select! {
            Some(()) = steps.recv() => {
                done += 1;
                bar.at(done);
            }
            shown = running.join_next() => {
                let Some(shown) = shown else { return Ok(rows) };
                let shown = shown.map_err(|error| Failure::new(Exit::Failure, error))?;
                if json {
                    for row in &shown {
                        output::json(row)?;
                    }
                }
                rows.extend(shown);
            }
            // The threads end with the process, and the namespaces with them.
            stopped = &mut stop => return stopped.and(Err(interrupted())),
        }
    }
}

impl Show {
    fn protocols(&self) -> &'static [WebProtocol] {
        match self.stage.way {
            LinkKind::Tun => &WebProtocol::ALL,
            LinkKind::UdpRelay => &[WebProtocol::Http3],
        }
    }

    /// Loads the page over each protocol alternately.
    fn network(&self, preset: Preset, stepped: &mpsc::UnboundedSender<()>) -> Vec<VisitRow> {
        let protocols = self.protocols();
        let mut visits = vec![Vec::new(); protocols.len()];
        for load in 0..self.loads {
            let seed = self.seed.wrapping_add(load.into());
            for turn in 0..protocols.len() {
                let place = (turn + load as usize) % protocols.len();
                let links = preset.links(seed);
                visits[place].push(visit(&self.stage, protocols[place], links, seed));
                // The receiver is only gone if the program is ending.
                let _ = stepped.send(());
            }
        }
        let rows = WebProtocol::ALL
            .iter()
            .enumerate()
            .map(|(place, &protocol)| {
                let mut row = VisitRow::empty(preset, protocol, self.stage.way);
                match visits.get(place) {
                    Some(visits) => {
                        row.measured(visits);
                        row.page_bytes = self.stage.website.page_bytes();
                        row.controller = self.controller(protocol, visits);
                    }
                    None => row.skipped.clone_from(&self.why_not),
                }
                row
            });
        rows.collect()
    }

    /// The congestion controllers of the servers.
    fn controller(
        &self,
        protocol: WebProtocol,
        visits: &[Result<Visit, Failure>],
    ) -> Option<String> {
        if protocol == WebProtocol::Http2 {
            let mut good = visits.iter().flatten();
            return good.find_map(|visit| visit.tcp_controller.clone());
        }
        Some(self.stage.tuning.basics.controller_name())
    }
}

fn announce(
    args: &WebArgs,
    website: &Website,
    networks: usize,
    way: LinkKind,
) -> Result<(), Failure> {
    let times = match args.loads() {
        1 => "once".to_owned(),
        loads => format!("{loads} times"),
    };
    let networks = match networks {
        1 => "one network".to_owned(),
        count => format!("{count} networks at the same time"),
    };
    output::line(&format!(
        "a page of {} in {} objects and {} calls of an API, {times} over each protocol across \
         {networks} ({})",
        table::bytes(website.page_bytes()),
        website.objects.len(),
        website.calls.len(),
        way.describe(),
    ))
}

fn print_results(rows: &[VisitRow], start: Instant) -> Result<(), Failure> {
    output::line(&format!("\n{}\n", row::table(rows)))?;
    for line in row::conclusions(rows) {
        output::line(&line)?;
    }
    if let Some(hint) = row::hint(rows) {
        output::line(&hint)?;
    }
    let legend = if rows.iter().any(|row| row.skipped.is_some()) {
        "h3: Swiftwater's QUIC"
    } else {
        "h3: Swiftwater's QUIC; h2: hyper on the kernel's TCP"
    };
    output::line(&format!(
        "{legend}. Medians of all loads, calls of all loads together; {} in all",
        table::time(start.elapsed()),
    ))
}

/// Success if every load completed.
fn verdict(rows: &[VisitRow]) -> Result<(), Failure> {
    let failed = match rows.iter().map(|row| row.failed).sum() {
        1 => "1 load".to_owned(),
        failed => format!("{failed} loads"),
    };
    let first = rows.iter().find_map(|row| Some((row, row.error.as_ref()?)));
    match first {
        None => Ok(()),
        Some((row, error)) => Err(Failure::new(
            Exit::Failure,
            format_args!(
                "{failed} loads failed; the first, on {}: {error}",
                row.preset
            ),
        )),
    }
}
