//! Reduction of the points over which a comparison is repeated.

use super::compare::{Compared, mean};
use super::confidence::half_width;
use super::select::Point;
use super::text::Form;
use crate::scenario::{Band, Take, Test, number_of_label};

/// The result of a test.
pub(super) struct Reduced {
    /// `None` if there is no such number, for instance if a threshold is never reached.
    pub(super) value: Option<f64>,
    pub(super) margin: Option<f64>,
    pub(super) passes: bool,
    /// The point that decided.
    pub(super) detail: String,
    /// Format of the number, if it differs from that of the comparison.
    pub(super) unit: String,
}

/// Reduces the points; there must be at least one.
pub(super) fn take(test: &Test, points: &[(Point, Compared)]) -> Reduced {
    match test.take {
        Take::All => all(test.pass, points),
        Take::Min => extreme(test.pass, points, "smallest", |a, b| a < b),
        Take::Max => extreme(test.pass, points, "largest", |a, b| a > b),
        Take::Mean => average(test.pass, points),
        Take::FirstAtLeast(bound) => first(test, points, bound, |value| value >= bound),
        Take::FirstAtMost(bound) => first(test, points, bound, |value| value <= bound),
    }
}

/// Distance of a value inside the band; negative outside.
fn slack(band: Band, value: f64) -> f64 {
    if value.is_nan() {
        return f64::NEG_INFINITY;
    }
    let below = band.min.map_or(f64::INFINITY, |min| value - min);
    let above = band.max.map_or(f64::INFINITY, |max| max - value);
    below.min(above)
}

fn all(band: Band, points: &[(Point, Compared)]) -> Reduced {
    let passing = points
        .iter()
        .filter(|(_, compared)| band.holds(compared.value))
        .count();
    let worst = first_best(points, |a, b| slack(band, a) < slack(band, b));
    let (point, compared) = &points[worst];
    let detail = if points.len() == 1 {
        alone(point, compared)
    } else {
        let (place, all) = (point.place(), points.len());
        format!("worst at {place}; {passing} of {all} points pass")
    };
    Reduced {
        value: Some(compared.value),
        margin: compared.margin(),
        passes: passing == points.len(),
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

fn extreme(
    band: Band,
    points: &[(Point, Compared)],
    word: &str,
    is_before: fn(f64, f64) -> bool,
) -> Reduced {
    // A value that isn't a number is the worst, so that it is not hidden by others.
    let chosen = first_best(points, |a, b| {
        !b.is_nan() && (a.is_nan() || is_before(a, b))
    });
    let (point, compared) = &points[chosen];
    Reduced {
        value: Some(compared.value),
        margin: compared.margin(),
        passes: band.holds(compared.value),
        detail: format!("{word} of {} points, at {}", points.len(), point.place()),
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

fn average(band: Band, points: &[(Point, Compared)]) -> Reduced {
    let over_points = |of: &dyn Fn(&Compared) -> f64| {
        let values: Vec<f64> = points.iter().map(|(_, compared)| of(compared)).collect();
        mean(&values)
    };
    let value = over_points(&|compared| compared.value);
    let repeats = points[0].1.residuals.len();
    let residuals: Vec<f64> = (0..repeats)
        .map(|repeat| over_points(&|compared| compared.residuals[repeat]))
        .collect();
    Reduced {
        value: Some(value),
        margin: half_width(&residuals),
        passes: band.holds(value),
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
    let Some((value, before, there)) = crossing(&|index| points[index].1.value) else {
        let form = Form::of_points(test);
        let nearest = first_best(points, |a, b| {
            b.is_nan() || (a - bound).abs() < (b - bound).abs()
        });
        let (point, compared) = &points[nearest];
        return Reduced {
            value: None,
            margin: None,
            passes: false,
            detail: format!(
                "{} is never reached; nearest {} at {}",
                form.given(bound),
                form.measured(compared.value, None),
                point.place()
            ),
            unit: String::new(),
        };
    };
    let repeats = points[0].1.by_repeat.len();
    let by_repeat: Option<Vec<f64>> = (0..repeats)
        .map(|repeat| crossing(&|index| points[index].1.by_repeat[repeat]).map(|found| found.0))
        .collect();
    let detail = match before {
        Some(before) => format!("between {} and {}", label(before), label(there)),
        None => format!("already at {}, the first", label(there)),
    };
    Reduced {
        value: Some(value),
        margin: by_repeat.and_then(|values| half_width(&values)),
        passes: test.pass.holds(value),
        detail,
        unit: unit(&(0..points.len()).map(label).collect::<Vec<_>>()),
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
