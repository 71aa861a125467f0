//! Evaluates claims to verdicts.

use super::compare::compare;
use super::reduction::take;
use super::select::{Missing, Rows};
use super::text::Form;
use super::{Outcome, Verdict};
use crate::scenario::{Claim, Experiment, Test, Verifiable};
use crate::store::Table;

/// Evaluates every claim of an experiment, in its order.
///
/// The value of a case is the mean of its repeats. Comparisons are made of these means, their
/// confidence intervals of the differences within repeats, which have the same seed on both sides.
/// Combinations that the experiment excludes are not points; if a run of any other is missing there
/// is no verdict. A claim fails if a run exists but has no value, such as the convergence time
/// without convergence, and if it divides by zero.
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
        band: String::new(),
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
    let mut missing = Missing::default();
    let mut compared = Vec::new();
    let mut undefined = Vec::new();
    for point in points {
        if let Some(values) = rows.values(test, &point, &mut missing) {
            match compare(&test.compare, &values) {
                Some(result) => compared.push((point, result)),
                None => undefined.push(point.place()),
            }
        }
    }
    if missing.absent > 0 {
        return no_data(format!(
            "{} of {} runs are missing",
            missing.absent, missing.needed
        ));
    }
    if missing.empty > 0 {
        let detail = nothing_to_measure(&missing);
        return without(Outcome::Fail, "nothing", detail);
    }
    if let Some(first) = undefined.first() {
        let detail = divided_by_zero(first, undefined.len());
        return without(Outcome::Fail, "undefined", detail);
    }
    let taken = take(test, &compared);
    let form = Form::of_result(test, &taken.unit);
    Verdict {
        here: taken.value.map_or_else(
            || "never".to_owned(),
            |value| form.measured(value, taken.margin),
        ),
        value: taken.value,
        margin: taken.margin,
        band: band(test, &taken.unit),
        outcome: if taken.passes {
            Outcome::Pass
        } else {
            Outcome::Fail
        },
        detail: taken.detail,
        ..blank
    }
}

fn nothing_to_measure(missing: &Missing) -> String {
    let more = if missing.empty > missing.examples.len() {
        ", ..."
    } else {
        ""
    };
    format!(
        "nothing to measure in {} of {} runs: {}{more}",
        missing.empty,
        missing.needed,
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
