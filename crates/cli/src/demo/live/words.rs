//! Results for people: the table, a line for logs, and the conclusion.

use super::row::Row;
use crate::table::{self, Table};

/// All variants, as far as they are.
pub fn table(rows: &[Row]) -> String {
    let mut table = Table::new([
        "recovery",
        "loss",
        "recovered in",
        "p95",
        "max",
        "deteriorated",
        "freezes",
        "frozen",
        "start-up",
        "frame p95",
        "K",
        "cost",
        "goodput",
        "bytes",
    ]);
    for row in rows {
        table.row([
            row.recovery.clone(),
            percent(row.loss),
            ms(row.recovery_mean_ms),
            ms(row.recovery_p95_ms),
            ms(row.recovery_max_ms),
            percent(row.deterioration_rate),
            row.freezes.to_string(),
            ms(Some(row.frozen_ms)),
            ms(row.startup_ms),
            ms(row.frame_p95_ms),
            row.redundancy_level.to_string(),
            percent(Some(row.redundancy_cost)),
            row.goodput_bps.map_or_else(absent, table::rate),
            row.delivery().to_owned(),
        ]);
    }
    table.render()
}

/// One variant in a line, while the showing goes on.
pub fn line(row: &Row) -> String {
    format!(
        "{:4.0} s  {}: {} lost, recovered in {} (p95 {}, max {}), {}, K {}, cost {}",
        row.seconds,
        row.recovery,
        percent(row.loss),
        ms(row.recovery_mean_ms),
        ms(row.recovery_p95_ms),
        ms(row.recovery_max_ms),
        freezes(row),
        row.redundancy_level,
        percent(Some(row.redundancy_cost)),
    )
}

/// What the columns mean.
pub const LEGEND: &str = "\
recovered in: from the first retransmission of lost data to the sending of the copy that arrived, where
the first retransmission was lost too (mean, p95, max); deteriorated: lost data that needed a second loss
detection; frame p95: from capture to arrival; K: replicas per lost datum at the end; cost: bytes of
replicas per byte sent first";

/// How `other` fared against `plain`, in one sentence of numbers.
pub fn conclusion(plain: &Row, other: &Row) -> String {
    for row in [plain, other] {
        if row.error.is_some() {
            return format!(
                "{}: nothing to compare, {} failed.",
                other.recovery, row.recovery
            );
        }
    }
    let cost = percent(Some(other.redundancy_cost));
    let seen = format!("{} instead of {}", freezes(other), freezes(plain));
    let Some((before, after)) = plain.recovery_mean_ms.zip(other.recovery_mean_ms) else {
        return format!(
            "{}: too few retransmissions were lost to compare recovery; {seen}, for {cost} more data.",
            other.recovery
        );
    };
    format!(
        "{}: data whose retransmission was lost ({}; {} with {}) came back {} after it instead of {} on \
         average (p95 {} instead of {}), 95 % of frames arrived within {} instead of {}, {seen}, for \
         {cost} more data.",
        other.recovery,
        other.repeated_data,
        plain.repeated_data,
        plain.recovery,
        ms(Some(after)),
        ms(Some(before)),
        ms(other.recovery_p95_ms),
        ms(plain.recovery_p95_ms),
        ms(other.frame_p95_ms),
        ms(plain.frame_p95_ms),
    )
}

fn freezes(row: &Row) -> String {
    let frozen = ms(Some(row.frozen_ms));
    match row.freezes {
        0 => "no freeze".to_owned(),
        1 => format!("1 freeze of {frozen}"),
        count => format!("{count} freezes of {frozen} in all"),
    }
}

/// Whole milliseconds.
pub fn ms(value: Option<f64>) -> String {
    value.map_or_else(absent, |ms| format!("{ms:.0} ms"))
}

/// A share with one decimal.
pub fn percent(share: Option<f64>) -> String {
    share.map_or_else(absent, |share| format!("{:.1} %", share * 100.0))
}

fn absent() -> String {
    "-".to_owned()
}
