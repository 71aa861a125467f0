//! Evaluates claims to verdicts.

use super::estimate::estimate;
use super::select::Rows;
use super::text::Form;
use super::verdict::{Outcome, Verdict};
use crate::scenario::{Claim, Experiment, Test, Verifiable};
use crate::store::Table;

/// Evaluates every claim of an experiment, in its order.
///
/// The value of a case is the mean of its repeats. Comparisons are made of these means, their
/// confidence intervals of the differences within repeats, which have the same seed on both sides.
/// Combinations that the experiment excludes are not points; if a run of any other is missing there
/// is no verdict. Runs with nothing to measure are left out, on both sides of a comparison; but if the measure
/// is the time of an event that did not happen, such as convergence, the claim fails. It also fails if it
/// divides by zero.
pub fn evaluate(experiment: &Experiment, table: &Table) -> Vec<Verdict> {
    let rows = Rows::new(experiment, table);
    let claims = experiment.claims.iter();
    claims.map(|claim| verdict(claim, &rows)).collect()
}

fn verdict(claim: &Claim, rows: &Rows<'_>) -> Verdict {
    let blank = Verdict {
        id: claim.id.clone(),
        says: claim.says.clone(),
        paper: claim.paper.clone(),
        here: String::new(),
        value: None,
        margin: None,
        interval: None,
        runs: None,
        band: String::new(),
        lowered: claim.lowered.clone(),
        outcome: Outcome::NotTestable,
        detail: String::new(),
        note: claim.note.clone(),
    };
    match &claim.test {
        Verifiable::No(why) => Verdict {
            detail: why.clone(),
            ..blank
        },
        Verifiable::Test(test) => {
            let cases = rows.selected(&test.select);
            let measured = estimate(test, &cases, rows);
            Verdict {
                band: band(test, &measured.unit),
                here: measured.shown,
                value: measured.value,
                margin: measured.margin,
                interval: measured.interval,
                runs: measured.runs,
                outcome: measured.outcome,
                detail: measured.detail,
                ..blank
            }
        }
    }
}

/// The pass band, as text.
fn band(test: &Test, unit: &str) -> String {
    let form = Form::of_result(test, unit);
    match (test.pass.min, test.pass.max) {
        (None, None) => "anything".to_owned(),
        (Some(min), None) => format!("at least {}", form.given(min)),
        (None, Some(max)) => format!("at most {}", form.given(max)),
        (Some(min), Some(max)) => format!("{} to {}", form.given(min), form.given(max)),
    }
}
