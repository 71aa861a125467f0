//! Verdicts in reading order, and their table.

use std::fmt::Write as _;

use super::html::escape;
use super::number::short;
use crate::claim::{Outcome, Verdict};

/// The outcome as text.
pub(super) fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Fail => "FAIL",
        Outcome::NoData => "no data",
        Outcome::NotTestable => "not testable",
        Outcome::Open => "open",
        Outcome::Pass => "pass",
    }
}

/// The same for the short form of an experiment, whose verdicts are not results.
pub(super) fn smoke_word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Fail => "outside",
        Outcome::NoData | Outcome::NotTestable | Outcome::Open => word(outcome),
        Outcome::Pass => "inside",
    }
}

/// CSS class of its row.
fn class(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Fail => "fail",
        Outcome::NoData => "no-data",
        Outcome::NotTestable => "not-testable",
        Outcome::Open => "open",
        Outcome::Pass => "pass",
    }
}

/// Failed first, then open, then without data, then not testable, then passed; within these as in the file.
pub(super) fn in_order(verdicts: &[Verdict]) -> Vec<&Verdict> {
    let mut ordered: Vec<&Verdict> = verdicts.iter().collect();
    ordered.sort_by_key(|verdict| match verdict.outcome {
        Outcome::Fail => 0,
        Outcome::Open => 1,
        Outcome::NoData => 2,
        Outcome::NotTestable => 3,
        Outcome::Pass => 4,
    });
    ordered
}

/// The measured value, with its margin in the same format. Fractions that are shown as percentages
/// have margins in percentage points.
pub(super) fn here(verdict: &Verdict) -> String {
    match verdict.margin {
        Some(margin) if !verdict.here.is_empty() && !verdict.here.contains('±') => {
            if verdict.here.trim_end().ends_with('%') {
                format!("{} ± {}", verdict.here, short(margin * 100.0))
            } else {
                format!("{} ± {}", verdict.here, short(margin))
            }
        }
        _ => verdict.here.clone(),
    }
}

/// The band, with the reason why it is wider than the published number if it is.
pub(super) fn band(verdict: &Verdict) -> String {
    if verdict.lowered.is_empty() {
        verdict.band.clone()
    } else {
        format!("{} (lowered bar: {})", verdict.band, verdict.lowered)
    }
}

/// The table of a page; `quick` for the short form, whose verdicts are marked accordingly.
pub(super) fn table(verdicts: &[Verdict], quick: bool) -> String {
    if verdicts.is_empty() {
        return "<p>This experiment makes no claims.</p>\n".to_owned();
    }
    let (heading, style) = if quick {
        ("Smoke run", " class=\"smoke\"")
    } else {
        ("Verdict", "")
    };
    let mut out = format!(
        "<div class=\"scroll\"><table{style}>\n<thead><tr><th>Claim</th><th>Statement</th><th>Paper</th>\
         <th>Here</th><th>Passes</th><th>{heading}</th><th>Detail</th><th>Note</th></tr></thead>\n\
         <tbody>\n",
    );
    for verdict in in_order(verdicts) {
        let _ = write!(
            out,
            "<tr class=\"{}\" id=\"claim-{}\">",
            class(verdict.outcome),
            escape(&verdict.id)
        );
        for cell in [
            &verdict.id,
            &verdict.says,
            &verdict.paper,
            &here(verdict),
            &band(verdict),
        ] {
            let _ = write!(out, "<td>{}</td>", escape(cell));
        }
        let outcome = if quick {
            smoke_word(verdict.outcome)
        } else {
            word(verdict.outcome)
        };
        let _ = write!(out, "<td class=\"verdict\">{outcome}</td>");
        for cell in [&verdict.detail, &verdict.note] {
            let _ = write!(out, "<td>{}</td>", escape(cell));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n");
    out
}
