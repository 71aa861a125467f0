//! Evaluates claims to verdicts.

use super::compare::compare;
use super::reduction::take;
use super::select::{Needed, Rows};
use super::text::Form;
use super::{Outcome, Verdict};
use crate::scenario::{Claim, Compare, Experiment, Test, Verifiable};
use crate::store::Table;
use crate::world::is_time_of_an_event;

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
        Verifiable::Test(test) => tested(test, rows, blank),
    }
}

fn tested(test: &Test, rows: &Rows<'_>, blank: Verdict) -> Verdict {
    let without = |outcome: Outcome, here: &str, detail: String| Verdict {
        outcome,
        here: here.to_owned(),
        band: band(test, ""),
        detail,
        ..blank.clone()
    };
    let no_data = |detail| without(Outcome::NoData, "", detail);
    let points = rows.points(test);
    if points.is_empty() {
        return no_data("its cases are no part of this run".to_owned());
    }
    let mut needed = Needed::default();
    let mut compared = Vec::new();
    let mut undefined = Vec::new();
    let mut unmeasured = Vec::new();
    for point in points {
        let values = rows.values(test, &point, &mut needed);
        if values.repeats.is_empty() {
            unmeasured.push(point.place());
        } else if let Some(result) = compare(&test.compare, &values) {
            compared.push((point, result));
        } else {
            undefined.push(point.place());
        }
    }
    let runs = runs(test);
    if needed.absent > 0 {
        return no_data(format!(
            "{} of {} {runs} are missing",
            needed.absent, needed.total
        ));
    }
    if needed.empty > 0 && measures(test).any(is_time_of_an_event) {
        let detail = nothing_to_measure(&needed, runs);
        return without(Outcome::Fail, "never", detail);
    }
    if !unmeasured.is_empty() {
        let detail = nothing_to_measure(&needed, runs);
        return without(Outcome::Open, "nothing", detail);
    }
    if let Some(first) = undefined.first() {
        let detail = divided_by_zero(first, undefined.len());
        return without(Outcome::Fail, "undefined", detail);
    }
    let taken = take(test, &compared);
    let form = Form::of_result(test, &taken.unit);
    let used = needed.total - needed.empty;
    let detail = if needed.empty > 0 {
        let all = needed.total;
        format!(
            "{}; {used} of {all} {runs} had something to measure",
            taken.detail
        )
    } else {
        taken.detail
    };
    Verdict {
        here: match (taken.value, taken.margin, taken.interval) {
            (None, _, _) => "never".to_owned(),
            (Some(value), None, Some(interval)) => form.measured_within(value, interval),
            (Some(value), margin, _) => form.measured(value, margin),
        },
        value: taken.value,
        margin: taken.margin,
        interval: taken.interval,
        runs: Some((used, needed.total)),
        band: band(test, &taken.unit),
        outcome: taken.outcome,
        detail,
        ..blank
    }
}

/// The measures of a test.
fn measures(test: &Test) -> impl Iterator<Item = &str> {
    let other = match &test.compare {
        Compare::Value => None,
        Compare::Ratio(against) | Compare::Change(against) | Compare::Difference(against) => {
            against.measure.as_deref()
        }
    };
    std::iter::once(test.measure.as_str()).chain(other)
}

/// What a test needs: runs, or pairs of them.
fn runs(test: &Test) -> &'static str {
    match test.compare {
        Compare::Value => "runs",
        Compare::Ratio(_) | Compare::Change(_) | Compare::Difference(_) => "pairs of runs",
    }
}

fn nothing_to_measure(missing: &Needed, runs: &str) -> String {
    let more = if missing.empty > missing.examples.len() {
        ", ..."
    } else {
        ""
    };
    format!(
        "nothing to measure in {} of {} {runs}: {}{more}",
        missing.empty,
        missing.total,
        missing.examples.join("; ")
    )
}

/// `first` is the position of one of `count` points, empty if there is only one.
fn divided_by_zero(first: &str, count: usize) -> String {
    let what = "divided by zero: what it is compared with is 0";
    match (first, count) {
        ("", _) => what.to_owned(),
        (place, 1) => format!("{what} at {place}"),
        (place, several) => format!("{what} at {several} points, the first {place}"),
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
