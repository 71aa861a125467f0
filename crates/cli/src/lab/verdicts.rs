//! Verdicts as a table; failed ones come first.

use swiftwater_lab::claim::{Outcome, Verdict};

use crate::table::Table;

/// Longer statements are cut in the table; the report has them in full.
const LONGEST: usize = 60;

/// The table, and a line for each claim that failed.
pub(super) fn table(verdicts: &[Verdict]) -> String {
    let mut sorted: Vec<&Verdict> = verdicts.iter().collect();
    sorted.sort_by_key(|verdict| rank(verdict.outcome));
    let mut table = Table::new(["claim", "paper", "here", "verdict"]).left(3);
    for verdict in &sorted {
        table.row([
            format!("{} {}", verdict.id, shortened(&verdict.says)),
            or_dash(&verdict.paper),
            or_dash(&verdict.here),
            word(verdict.outcome).to_owned(),
        ]);
    }
    let mut lines = vec![table.render()];
    let failed = sorted.iter().filter(|v| v.outcome == Outcome::Fail);
    lines.extend(failed.map(|verdict| explained(verdict)));
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
        Outcome::NoData => 1,
        Outcome::NotTestable => 2,
        Outcome::Pass => 3,
    }
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Pass => "pass",
        Outcome::Fail => "FAIL",
        Outcome::NoData => "no data",
        Outcome::NotTestable => "not testable",
    }
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
