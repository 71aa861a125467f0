//! Results for people: the table, a line, what is announced.

use std::fmt::Write as _;
use std::time::Duration;

use super::plan::Plan;
use super::row::MultipathRow;
use crate::table::{self, Table};

/// Definitions of the columns.
pub const MEANING: &str = "\
Longest gap: the longest time between two arrivals at the application, of bytes of the file or of complete
frames of the video. Freezes: of a player that buffers 200 ms. Sent: by the server, over each path; copies:
of what was still in flight, most of it on a path that failed.";

/// What is about to happen.
pub fn announcement(plan: &Plan) -> String {
    let incident = &plan.incident;
    let mut text = format!(
        "{} fails after {} and is back after {}, during",
        incident.network,
        table::time(incident.at),
        table::time(incident.until),
    );
    for (place, (job, content)) in plan.jobs.iter().enumerate() {
        let and = if place > 0 { " and" } else { "" };
        let size = table::bytes(content.bytes().len() as u64);
        let _ = write!(text, "{and} a {} ({size})", job.title());
    }
    if !plan.jobs.is_empty() {
        let names: Vec<_> = plan.strategies.iter().map(|one| one.title()).collect();
        let _ = write!(text, ": {}", names.join(", "));
    }
    if let Some(video) = &plan.video {
        let then = if plan.jobs.is_empty() {
            ""
        } else {
            "; then during"
        };
        let names: Vec<_> = video.strategies.iter().map(|one| one.title()).collect();
        let _ = write!(
            text,
            "{then} video on demand ({}): {}",
            table::time(video.session),
            names.join(", ")
        );
    }
    text
}

/// All rows.
pub fn table(rows: &[MultipathRow]) -> String {
    let mut table = Table::new([
        "job",
        "strategy",
        "received",
        "completed",
        "longest gap",
        "freezes",
        "frozen",
        "sent",
        "copies",
        "smoothed RTT",
        "SHA-256",
    ]);
    for row in rows {
        let each = |cell: fn(&super::row::UsedPath) -> String| {
            let cells: Vec<_> = row.paths.iter().map(cell).collect();
            cells.join(" + ")
        };
        table.row([
            row.job.title().to_owned(),
            row.strategy.title().to_owned(),
            table::bytes(row.bytes),
            milliseconds(row.completion_ms),
            milliseconds(row.longest_gap_ms),
            row.freezes.map_or_else(absent, |count| count.to_string()),
            milliseconds(row.frozen_ms),
            each(|path| table::bytes(path.bytes_sent)),
            each(|path| table::bytes(path.copies)),
            each(|path| milliseconds(Some(path.srtt_ms))),
            delivery(row),
        ]);
    }
    table.render()
}

/// One row in a line, while the jobs run.
pub fn line(row: &MultipathRow, elapsed: Duration) -> String {
    let received = table::bytes(row.bytes);
    let gap = milliseconds(row.longest_gap_ms);
    format!(
        "{:4.0} s  {}: {received}, longest gap {gap}",
        elapsed.as_secs_f64(),
        row.name()
    )
}

fn delivery(row: &MultipathRow) -> String {
    let text = match (row.completion_ms, row.sha256_ok) {
        _ if row.failure.is_some() => "FAILED",
        (Some(_), true) => "ok",
        (Some(_), false) => "DIFFERS",
        (None, _) => "incomplete",
    };
    text.to_owned()
}

/// A time; a dash if there is none.
pub fn milliseconds(time: Option<f64>) -> String {
    time.and_then(|ms| Duration::try_from_secs_f64(ms / 1e3).ok())
        .map_or_else(absent, table::time)
}

fn absent() -> String {
    "-".to_owned()
}
