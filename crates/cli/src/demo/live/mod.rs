//! `demo live`: one live stream, sent at the same time over one lossy link per recovery policy, and
//! the playback quality of each viewer.
//!
//! ```text
//! Plan --connect--> Variant (server, relay, client) for each recovery
//! Variant --play--> serve: frames in real time --> lossy link --> watch --> Viewer (player)
//! Row, Sample: the state of a variant at a time --> live table, page, JSON
//! ```
//!
//! Everything but the link is real: UDP sockets, handshakes, every byte checked on arrival. All
//! variants get the same frames at the same times, over links of the same parameters and seed.

mod client;
pub mod page;
pub mod plan;
pub mod recoveries;
pub mod row;
pub mod schedule;
mod server;
pub mod summary;
pub mod time_series;
mod variant;
pub mod viewer;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep_until};

use self::plan::{LiveArgs, Plan};
use self::row::{LiveRow, verdict};
use self::time_series::Sample;
use self::variant::{Credentials, Variant};
use super::page_file;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::progress::{Board, Progress};
use crate::runtime::{interrupted, stop_requested};
use crate::table;

/// Interval of samples.
const SAMPLE: Duration = Duration::from_millis(100);

/// Samples between redraws of the live table, and between lines without a terminal.
const REDRAW: usize = 5;
const LINE: usize = 50;

/// How much longer than the stream a showing may take. On a link that can't carry the video it
/// would never end.
const GRACE: Duration = Duration::from_secs(5);

/// A variant and its time series.
struct Shown {
    variant: Arc<Variant>,
    samples: Vec<Sample>,
}

/// How a showing ended.
enum DemoEnd {
    /// Completely.
    Complete,
    /// By its time limit.
    Late,
    /// By the user.
    Stopped,
}

pub(crate) async fn run(args: LiveArgs) -> Result<(), Failure> {
    let start = Instant::now();
    let plan = Arc::new(Plan::new(args)?);
    if !plan.json {
        announce(&plan)?;
    }
    let mut stop = std::pin::pin!(stop_requested());
    let mut shown = tokio::select! {
        connected = connect_all(&plan) => connected?,
        stopped = &mut stop => return stopped.and(Err(interrupted())),
    };
    let end = show(&plan, &mut shown, stop).await?;
    let rows: Vec<LiveRow> = shown
        .iter()
        .map(|one| LiveRow::of(&one.variant, &plan))
        .collect();
    let printed = print_results(&plan, &rows, &shown, &end, start);
    close_all(shown).await;
    printed?;
    verdict(&rows)?;
    match end {
        DemoEnd::Stopped => Err(Failure::reported(Exit::Interrupted)),
        DemoEnd::Complete | DemoEnd::Late => Ok(()),
    }
}

fn announce(plan: &Plan) -> Result<(), Failure> {
    output::line(&format!(
        "The same {} s of live video ({}, {}) go to {} viewers at the same time, each over a network of\n\
         its own: {}.\nOnly the repair of losses differs:",
        plan.length.as_secs(),
        plan.schedule.source(),
        table::rate(plan.schedule.mean_rate().as_bps() as f64),
        plan.recoveries.len(),
        plan.network,
    ))?;
    let width = plan.recoveries.iter().map(String::len).max().unwrap_or(0);
    for recovery in &plan.recoveries {
        let described = summary::described(recovery);
        output::line(&format!("  {recovery:width$}  {described}"))?;
    }
    Ok(())
}

/// Connects all variants, in the order of the plan.
async fn connect_all(plan: &Arc<Plan>) -> Result<Vec<Shown>, Failure> {
    let credentials = Arc::new(Credentials::generate()?);
    let mut connecting = JoinSet::new();
    for (place, recovery) in plan.recoveries.iter().enumerate() {
        let connected =
            Variant::connect(Arc::clone(plan), Arc::clone(&credentials), recovery.clone());
        connecting.spawn(async move { (place, connected.await) });
    }
    let mut connected = Vec::new();
    while let Some(done) = connecting.join_next().await {
        let (place, variant) = done.map_err(|error| Failure::new(Exit::Failure, error))?;
        connected.push((place, Arc::new(variant?)));
    }
    connected.sort_by_key(|(place, _)| *place);
    let shown = connected.into_iter().map(|(_, variant)| Shown {
        variant,
        samples: Vec::new(),
    });
    Ok(shown.collect())
}

