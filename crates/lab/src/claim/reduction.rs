//! Reduction of the points over which a comparison is repeated, with the verdict on them.

use super::compare::{Compared, mean};
use super::confidence::{ERROR, Interval, half_width};
use super::judgement::{judge, slack};
use super::select::Point;
use super::text::Form;
use super::verdict::Outcome;
use crate::scenario::{Band, Take, Test, number_of_label};

/// The result of a test.
pub(super) struct Reduced {
    /// `None` if there is no such number, for instance if a threshold is never reached.
    pub(super) value: Option<f64>,
    /// Half the width of `interval` if it is symmetrical.
    pub(super) margin: Option<f64>,
    pub(super) interval: Option<Interval>,
    pub(super) outcome: Outcome,
    /// The point that decided.
    pub(super) detail: String,
    /// Format of the number, if it differs from that of the comparison.
    pub(super) unit: String,
}

/// Reduces the points; there must be at least one.
pub(super) fn take(test: &Test, points: &[(Point, Compared)]) -> Reduced {
    match test.take {
        Take::All => all(test.pass, points),
        Take::Min => extreme(test.pass, points, Extreme::Smallest),
        Take::Max => extreme(test.pass, points, Extreme::Largest),
        Take::Mean => average(test.pass, points),
        Take::FirstAtLeast(bound) => first(test, points, bound, |value| value >= bound),
        Take::FirstAtMost(bound) => first(test, points, bound, |value| value <= bound),
    }
}

/// Every point must pass. One fails only if its interval is outside with the error probability of all points
/// together: of many points that hold, a few are outside of their own 95 % intervals.
fn all(band: Band, points: &[(Point, Compared)]) -> Reduced {
    let outcome_at =
        |compared: &Compared, error: f64| judge(band, compared.value, compared.interval(error));
    let count = |outcome| {
        let of_points = points
            .iter()
            .map(|(_, compared)| outcome_at(compared, ERROR));
        of_points.filter(|&of_point| of_point == outcome).count()
    };
    let (passing, open) = (count(Outcome::Pass), count(Outcome::Open));
    let together = ERROR / points.len() as f64;
    let mut all = points.iter();
    let outcome = if passing == points.len() {
        Outcome::Pass
    } else if all.any(|(_, compared)| outcome_at(compared, together) == Outcome::Fail) {
        Outcome::Fail
    } else {
        Outcome::Open
    };
    let worst = first_best(points, |a, b| slack(band, a) < slack(band, b));
    let (point, compared) = &points[worst];
    let detail = if points.len() == 1 {
        alone(point, compared)
    } else {
        let (place, all) = (point.place(), points.len());
        let open = match open {
            0 => String::new(),
            open => format!(", {open} open"),
        };
        format!("worst at {place}; {passing} of {all} points pass{open}")
    };
    Reduced {
        value: Some(compared.value),
        margin: compared.margin(),
        interval: compared.interval(ERROR),
        outcome,
        detail,
        unit: String::new(),
    }
}

/// Description of a single point.
fn alone(point: &Point, compared: &Compared) -> String {
    let repeats = match compared.by_repeat.len() {
        1 => "one run".to_owned(),
        several => format!("mean of {several} repeats"),
    };
    match point.place() {
        place if place.is_empty() => repeats,
        place => format!("only {place}; {repeats}"),
    }
}

/// The smallest or the largest of several points.
#[derive(Clone, Copy)]
enum Extreme {
    Smallest,
    Largest,
}

impl Extreme {
    fn word(self) -> &'static str {
        match self {
            Self::Smallest => "smallest",
            Self::Largest => "largest",
        }
    }

    fn is_before(self, a: f64, b: f64) -> bool {
        match self {
            Self::Smallest => a < b,
            Self::Largest => a > b,
        }
    }

    /// The interval of the extreme of the points' true values.
    ///
    /// The largest measured point is biased upwards: that the largest is at least so much holds with an end that is
    /// right for all points at once (Bonferroni). That it is at most so much needs no correction: it is wrong only if the
    /// end of that one point is, which is the largest. Each end is wrong with half of the error probability.
    fn interval(self, points: &[(Point, Compared)]) -> Option<Interval> {
        let together = ERROR / points.len() as f64;
        let ends = |error: f64| -> Option<Interval> {
            let all = points.iter().map(|(_, compared)| compared.interval(error));
            let all: Vec<Interval> = all.collect::<Option<_>>()?;
            let extreme = |of: fn(&Interval) -> f64| match self {
                Self::Smallest => all.iter().map(of).fold(f64::INFINITY, f64::min),
                Self::Largest => all.iter().map(of).fold(f64::NEG_INFINITY, f64::max),
            };
            Some(Interval {
                low: extreme(|interval| interval.low),
                high: extreme(|interval| interval.high),
            })
        };
        let (own, all) = (ends(ERROR)?, ends(together)?);
        Some(match self {
            Self::Smallest => Interval {
                low: own.low,
                high: all.high,
            },
            Self::Largest => Interval {
                low: all.low,
                high: own.high,
            },
        })
    }
}

fn extreme(band: Band, points: &[(Point, Compared)], which: Extreme) -> Reduced {
    // A value that isn't a number is the worst, so that it is not hidden by others.
    let chosen = first_best(points, |a, b| {
        !b.is_nan() && (a.is_nan() || which.is_before(a, b))
    });
    let (point, compared) = &points[chosen];
    let interval = which.interval(points);
    let margin = compared.margin().filter(|_| points.len() == 1);
    let detail = match points {
        [_] => alone(point, compared),
        several => format!(
            "{} of {} points, at {}",
            which.word(),
            several.len(),
            point.place()
        ),
    };
    Reduced {
        value: Some(compared.value),
        margin,
        interval,
        outcome: judge(band, compared.value, interval),
        detail,
        unit: String::new(),
    }
}

