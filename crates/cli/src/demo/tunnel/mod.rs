//! `demo tunnel`: objects of a far server over a lossy last mile: directly, and through a proxy near the client.
//!
//! ```text
//! Plan --connect--> Course (server, proxy, links, client) for each system
//! Course --flows--> Record (times, bytes, queue) --> TunnelRow --> live table, page, JSON
//! ```
//!
//! With a proxy, HTTP/3 runs in HTTP/3 over real sockets: the client's QUIC connection goes through a tunnel, and the
//! proxy's relay to the server stands for the far network.

mod course;
mod flows;
mod page;
pub mod plan;
pub mod row;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use self::course::{Course, Stage};
use self::flows::{Measured, Record};
use self::plan::{Plan, TunnelDemoArgs};
use self::row::{MEANING, TunnelRow, conclusions, verdict};
use super::page_file;
use super::random_numbers::RandomNumbers;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::progress::Progress;
use crate::runtime::{interrupted, stop_requested};
use crate::table;

/// Interval of the live table.
const REDRAW: Duration = Duration::from_millis(500);

pub(crate) async fn run(args: TunnelDemoArgs) -> Result<(), Failure> {
    let begun = Instant::now();
    let plan = Arc::new(Plan::new(args)?);
    if !plan.json {
        output::line(&format!(
            "{} objects of each of {} sizes: {}",
            plan.flows,
            plan.sizes.len(),
            plan.network
        ))?;
    }
    let largest = plan.sizes.last().copied().unwrap_or_default();
    let largest = usize::try_from(largest).map_err(|error| Failure::new(Exit::Usage, error))?;
    let content = RandomNumbers::new(plan.seed).bytes(largest);
    let stage = Arc::new(Stage::new(content.into())?);
    let mut stop = std::pin::pin!(stop_requested());
    let courses = tokio::select! {
        connected = connect_all(&plan, &stage) => connected?,
        stopped = &mut stop => return stopped.and(Err(interrupted())),
    };
    let records: Vec<Record> = courses.iter().map(|_| Record::new(&plan)).collect();
    let whole = play(&plan, &stage, &courses, &records, &mut stop).await;
    for course in courses.into_iter().filter_map(Arc::into_inner) {
        course.close().await;
    }
    let whole = whole?;
    let (rows, measured) = results(&plan, &records);
    report(&plan, &rows, &measured, begun)?;
    if !whole {
        return Err(Failure::reported(Exit::Interrupted));
    }
    verdict(&rows)
}

/// Connects all systems.
async fn connect_all(plan: &Arc<Plan>, stage: &Arc<Stage>) -> Result<Vec<Arc<Course>>, Failure> {
    let mut connecting = JoinSet::new();
    for &system in &plan.systems {
        let (plan, stage) = (Arc::clone(plan), Arc::clone(stage));
        connecting.spawn(async move { Course::connect(&plan, &stage, system).await });
    }
    let mut courses = Vec::new();
    while let Some(done) = connecting.join_next().await {
        let course = done.map_err(|error| Failure::new(Exit::Failure, error))?;
        courses.push(Arc::new(course?));
    }
    courses.sort_by_key(|course| course.system);
    Ok(courses)
}

/// Runs all systems at the same time; false if the user stopped it.
async fn play(
    plan: &Arc<Plan>,
    stage: &Arc<Stage>,
    courses: &[Arc<Course>],
    records: &[Record],
    mut stop: impl Future<Output = Result<(), Failure>> + Unpin,
) -> Result<bool, Failure> {
    let progress = Progress::new(!plan.json);
    let board = progress.board();
    let mut running = JoinSet::new();
    for (course, record) in courses.iter().zip(records) {
        let (plan, stage) = (Arc::clone(plan), Arc::clone(stage));
        let (course, record) = (Arc::clone(course), record.clone());
        running.spawn(async move { flows::run(&plan, &stage, &course, &record).await });
    }
    let mut ticks = interval(REDRAW);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            _ = ticks.tick(), if board.is_visible() => {
                board.show(row::table(&results(plan, records).0));
            }
            done = running.join_next() => match done {
                Some(done) => done.map_err(|error| Failure::new(Exit::Failure, error))?,
                None => return Ok(true),
            },
            stopped = &mut stop => {
                stopped?;
                running.shutdown().await;
                return Ok(false);
            }
        }
    }
}

/// The results so far, by size and then by system, and the measurements behind them.
fn results(plan: &Plan, records: &[Record]) -> (Vec<TunnelRow>, Vec<Measured>) {
    let mut rows = Vec::new();
    let mut all = Vec::new();
    for (at, &size) in plan.sizes.iter().enumerate() {
        for (&system, record) in plan.systems.iter().zip(records) {
            let measured = record.lock()[at].clone();
            rows.push(TunnelRow::new(system, size, &measured));
            all.push(measured);
        }
    }
    (rows, all)
}

/// Table or JSON, and the page.
fn report(
    plan: &Plan,
    rows: &[TunnelRow],
    measured: &[Measured],
    begun: Instant,
) -> Result<(), Failure> {
    if plan.json {
        for row in rows {
            output::json(row)?;
        }
    } else {
        output::line(&format!("\n{}\n", row::table(rows)))?;
        output::line(&format!("{MEANING}\n"))?;
        for line in conclusions(plan, rows) {
            output::line(&line)?;
        }
    }
    if let Some(path) = &plan.page {
        page_file::write(path, &page::render(plan, rows, measured), plan.json)?;
    }
    if !plan.json {
        output::line(&format!("{} in all", table::time(begun.elapsed())))?;
    }
    Ok(())
}
