//! Human-readable results: tables, a log line, and the conclusion.

use super::row::LiveRow;
use crate::table::{self, Table};

/// Topic of a table line, in the order of output: the viewer's results first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Group {
    /// Playback quality of the viewer.
    Viewer,
    /// Losses of the network, and recovery.
    Repair,
    /// Overhead.
    Cost,
}

impl Group {
    /// All, in the order of output.
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Repair, Self::Cost];

    /// The heading of its lines.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Viewer => "What the viewer got",
            Self::Repair => "Losses and their repair",
            Self::Cost => "What it cost",
        }
    }
}

/// A line of a table: a value of each variant, and its format.
#[derive(Clone, Copy)]
pub struct SummaryLine {
    /// What it is about.
    pub group: Group,
    /// Label.
    pub name: &'static str,
    /// The value for a variant.
    pub cell: fn(&LiveRow) -> String,
    /// Whether it is among the few that terminals show.
    pub brief: bool,
}

/// The main results: frozen time and frame delay.
pub const HEADLINES: [SummaryLine; 2] = [
    brief(Group::Viewer, "picture frozen, in all", |row| {
        shown(row, span(row.frozen_ms))
    }),
    brief(Group::Viewer, "frame delay, 95 % of frames within", |row| {
        ms(row.frame_p95_ms)
    }),
];

/// All lines, in order.
pub const LINES: [SummaryLine; 23] = [
    HEADLINES[0],
    HEADLINES[1],
    brief(Group::Viewer, "freezes", |row| {
        shown(row, row.freezes.to_string())
    }),
    brief(Group::Viewer, "longest freeze", |row| {
        shown(row, span(row.longest_freeze_ms))
    }),
    long(Group::Viewer, "freezes per 100 s", |row| {
        shown(row, format!("{:.1}", row.freezes_per_100_s))
    }),
    brief(Group::Viewer, "frame delay, mean", |row| {
        ms(row.frame_mean_ms)
    }),
    long(Group::Viewer, "frame delay, longest", |row| {
        ms(row.frame_max_ms)
    }),
    long(Group::Viewer, "picture behind the camera, mean", |row| {
        ms(row.latency_ms)
    }),
    brief(Group::Viewer, "start-up", |row| ms(row.startup_ms)),
    brief(Group::Viewer, "frames delivered", |row| {
        if row.complete {
            format!("{} ({})", row.frames_received, row.delivery())
        } else {
            let (came, of) = (row.frames_received, row.frames);
            format!("{came} of {of} ({})", row.delivery())
        }
    }),
    brief(Group::Repair, "packets lost", |row| percent(row.loss)),
    long(Group::Repair, "packets that the link dropped", |row| {
        percent(row.link_loss)
    }),
    long(
        Group::Repair,
        "data lost / their retransmission too",
        |row| format!("{} / {}", row.lost_data, row.repeated_data),
    ),
    long(
        Group::Repair,
        "time until a loss is detected, mean",
        |row| ms(row.detection_ms),
    ),
    brief(Group::Repair, "recovery latency, mean", |row| {
        ms(row.recovery_mean_ms)
    }),
    brief(Group::Repair, "recovery latency, p95", |row| {
        ms(row.recovery_p95_ms)
    }),
    long(Group::Repair, "recovery latency, longest", |row| {
        ms(row.recovery_max_ms)
    }),
    brief(Group::Repair, "losses detected twice", |row| {
        percent(row.deterioration_rate)
    }),
    brief(Group::Repair, "copies per loss at the end (K)", |row| {
        row.redundancy_level.to_string()
    }),
    brief(Group::Cost, "data sent as copies", |row| {
        percent(Some(row.redundancy_cost))
    }),
    long(Group::Cost, "data sent as retransmissions", |row| {
        percent(Some(row.retransmission_cost))
    }),
    long(Group::Cost, "copies sent / first to arrive", |row| {
        format!("{} / {}", row.replicas, row.replicas_useful)
    }),
    long(Group::Cost, "goodput", |row| {
        row.goodput_bps.map_or_else(absent, table::rate)
    }),
];

const fn brief(group: Group, name: &'static str, cell: fn(&LiveRow) -> String) -> SummaryLine {
    SummaryLine {
        group,
        name,
        cell,
        brief: true,
    }
}

const fn long(group: Group, name: &'static str, cell: fn(&LiveRow) -> String) -> SummaryLine {
    SummaryLine {
        brief: false,
        ..brief(group, name, cell)
    }
}

/// Definitions of the lines.
pub const MEANING: &str = "\
Frame delay: from a frame's capture until all of it, and all before it, has arrived. Start-up: from
the viewer's request to the first picture. Recovery latency: from the retransmission of lost data
to the sending of the copy that arrived, for data whose retransmission was lost too. Losses detected
twice: data that had to wait for a second loss detection. Costs: in bytes, relative to the data sent
for the first time.";

