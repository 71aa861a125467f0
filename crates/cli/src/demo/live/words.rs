//! Results for people: tables, a line for logs, and the conclusion.

use super::row::Row;
use crate::table::{self, Table};

/// A line of a table: what is told of each variant, and in which words.
#[derive(Clone, Copy)]
pub struct Line {
    /// What is told.
    pub name: &'static str,
    /// What it is for a variant.
    pub cell: fn(&Row) -> String,
    /// Whether it is among the few that terminals show.
    pub brief: bool,
}

/// Everything that is told, in this order.
pub const LINES: [Line; 22] = [
    brief("packets lost", |row| percent(row.loss)),
    long("packets that the link lost", |row| percent(row.link_loss)),
    long("data lost / their first retransmission too", |row| {
        format!("{} / {}", row.lost_data, row.repeated_data)
    }),
    long("loss detection time, mean", |row| ms(row.detection_ms)),
    brief("recovery latency, mean", |row| ms(row.recovery_mean_ms)),
    brief("recovery latency, p95", |row| ms(row.recovery_p95_ms)),
    brief("recovery latency, longest", |row| ms(row.recovery_max_ms)),
    brief("deteriorated losses", |row| percent(row.deterioration_rate)),
    brief("freezes", |row| shown(row, row.freezes.to_string())),
    brief("frozen", |row| shown(row, ms(Some(row.frozen_ms)))),
    long("longest freeze", |row| {
        shown(row, ms(Some(row.longest_freeze_ms)))
    }),
    long("freezes per 100 s", |row| {
        shown(row, format!("{:.1}", row.freezes_per_100_s))
    }),
    brief("start-up", |row| ms(row.startup_ms)),
    long("picture behind the camera, mean", |row| ms(row.latency_ms)),
    long("frame delay, mean", |row| ms(row.frame_mean_ms)),
    brief("frame delay, p95", |row| ms(row.frame_p95_ms)),
    long("frame delay, longest", |row| ms(row.frame_max_ms)),
    brief("redundancy level K now", |row| {
        row.redundancy_level.to_string()
    }),
    brief("redundancy cost", |row| percent(Some(row.redundancy_cost))),
    long("replicas sent / useful", |row| {
        format!("{} / {}", row.replicas, row.replicas_useful)
    }),
    brief("goodput", |row| {
        row.goodput_bps.map_or_else(absent, table::rate)
    }),
    brief("frames delivered", |row| {
        if row.complete {
            format!("{} ({})", row.frames_received, row.delivery())
        } else {
            let (came, of) = (row.frames_received, row.frames);
            format!("{came} of {of} ({})", row.delivery())
        }
    }),
];

const fn brief(name: &'static str, cell: fn(&Row) -> String) -> Line {
    Line {
        name,
        cell,
        brief: true,
    }
}

const fn long(name: &'static str, cell: fn(&Row) -> String) -> Line {
    Line {
        brief: false,
        ..brief(name, cell)
    }
}

/// What the lines mean.
pub const MEANING: &str = "\
Recovery latency: from the first retransmission of lost data to the sending of the copy that
arrived, for data whose first retransmission was lost too. Deteriorated: losses that had to be
detected twice. Frame delay: from capture to arrival. Redundancy: K replicas per lost datum; their
bytes per byte sent first. Start-up: from the viewer's request to the first picture.";

/// All variants, a column each, as far as they are.
pub fn table(rows: &[Row]) -> String {
    let titles = rows.iter().map(|row| row.recovery.clone());
    let mut table = Table::of(std::iter::once(String::new()).chain(titles));
    for line in LINES.iter().filter(|line| line.brief) {
        let cells = rows.iter().map(line.cell);
        table.cells(std::iter::once(line.name.to_owned()).chain(cells));
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
    let seen = format!("{}{}", arrived(plain, other), watched(plain, other));
    let Some((before, after)) = plain.recovery_mean_ms.zip(other.recovery_mean_ms) else {
        return format!(
            "{}: too few retransmissions were lost to compare recovery; {seen}, for {cost} more data.",
            other.recovery
        );
    };
    format!(
        "{}: data whose retransmission was lost ({}; {} with {}) came back {} after it instead of {} on \
         average (p95 {} instead of {}), {seen}, for {cost} more data.",
        other.recovery,
        other.repeated_data,
        plain.repeated_data,
        plain.recovery,
        ms(Some(after)),
        ms(Some(before)),
        ms(other.recovery_p95_ms),
        ms(plain.recovery_p95_ms),
    )
}

/// What came of the frames. Delays are those of frames that came: where others did not, the number
/// that came tells more, since the fewer they are, the smaller the delays may be.
fn arrived(plain: &Row, other: &Row) -> String {
    if !(plain.complete && other.complete) {
        return format!(
            "{} of {} frames arrived in the time instead of {}, ",
            other.frames_received, other.frames, plain.frames_received
        );
    }
    match plain.frame_p95_ms.zip(other.frame_p95_ms) {
        Some((before, after)) => format!(
            "95 % of frames arrived within {} instead of {}, ",
            ms(Some(after)),
            ms(Some(before))
        ),
        None => String::new(),
    }
}

/// What a viewer saw, beside the plain one.
fn watched(plain: &Row, other: &Row) -> String {
    let (before, after) = (freezes(plain), freezes(other));
    if before == after {
        format!("{after} with either")
    } else {
        format!("{after} instead of {before}")
    }
}

fn freezes(row: &Row) -> String {
    let frozen = ms(Some(row.frozen_ms));
    match row.freezes {
        _ if row.startup_ms.is_none() => "no picture".to_owned(),
        0 => "no freeze".to_owned(),
        1 => format!("1 freeze of {frozen}"),
        count => format!("{count} freezes of {frozen} in all"),
    }
}

/// `text`, if there was a picture that could freeze.
fn shown(row: &Row, text: String) -> String {
    row.startup_ms.map_or_else(absent, |_| text)
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
