//! The number of a test: what its measure, comparison and reduction give.

use serde::Serialize;

use super::compare::{Compared, compare};
use super::confidence::Interval;
use super::reduction::take;
use super::select::{Needed, Point, Rows};
use super::text::Form;
use super::verdict::Outcome;
use crate::scenario::{Compare, Selected, Test};
use crate::world::is_time_of_an_event;

/// A number with its confidence interval, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The number.
    pub value: Option<f64>,
    /// Half the width of its 95 % confidence interval over repeats, if there are several and it is symmetrical.
    pub margin: Option<f64>,
    /// The confidence interval.
    pub interval: Option<Interval>,
    /// The runs, or pairs of runs with the same seed, that the number is made of, and those that were run: the others
    /// had nothing to measure.
    pub runs: Option<(usize, usize)>,
    /// The number with its interval in the format of papers, or one word for the reason; empty without data.
    pub shown: String,
    /// The judgement by the test's band.
    pub outcome: Outcome,
    /// The point that decided, or the reason why there is no number.
    pub detail: String,
    /// The unit of a position along an axis; otherwise empty.
    #[serde(skip)]
    pub(super) unit: String,
}

impl Estimate {
    /// No number, for this reason.
    fn without(outcome: Outcome, shown: &str, detail: String) -> Self {
        Self {
            value: None,
            margin: None,
            interval: None,
            runs: None,
            shown: shown.to_owned(),
            outcome,
            detail,
            unit: String::new(),
        }
    }

    /// The number times `factor`, such as 100 for a share in per cent, as text.
    pub fn shown_times(&self, factor: f64, test: &Test) -> String {
        let form = Form::of_result(test, &self.unit);
        let times = |number: f64| number * factor;
        match (self.value, self.margin, self.interval) {
            (None, _, _) => self.shown.clone(),
            (Some(value), None, Some(Interval { low, high })) => {
                let ends = [times(low), times(high)];
                let [low, high] = [ends[0].min(ends[1]), ends[0].max(ends[1])];
                form.measured_within(times(value), Interval { low, high })
            }
            (Some(value), margin, _) => {
                form.measured(times(value), margin.map(|margin| times(margin).abs()))
            }
        }
    }
}

/// The points of a test with their comparisons.
#[derive(Default)]
struct Gathered {
    needed: Needed,
    compared: Vec<(Point, Compared)>,
    /// Points whose comparison divides by zero.
    undefined: Vec<String>,
    /// Whether a point has no run with a value.
    has_unmeasured: bool,
}

impl Gathered {
    fn of(test: &Test, cases: &Selected<'_>, rows: &Rows<'_>) -> Self {
        let mut gathered = Self::default();
        for point in rows.points(test, cases) {
            let values = rows.values(test, &point, &mut gathered.needed);
            if values.repeats.is_empty() {
                gathered.has_unmeasured = true;
            } else if let Some(result) = compare(&test.compare, &values) {
                gathered.compared.push((point, result));
            } else {
                gathered.undefined.push(point.place());
            }
        }
        gathered
    }

    /// Why there is no number, if there is none.
    fn gap(&self, test: &Test) -> Option<Estimate> {
        let (needed, runs) = (&self.needed, runs(test));
        if needed.total == 0 {
            let detail = "its cases are no part of this run".to_owned();
            return Some(Estimate::without(Outcome::NoData, "", detail));
        }
        if needed.absent > 0 {
            let detail = format!("{} of {} {runs} are missing", needed.absent, needed.total);
            return Some(Estimate::without(Outcome::NoData, "", detail));
        }
        if needed.empty > 0 && measures(test).any(is_time_of_an_event) {
            let detail = nothing_to_measure(needed, runs);
            return Some(Estimate::without(Outcome::Fail, "never", detail));
        }
        if self.has_unmeasured {
            let detail = nothing_to_measure(needed, runs);
            return Some(Estimate::without(Outcome::Open, "nothing", detail));
        }
        let first = self.undefined.first()?;
        let detail = divided_by_zero(first, self.undefined.len());
        Some(Estimate::without(Outcome::Fail, "undefined", detail))
    }
}

/// The number of a test over `cases`, instead of those that it selects itself.
pub fn estimate(test: &Test, cases: &Selected<'_>, rows: &Rows<'_>) -> Estimate {
    let gathered = Gathered::of(test, cases, rows);
    if let Some(gap) = gathered.gap(test) {
        return gap;
    }
    let taken = take(test, &gathered.compared);
    let form = Form::of_result(test, &taken.unit);
    let all = gathered.needed.total;
    let used = all - gathered.needed.empty;
    let detail = if used < all {
        let runs = runs(test);
        format!(
            "{}; {used} of {all} {runs} had something to measure",
            taken.detail
        )
    } else {
        taken.detail
    };
    Estimate {
        shown: match (taken.value, taken.margin, taken.interval) {
            (None, _, _) => "never".to_owned(),
            (Some(value), None, Some(interval)) => form.measured_within(value, interval),
            (Some(value), margin, _) => form.measured(value, margin),
        },
        value: taken.value,
        margin: taken.margin,
        interval: taken.interval,
        runs: Some((used, all)),
        outcome: taken.outcome,
        detail,
        unit: taken.unit,
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
