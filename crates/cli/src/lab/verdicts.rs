//! Verdicts as a table; failed ones come first.

use swiftwater_lab::claim::{Outcome, Verdict};

use crate::table::Table;

/// Longer statements are cut in the table; the report has them in full.
const LONGEST: usize = 60;

/// The table, and a line for each claim that failed or is open.
pub(super) fn table(verdicts: &[Verdict]) -> String {
    let mut sorted: Vec<&Verdict> = verdicts.iter().collect();
    sorted.sort_by_key(|verdict| rank(verdict.outcome));
    let mut table = Table::new(["claim", "paper", "here", "passes if", "verdict"]).left(4);
    for verdict in &sorted {
        table.row([
            format!("{} {}", verdict.id, shortened(&verdict.says)),
            or_dash(&verdict.paper),
            or_dash(&verdict.here),
            band(verdict),
            word(verdict.outcome).to_owned(),
        ]);
    }
    let mut lines = vec![table.render()];
    let undecided = sorted
        .iter()
        .filter(|verdict| matches!(verdict.outcome, Outcome::Fail | Outcome::Open));
    lines.extend(undecided.map(|verdict| explained(verdict)));
    lines.join("\n")
}

/// The claims of a short form that have data; `None` if none has. Its verdicts are not results: nothing
/// is marked as failed or explained.
pub(super) fn smoke_table(verdicts: &[Verdict]) -> Option<String> {
    let mut table = Table::new(["claim", "paper", "here", "smoke"]).left(3);
    let mut any = false;
    for verdict in verdicts {
        let word = match verdict.outcome {
            Outcome::Pass => "inside",
            Outcome::Fail => "outside",
            Outcome::Open => "open",
            Outcome::NoData | Outcome::NotTestable => continue,
        };
        any = true;
        table.row([
            format!("{} {}", verdict.id, shortened(&verdict.says)),
            or_dash(&verdict.paper),
            or_dash(&verdict.here),
            word.to_owned(),
        ]);
    }
    any.then(|| table.render())
}

fn explained(verdict: &Verdict) -> String {
    let mut line = format!("{}: passes if {}", verdict.id, verdict.band);
    if !verdict.lowered.is_empty() {
        line.push_str(", a lowered bar: ");
        line.push_str(&verdict.lowered);
    }
    for part in [&verdict.detail, &verdict.note] {
        let part = part.split_whitespace().collect::<Vec<_>>().join(" ");
        if !part.is_empty() {
            line.push_str("; ");
            line.push_str(&part);
        }
    }
    line
}

fn rank(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Fail => 0,
        Outcome::Open => 1,
        Outcome::NoData => 2,
        Outcome::NotTestable => 3,
        Outcome::Pass => 4,
    }
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Pass => "pass",
        Outcome::Fail => "FAIL",
        Outcome::Open => "open",
        Outcome::NoData => "no data",
        Outcome::NotTestable => "not testable",
    }
}

/// The band; a star marks a lowered bar, which the lines below or the report explain.
fn band(verdict: &Verdict) -> String {
    let star = if verdict.lowered.is_empty() { "" } else { "*" };
    or_dash(&format!("{}{star}", verdict.band))
}

fn or_dash(text: &str) -> String {
    if text.is_empty() { "-" } else { text }.to_owned()
}

/// The first words of a statement, on one line.
fn shortened(text: &str) -> String {
    let mut short = String::new();
    for word in text.split_whitespace() {
        if short.chars().count() + 1 + word.chars().count() > LONGEST {
            short.push_str(" ...");
            break;
        }
        if !short.is_empty() {
            short.push(' ');
        }
        short.push_str(word);
    }
    short
}