/// Runs the showing to its end.
async fn show(
    plan: &Arc<Plan>,
    shown: &mut [Shown],
    mut stop: impl Future<Output = Result<(), Failure>> + Unpin,
) -> Result<DemoEnd, Failure> {
    let progress = Progress::new(!plan.json);
    let board = progress.board();
    let mut playing = JoinSet::new();
    for one in &*shown {
        let (variant, plan) = (Arc::clone(&one.variant), Arc::clone(plan));
        playing.spawn(async move { variant.play(&plan).await });
    }
    let mut ticks = interval(SAMPLE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let late = tokio::time::Instant::now() + plan.length + GRACE;
    let mut tick = 0_usize;
    loop {
        tokio::select! {
            _ = ticks.tick() => {
                for one in &mut *shown {
                    one.samples.push(Sample::of(&one.variant));
                }
                tick += 1;
                report(plan, shown, &progress, &board, tick);
            }
            done = playing.join_next() => match done {
                Some(done) => done.map_err(|error| Failure::new(Exit::Failure, error))?,
                None => return Ok(DemoEnd::Complete),
            },
            () = sleep_until(late) => return Ok(DemoEnd::Late),
            stopped = &mut stop => {
                stopped?;
                return Ok(DemoEnd::Stopped);
            }
        }
    }
}

/// Shows the progress of the showing when due.
fn report(plan: &Plan, shown: &[Shown], progress: &Progress, board: &Board, tick: usize) {
    let rows = || shown.iter().map(|one| LiveRow::of(&one.variant, plan));
    if plan.json {
    } else if board.is_visible() {
        if tick.is_multiple_of(REDRAW) {
            let rows: Vec<LiveRow> = rows().collect();
            let seconds = tick as f64 * SAMPLE.as_secs_f64();
            let title = format!("{seconds:.0} of {} s", plan.length.as_secs());
            board.show(format!("{title}\n{}", summary::table(&rows)));
        }
    } else if tick.is_multiple_of(LINE) {
        for row in rows() {
            progress.note(&summary::line(&row));
        }
    }
}

/// Reports the results: table or JSON, and the page.
fn print_results(
    plan: &Plan,
    rows: &[LiveRow],
    shown: &[Shown],
    end: &DemoEnd,
    start: Instant,
) -> Result<(), Failure> {
    if plan.json {
        for row in rows {
            output::json(row)?;
        }
    } else {
        output::line(&format!("\n{}\n", summary::table(rows)))?;
        for conclusion in conclusions(rows) {
            output::line(&conclusion)?;
        }
        output::line(&format!("\n{}\n", summary::MEANING))?;
        match end {
            DemoEnd::Complete => {}
            // After a late start the player may have video left.
            DemoEnd::Late if rows.iter().all(|row| row.complete) => {
                output::line(
                    "the time limit was reached before all of it was shown; everything had arrived",
                )?;
            }
            DemoEnd::Late => {
                output::line(
                    "the time limit was reached before everything arrived: the transport did not keep up with the video",
                )?;
            }
            DemoEnd::Stopped => output::line("stopped early")?,
        }
    }
    if let Some(path) = &plan.page {
        let samples: Vec<_> = shown
            .iter()
            .map(|one| page::Course::of(one, plan))
            .collect();
        let html = page::render(plan, rows, &samples);
        page_file::write(path, &html, plan.json)?;
    }
    if !plan.json {
        output::line(&format!("{} in all", table::time(start.elapsed())))?;
    }
    Ok(())
}

/// Comparison of each recovery with the plain one, one sentence per line.
fn conclusions(rows: &[LiveRow]) -> Vec<String> {
    let Some((plain, others)) = rows.split_first() else {
        return Vec::new();
    };
    others
        .iter()
        .map(|other| summary::conclusion(plain, other).join("\n  "))
        .collect()
}

async fn close_all(shown: Vec<Shown>) {
    let mut closing = JoinSet::new();
    for one in shown {
        closing.spawn(async move { one.variant.close().await });
    }
    closing.join_all().await;
}