/// The index of the first minimal point.
fn first_best(points: &[(Point, Compared)], is_before: impl Fn(f64, f64) -> bool) -> usize {
    let values = points.iter().map(|(_, compared)| compared.value);
    values
        .enumerate()
        .reduce(|best, next| {
            if is_before(next.1, best.1) {
                next
            } else {
                best
            }
        })
        .map_or(0, |(index, _)| index)
}

/// The repeats that every point has.
fn shared_repeats(points: &[(Point, Compared)]) -> Vec<u32> {
    let Some((_, first)) = points.first() else {
        return Vec::new();
    };
    let is_shared = |repeat: &u32| {
        let mut all = points.iter();
        all.all(|(_, compared)| compared.repeats.binary_search(repeat).is_ok())
    };
    first.repeats.iter().copied().filter(is_shared).collect()
}

fn average(band: Band, points: &[(Point, Compared)]) -> Reduced {
    let over_points = |of: &dyn Fn(&Compared) -> Option<f64>| {
        let values: Vec<f64> = (points.iter())
            .filter_map(|(_, compared)| of(compared))
            .collect();
        mean(&values)
    };
    let value = over_points(&|compared| Some(compared.value));
    let repeats = shared_repeats(points).into_iter();
    let residuals: Vec<f64> = repeats
        .map(|repeat| over_points(&|compared| compared.of_repeat(&compared.residuals, repeat)))
        .collect();
    let margin = half_width(&residuals);
    let interval = margin.map(|margin| Interval::around(value, margin));
    Reduced {
        value: Some(value),
        margin,
        interval,
        outcome: judge(band, value, interval),
        detail: format!("mean of {} points", points.len()),
        unit: String::new(),
    }
}

/// The number of the labels at which the comparison first reaches the bound.
fn first(
    test: &Test,
    points: &[(Point, Compared)],
    bound: f64,
    reaches: impl Fn(f64) -> bool,
) -> Reduced {
    let label = |index: usize| {
        let labels = &points[index].0.labels;
        labels.first().map_or("", |(_, label)| label.as_str())
    };
    let number = |index: usize| number_of_label(label(index)).unwrap_or(f64::NAN);
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by(|a, b| number(*a).total_cmp(&number(*b)));

    // The interpolated position, and the two points around it.
    let crossing = |values: &dyn Fn(usize) -> f64| {
        let place = order.iter().position(|index| reaches(values(*index)))?;
        let there = order[place];
        let before = place.checked_sub(1).map(|before| order[before]);
        let at = before.map_or(number(there), |before| {
            let along = (bound - values(before)) / (values(there) - values(before));
            let along = if along.is_nan() { 1.0 } else { along };
            (number(there) - number(before)).mul_add(along, number(before))
        });
        Some((at, before, there))
    };
    let by_repeat: Vec<Option<f64>> = shared_repeats(points)
        .into_iter()
        .map(|repeat| {
            let of_repeat = |index: usize| {
                let compared = &points[index].1;
                let value = compared.of_repeat(&compared.by_repeat, repeat);
                value.unwrap_or(f64::NAN)
            };
            crossing(&of_repeat).map(|found| found.0)
        })
        .collect();
    let Some((value, before, there)) = crossing(&|index| points[index].1.value) else {
        return never(test, points, bound, &by_repeat);
    };
    let detail = match before {
        Some(before) => format!("between {} and {}", label(before), label(there)),
        None => format!("already at {}, the first", label(there)),
    };
    let by_repeat: Option<Vec<f64>> = by_repeat.into_iter().collect();
    let margin = by_repeat.and_then(|values| half_width(&values));
    let interval = margin.map(|margin| Interval::around(value, margin));
    Reduced {
        value: Some(value),
        margin,
        interval,
        outcome: judge(test.pass, value, interval),
        detail,
        unit: unit(&(0..points.len()).map(label).collect::<Vec<_>>()),
    }
}

/// The bound is not reached by the means; `by_repeat` has where each repeat reaches it.
fn never(
    test: &Test,
    points: &[(Point, Compared)],
    bound: f64,
    by_repeat: &[Option<f64>],
) -> Reduced {
    let form = Form::of_points(test);
    let nearest = first_best(points, |a, b| {
        b.is_nan() || (a - bound).abs() < (b - bound).abs()
    });
    let (point, compared) = &points[nearest];
    Reduced {
        value: None,
        margin: None,
        interval: None,
        // Never in two repeats or more: that of the means is no accident.
        outcome: if by_repeat.len() > 1 && by_repeat.iter().all(Option::is_none) {
            Outcome::Fail
        } else {
            Outcome::Open
        },
        detail: format!(
            "{} is never reached; nearest {} at {}",
            form.given(bound),
            form.measured(compared.value, None),
            point.place()
        ),
        unit: String::new(),
    }
}

/// The common text after the number of all labels, if there is one.
fn unit(labels: &[&str]) -> String {
    let after = |label: &str| {
        label
            .trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+'))
            .to_owned()
    };
    let Some(first) = labels.first().map(|label| after(label)) else {
        return String::new();
    };
    let same = labels.iter().all(|label| after(label) == first);
    // The rest of `1e-6` is not a unit.
    let plain = first
        .chars()
        .all(|c| c.is_alphabetic() || c == '%' || c == ' ');
    if same && plain { first } else { String::new() }
}
