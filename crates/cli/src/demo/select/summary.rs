//! Results for people: the table, and what is announced.

use std::time::Duration;

use super::plan::Plan;
use super::row::SelectRow;
use crate::demo::tcp_controller;
use crate::table::{self, Table};

/// Definitions of the columns.
pub const MEANING: &str = "\
Times are from the sending of a request to the last byte of its response, without those that failed. Repeated: sent
once more by the program, because the response broke off or did not come. Probes: sent in order to learn. Switches: of
the selected protocol. QUIC: share of the responses.";

/// What is about to happen.
pub fn announcement(plan: &Plan) -> String {
    let courses = match plan.courses.len() {
        1 => "one course".to_owned(),
        count => format!("{count} courses"),
    };
    let names: Vec<_> = plan.strategies.iter().map(|one| one.title()).collect();
    format!(
        "a session of {} with {} requests on {courses}, over IP packets between network namespaces: {}",
        table::time(plan.session),
        plan.browsing.requests(),
        names.join(", ")
    )
}

/// All rows.
pub fn table(rows: &[SelectRow]) -> String {
    let mut table = Table::new([
        "course", "strategy", "requests", "failed", "repeated", "mean", "50 %", "99 %", "QUIC",
        "probes", "switches",
    ])
    .left(2);
    let mut before = None;
    for row in rows {
        let is_new = before.replace(row.course) != Some(row.course);
        table.row([
            if is_new {
                row.course.to_string()
            } else {
                String::new()
            },
            row.strategy.to_string(),
            row.requests.to_string(),
            row.failed.to_string(),
            row.repeated.to_string(),
            time(row.mean_ms),
            time(row.p50_ms),
            time(row.p99_ms),
            row.quic_share.map_or("-".to_owned(), table::percent),
            table::percent(row.probes_share),
            row.switches.to_string(),
        ]);
    }
    table.render()
}

/// Whether QUIC and TCP had different congestion controllers, and how to change that.
pub fn difference(rows: &[SelectRow]) -> Option<String> {
    let mut controllers = rows.iter().map(|row| &row.controllers);
    let known = controllers.find(|controllers| controllers.tcp.is_some())?;
    tcp_controller::difference(&known.quic, known.tcp.as_deref()?)
}

/// A time in the usual form.
pub(super) fn time(ms: Option<f64>) -> String {
    ms.and_then(|ms| Duration::try_from_secs_f64(ms / 1e3).ok())
        .map_or("-".to_owned(), table::time)
}