/// Plain retransmission's name on the command line.
const PLAIN: &str = "arq";

/// The title of a recovery's column.
pub fn title(recovery: &str) -> String {
    match recovery {
        PLAIN => "arq (plain)".to_owned(),
        other => other.to_owned(),
    }
}

/// A short description of a recovery.
pub fn described(recovery: &str) -> &'static str {
    match recovery.split(':').next().unwrap_or_default() {
        PLAIN | "plain" | "single-path" => {
            "plain retransmission (ARQ, automatic repeat request): lost data is sent again once the loss \
             is detected"
        }
        "autorec+" => {
            "AutoRec+, Swiftwater's variant of AutoRec: copies of lost data, timed by how bursty the \
             losses are"
        }
        "art" => "ART (ICNP 2023): copies of lost data at random points of one round trip",
        _ => {
            "AutoRec (arXiv 2511.22046): copies of lost data before another loss can be detected, as \
             many as the measured loss asks for"
        }
    }
}

/// All variants, one column each, as far as available.
pub fn table(rows: &[LiveRow]) -> String {
    let titles = rows.iter().map(|row| title(&row.recovery));
    let mut table = Table::of(std::iter::once(String::new()).chain(titles));
    for group in Group::ALL {
        table.cells([group.title().to_owned()]);
        for line in LINES
            .iter()
            .filter(|line| line.brief && line.group == group)
        {
            let cells = rows.iter().map(line.cell);
            table.cells(std::iter::once(format!("  {}", line.name)).chain(cells));
        }
    }
    table.render()
}

/// One variant in a line, during the showing.
pub fn line(row: &LiveRow) -> String {
    format!(
        "{:4.0} s  {}: {}, 95 % of frames within {}; {} of packets lost, {} more data for copies",
        row.seconds,
        row.recovery,
        freezes(row),
        ms(row.frame_p95_ms),
        percent(row.loss),
        percent(Some(row.redundancy_cost)),
    )
}

/// Comparison of `other` with `plain`, one sentence each: playback quality, cause, overhead.
pub fn conclusion(plain: &LiveRow, other: &LiveRow) -> Vec<String> {
    for row in [plain, other] {
        if row.error.is_some() {
            return vec![format!(
                "{}: nothing to compare, {} failed.",
                other.recovery, row.recovery
            )];
        }
    }
    let name = &other.recovery;
    let cost = percent(Some(other.redundancy_cost));
    let seen = format!("{}; {}", watched(plain, other), arrived(plain, other));
    let repaired = match plain.recovery_mean_ms.zip(other.recovery_mean_ms) {
        None => "Too few retransmissions were lost to compare their recovery.".to_owned(),
        Some((before, after)) => format!(
            "Where a retransmission was lost as well ({} times; {} with {}), a copy that arrived was sent \
             {} later on average instead of {}.",
            other.repeated_data,
            plain.repeated_data,
            plain.recovery,
            ms(Some(after)),
            ms(Some(before)),
        ),
    };
    vec![
        format!("{name}: {seen}."),
        repaired,
        format!("{cost} more data was sent for that."),
    ]
}

/// Delivery of frames. Delays are those of received frames: if some are missing, their number is
/// reported instead, because fewer frames may have smaller delays.
fn arrived(plain: &LiveRow, other: &LiveRow) -> String {
    if !(plain.complete && other.complete) {
        return format!(
            "{} of {} frames arrived in the time instead of {}",
            other.frames_received, other.frames, plain.frames_received
        );
    }
    format!(
        "95 % of frames arrived within {} instead of {}",
        ms(other.frame_p95_ms),
        ms(plain.frame_p95_ms)
    )
}

/// Playback of a viewer, compared with the plain one.
fn watched(plain: &LiveRow, other: &LiveRow) -> String {
    let (before, after) = (freezes(plain), freezes(other));
    if before == after {
        format!("{after} with either")
    } else {
        format!("{after} instead of {before}")
    }
}

fn freezes(row: &LiveRow) -> String {
    let frozen = span(row.frozen_ms);
    match row.freezes {
        _ if row.startup_ms.is_none() => "no picture".to_owned(),
        0 => "no freeze".to_owned(),
        1 => format!("1 freeze of {frozen}"),
        count => format!("{count} freezes of {frozen} in all"),
    }
}

/// `text`, if playback started.
fn shown(row: &LiveRow, text: String) -> String {
    row.startup_ms.map_or_else(absent, |_| text)
}

/// A time in milliseconds, or in seconds from ten of them on.
fn span(milliseconds: f64) -> String {
    if milliseconds < 10_000.0 {
        ms(Some(milliseconds))
    } else {
        format!("{:.1} s", milliseconds / 1e3)
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
