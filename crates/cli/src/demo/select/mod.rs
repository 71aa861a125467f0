//! `demo select`: somebody browses while the network changes, with several ways to choose between TCP and QUIC.
//!
//! ```text
//! Plan --run--> Variant (network, server, session) for each course and strategy
//! Session: clicks, each with requests at once --> HttpClient --> Record of each request (arm, reason, time, SHA-256)
//! SelectRow: the records of a variant --> live table, JSON; page: every request over time
//! ```
//!
//! The network is emulated below IP, between two network namespaces per variant, so that HTTP/3 and the kernel's TCP
//! cross the same links. What is done to UDP alone, or to TCP alone, is a policer before the links. Every variant has
//! the same links, seeds, contents and times of clicks.

pub mod content;
pub mod course;
mod network;
pub mod page;
pub mod plan;
pub mod record;
pub mod row;
mod server;
mod session;
pub mod strategy;
pub mod summary;
mod variant;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{MissedTickBehavior, interval};

use self::plan::{Plan, SelectDemoArgs};
use self::row::{SelectRow, verdict};
use self::variant::{Stage, Variant};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::part_file::PartFile;
use crate::progress::{Board, Progress};
use crate::runtime::stop_requested;
use crate::table;

/// Interval of the live table.
const REDRAW: Duration = Duration::from_millis(500);

/// Steps that require a single-threaded process: an ordinary user needs a user namespace to create network
/// namespaces.
pub(crate) fn prepare() {
    network::prepare();
}

pub(crate) async fn run(args: SelectDemoArgs) -> Result<(), Failure> {
    let begun = Instant::now();
    let plan = Arc::new(Plan::new(args)?);
    let checked = spawn_blocking(network::check).await;
    checked.map_err(|error| Failure::new(Exit::Failure, error))??;
    if !plan.json {
        output::line(&summary::announcement(&plan))?;
    }
    let stage = Arc::new(Stage::new(Arc::clone(&plan))?);
    let variants: Vec<Arc<Variant>> = (plan.courses.iter())
        .flat_map(|course| {
            let strategies = plan.strategies.iter();
            strategies.map(|strategy| Arc::new(Variant::new(*course, *strategy, &plan)))
        })
        .collect();
    let mut stop = std::pin::pin!(stop_requested());
    let is_whole = browse(&stage, &variants, &mut stop).await?;
    let rows: Vec<_> = variants.iter().map(|variant| variant.row()).collect();
    print_results(&plan, &variants, &rows, begun)?;
    if !is_whole {
        return Err(Failure::reported(Exit::Interrupted));
    }
    verdict(&rows)
}

/// Runs all variants at the same time; false if the user stopped it. Their threads end with the process then, and the
/// namespaces with them.
async fn browse(
    stage: &Arc<Stage>,
    variants: &[Arc<Variant>],
    mut stop: impl Future<Output = Result<(), Failure>> + Unpin,
) -> Result<bool, Failure> {
    let plan = &stage.plan;
    let progress = Progress::new(!plan.json);
    let board = progress.board();
    let mut running = JoinSet::new();
    for variant in variants {
        let (stage, variant) = (Arc::clone(stage), Arc::clone(variant));
        running.spawn_blocking(move || variant.run(&stage));
    }
    let mut ticks = interval(REDRAW);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            _ = ticks.tick() => show(&board, variants),
            done = running.join_next() => match done {
                Some(done) => done.map_err(|error| Failure::new(Exit::Failure, error))??,
                None => return Ok(true),
            },
            stopped = &mut stop => {
                stopped?;
                return Ok(false);
            }
        }
    }
}

/// Shows the rows so far on a terminal.
fn show(board: &Board, variants: &[Arc<Variant>]) {
    if !board.is_visible() {
        return;
    }
    let rows: Vec<_> = variants.iter().map(|variant| variant.row()).collect();
    let begun: Vec<_> = rows.into_iter().filter(|row| row.requests > 0).collect();
    board.show(summary::table(&begun));
}

/// Reports the results: table or JSON, and the page.
fn print_results(
    plan: &Plan,
    variants: &[Arc<Variant>],
    rows: &[SelectRow],
    begun: Instant,
) -> Result<(), Failure> {
    if plan.json {
        for row in rows {
            output::json(row)?;
        }
    } else {
        output::line(&format!("\n{}\n", summary::table(rows)))?;
        output::line(summary::MEANING)?;
        if let Some(difference) = summary::difference(rows) {
            output::line(&difference)?;
        }
    }
    if let Some(path) = &plan.page {
        let records: Vec<_> = variants.iter().map(|variant| variant.records()).collect();
        let mut file = PartFile::create(path, true)?;
        file.write_all(page::render(plan, rows, &records).as_bytes())?;
        file.complete()?;
        if !plan.json {
            output::line(&format!("plots: {}", path.display()))?;
        }
    }
    if !plan.json {
        output::line(&format!("{} in all", table::time(begun.elapsed())))?;
    }
    Ok(())
}
