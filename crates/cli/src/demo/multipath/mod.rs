//! `demo multipath`: a download and live video while one of two networks fails: over a single path, with
//! migration, and over both networks at once. Then video on demand, see [`video`].
//!
//! ```text
//! Plan --connect--> Variant (server, two networks, client) for each strategy and job
//! Variant --run--> bytes in one stream --> Networks (fail, come back) --> Receipt (gaps, player, SHA-256)
//! MultipathRow: the state of a variant at a time --> live table, page, JSON
//! ```

pub mod content;
pub mod networks;
pub mod page;
pub mod plan;
pub mod receipt;
pub mod row;
pub mod summary;
mod variant;
pub mod video;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep_until};

use self::page::Arrivals;
use self::plan::{MultipathDemoArgs, Plan};
use self::row::{MultipathRow, verdict};
use self::variant::{Credentials, Variant, since};
use self::video::row::Watched;
use super::page_file;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::progress::{Board, Progress};
use crate::runtime::{interrupted, stop_requested};
use crate::table;

/// Interval of the live table, and of lines without a terminal.
const REDRAW: Duration = Duration::from_millis(500);
const LINE: u32 = 10;

/// From the last connection to the start of the jobs.
const LEAD: Duration = Duration::from_millis(100);

pub(crate) async fn run(args: MultipathDemoArgs) -> Result<(), Failure> {
    let begun = Instant::now();
    let plan = Arc::new(Plan::new(args)?);
    if !plan.json {
        output::line(&summary::announcement(&plan))?;
    }
    let mut stop = std::pin::pin!(stop_requested());
    let variants = tokio::select! {
        connected = connect_all(&plan) => connected?,
        stopped = &mut stop => return stopped.and(Err(interrupted())),
    };
    let start = Instant::now() + LEAD;
    let finished = play(&plan, &variants, start, &mut stop).await;
    let now = since(start);
    let rows = variants.iter();
    let rows: Vec<_> = rows
        .map(|variant| MultipathRow::of(variant, &plan, now))
        .collect();
    let arrivals = variants.iter();
    let arrivals: Vec<_> = arrivals
        .map(|variant| Arrivals::new(variant.networks.take_arrivals(), start))
        .collect();
    close_all(variants).await;
    let mut is_whole = finished?;
    let mut watched = Vec::new();
    if let Some(video) = plan.video.as_ref().filter(|_| is_whole) {
        match video::run(&plan, video, &mut stop).await? {
            Some(complete) => watched = complete,
            None => is_whole = false,
        }
    }
    let results = Results {
        rows: &rows,
        arrivals: &arrivals,
        watched: &watched,
    };
    print_results(&plan, &results, begun)?;
    if !is_whole {
        return Err(Failure::reported(Exit::Interrupted));
    }
    verdict(&rows)?;
    video::row::verdict(&watched)
}

/// What is printed and drawn.
pub struct Results<'a> {
    /// Of download and live video.
    pub rows: &'a [MultipathRow],
    /// When data arrived, in the order of `rows`.
    pub arrivals: &'a [Arrivals],
    /// Of video on demand.
    pub watched: &'a [Watched],
}

/// Connects all variants, in the order of jobs and strategies.
async fn connect_all(plan: &Arc<Plan>) -> Result<Vec<Arc<Variant>>, Failure> {
    let credentials = Arc::new(Credentials::generate()?);
    let mut connecting = JoinSet::new();
    for job in 0..plan.jobs.len() {
        for (place, strategy) in plan.strategies.iter().enumerate() {
            let (plan, credentials) = (Arc::clone(plan), Arc::clone(&credentials));
            let connected = Variant::connect(plan, credentials, *strategy, job);
            connecting.spawn(async move { ((job, place), connected.await) });
        }
    }
    let mut connected = Vec::new();
    while let Some(done) = connecting.join_next().await {
        let (place, variant) = done.map_err(|error| Failure::new(Exit::Failure, error))?;
        connected.push((place, Arc::new(variant?)));
    }
    connected.sort_by_key(|(place, _)| *place);
    Ok(connected.into_iter().map(|(_, variant)| variant).collect())
}

/// Runs all jobs to their ends, or to the time limit; false if the user stopped it.
async fn play(
    plan: &Arc<Plan>,
    variants: &[Arc<Variant>],
    start: Instant,
    mut stop: impl Future<Output = Result<(), Failure>> + Unpin,
) -> Result<bool, Failure> {
    if variants.is_empty() {
        return Ok(true);
    }
    let progress = Progress::new(!plan.json);
    let board = progress.board();
    let mut playing = JoinSet::new();
    for variant in variants {
        let (variant, plan) = (Arc::clone(variant), Arc::clone(plan));
        playing.spawn(async move { variant.run(&plan, start).await });
    }
    let mut ticks = interval(REDRAW);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut tick = 0;
    loop {
        tokio::select! {
            _ = ticks.tick() => {
                tick += 1;
                report(plan, variants, start, &progress, &board, tick);
            }
            done = playing.join_next() => match done {
                Some(done) => done.map_err(|error| Failure::new(Exit::Failure, error))?,
                None => return Ok(true),
            },
            () = sleep_until((start + plan.limit).into()) => return Ok(true),
            stopped = &mut stop => {
                stopped?;
                return Ok(false);
            }
        }
    }
}

/// Shows the progress when due.
fn report(
    plan: &Plan,
    variants: &[Arc<Variant>],
    start: Instant,
    progress: &Progress,
    board: &Board,
    tick: u32,
) {
    if plan.json {
        return;
    }
    let now = since(start);
    let rows = || {
        let rows = variants.iter();
        rows.map(|variant| MultipathRow::of(variant, plan, now))
    };
    if board.is_visible() {
        let rows: Vec<_> = rows().collect();
        let seconds = start.elapsed().as_secs_f64();
        board.show(format!("{seconds:.1} s\n{}", summary::table(&rows)));
    } else if tick.is_multiple_of(LINE) {
        for row in rows() {
            progress.note(&summary::line(&row, start.elapsed()));
        }
    }
}

/// Reports the results: table or JSON, and the page.
fn print_results(plan: &Plan, results: &Results<'_>, begun: Instant) -> Result<(), Failure> {
    let videos = results.watched.iter().map(|watched| &watched.row);
    if plan.json {
        for row in results.rows {
            output::json(row)?;
        }
        for row in videos {
            output::json(row)?;
        }
    } else {
        if !results.rows.is_empty() {
            output::line(&format!("\n{}\n", summary::table(results.rows)))?;
            output::line(&format!("{}\n", summary::MEANING))?;
        }
        if !results.watched.is_empty() {
            let rows: Vec<_> = videos.cloned().collect();
            output::line(&format!("\n{}\n", video::summary::table(&rows)))?;
            output::line(&format!("{}\n", video::summary::MEANING))?;
        }
    }
    if let Some(path) = &plan.page {
        page_file::write(path, &page::render(plan, results), plan.json)?;
    }
    if !plan.json {
        output::line(&format!("{} in all", table::time(begun.elapsed())))?;
    }
    Ok(())
}

async fn close_all(variants: Vec<Arc<Variant>>) {
    let mut closing = JoinSet::new();
    // All tasks have ended.
    for variant in variants.into_iter().filter_map(Arc::into_inner) {
        closing.spawn(variant.close());
    }
    closing.join_all().await;
}
