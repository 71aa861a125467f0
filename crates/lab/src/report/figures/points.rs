//! Common part of lines and bars: measures of the rows at the labels of an axis.

use plotly::layout::Axis;

use super::Context;
use super::axis;
use super::canvas::Canvas;
use super::palette::Style;
use crate::claim::estimate;
use crate::report::html::plot_text;
use crate::report::measured_table::is_reference;
use crate::report::statistics::Point;
use crate::scenario::{Band, Compare, Figure, Scale, Selected, Selection, Take, Test};

/// One line, or the bars of one colour.
pub(super) struct Stroke {
    /// In the legend, escaped.
    pub(super) name: String,
    /// Colour and marker.
    pub(super) style: Style,
    /// Index among several measures in this colour.
    pub(super) measure: usize,
    /// One for each label of the axis.
    pub(super) points: Vec<Point>,
}

/// The strokes of one panel.
pub(super) struct Sheet {
    /// Title of the panel.
    pub(super) title: String,
    /// The vertical axis.
    pub(super) y: Axis,
    /// Labels of the horizontal axis, in order.
    pub(super) labels: Vec<String>,
    /// Lines or bars.
    pub(super) strokes: Vec<Stroke>,
}

/// Collects the points of a figure; notes missing data on the canvas.
pub(super) fn gather(
    canvas: &mut Canvas,
    figure: &Figure,
    selected: &Selected<'_>,
    x: &str,
    y: &[String],
    context: Context<'_>,
) -> Vec<Sheet> {
    let x_axis = [x.to_owned()];
    let averaged = selected.others(&[&figure.series, &figure.panels, &x_axis]);
    if !averaged.is_empty() {
        canvas.note(format!("Averaged over {}.", averaged.join(", ")));
    }
    note_bars(canvas, figure, context);
    let mut tally = Tally::default();
    let mut sheets = Vec::new();
    canvas.side_by_side(axis::by_unit(y).len());
    for (panel, cases) in selected.groups(&figure.panels) {
        let labels: Vec<String> = cases.groups(&x_axis).into_iter().map(|g| g.0).collect();
        for measures in axis::by_unit(y) {
            let mut strokes = Vec::new();
            for (series, cases) in cases.groups(&figure.series) {
                for (place, &measure) in measures.iter().enumerate() {
                    let points = points(&cases, &labels, &x_axis, (figure, measure), context);
                    tally.count(
                        &points,
                        &[panel.as_str(), series.as_str(), measure],
                        &labels,
                    );
                    strokes.push(stroke(
                        &series,
                        measure,
                        axis::of_one_unit(y),
                        place,
                        points,
                        context,
                    ));
                }
            }
            strokes.retain(|stroke| stroke.points.iter().any(|p| p.mean.is_some()));
            sheets.push(Sheet {
                title: panel.clone(),
                y: axis::of_comparison(&figure.compare, &measures, figure.y_scale),
                labels: labels.clone(),
                strokes,
            });
        }
    }
    let has_no_row = |measure: &&String| context.means.column(measure).is_none();
    for measure in y.iter().filter(has_no_row) {
        canvas.missing(format!("No row has the measure `{measure}`."));
    }
    tally.say(canvas);
    sheets.retain(|sheet| !sheet.strokes.is_empty());
    if figure.y_scale == Scale::Log {
        say_unshown(canvas, &sheets);
    }
    sheets
}

/// What the error bars are.
fn note_bars(canvas: &mut Canvas, figure: &Figure, context: Context<'_>) {
    let bars = context.means.bars().describe();
    match figure.compare {
        Compare::Value => canvas.note(bars.unwrap_or("One repeat, no error bars.")),
        _ if bars.is_none() => canvas.note("One repeat, no error bars."),
        _ => canvas.note(
            "Bars: 95 % confidence interval over repeats, of comparisons of runs with the same seed.",
        ),
    }
}

fn points(
    cases: &Selected<'_>,
    labels: &[String],
    x_axis: &[String],
    (figure, measure): (&Figure, &str),
    context: Context<'_>,
) -> Vec<Option<Point>> {
    let parts = cases.groups(x_axis);
    let at = |label: &String| {
        // A label without a case was excluded by the scenario: no data are missing.
        let (_, part) = parts.iter().find(|(name, _)| name == label)?;
        if figure.compare != Compare::Value {
            return compared(figure, measure, part, context);
        }
        let column = context.means.column(measure);
        Some(column.map_or_else(Point::default, |c| context.means.point(part.cases(), c)))
    };
    labels.iter().map(at).collect()
}

/// A comparison; `None` for what is compared with.
fn compared(
    figure: &Figure,
    measure: &str,
    cases: &Selected<'_>,
    context: Context<'_>,
) -> Option<Point> {
    if is_reference(context.data.experiment, &figure.compare, cases) {
        return None;
    }
    let test = Test {
        measure: measure.to_owned(),
        select: Selection::new(),
        each: Vec::new(),
        average: Vec::new(),
        compare: figure.compare.clone(),
        take: Take::All,
        pass: Band::default(),
    };
    let found = estimate(&test, cases, context.rows);
    let Some(value) = found.value else {
        return Some(Point::default());
    };
    let margin = found.margin.unwrap_or_default();
    Some(Point {
        mean: Some(value),
        low: value - margin,
        high: value + margin,
        repeats: context.data.experiment.repeats as usize,
    })
}

fn stroke(
    series: &str,
    measure: &str,
    measures: usize,
    place: usize,
    points: Vec<Option<Point>>,
    context: Context<'_>,
) -> Stroke {
    let (name, key) = if series.is_empty() {
        (measure.to_owned(), measure)
    } else if measures > 1 {
        (format!("{series}, {measure}"), series)
    } else {
        (series.to_owned(), series)
    };
    Stroke {
        name: plot_text(&name),
        style: context.palette.style(key),
        measure: if series.is_empty() { 0 } else { place },
        points: points.into_iter().map(Option::unwrap_or_default).collect(),
    }
}

/// Counts points without a value.
#[derive(Default)]
struct Tally {
    expected: usize,
    absent: usize,
    first: Option<String>,
}

impl Tally {
    fn count(&mut self, points: &[Option<Point>], what: &[&str], labels: &[String]) {
        for (point, label) in points.iter().zip(labels) {
            let Some(point) = point else { continue };
            self.expected += 1;
            if point.mean.is_none() {
                self.absent += 1;
                self.first.get_or_insert_with(|| {
                    let mut parts: Vec<&str> = what
                        .iter()
                        .copied()
                        .filter(|part| !part.is_empty())
                        .collect();
                    parts.push(label);
                    parts.join(", ")
                });
            }
        }
    }

    fn say(&self, canvas: &mut Canvas) {
        if let Some(first) = &self.first {
            let Self {
                expected, absent, ..
            } = self;
            canvas.missing(format!(
                "{absent} of {expected} points have no value (runs missing, or nothing to \
                 measure); the first: {first}."
            ));
        }
    }
}

/// A logarithmic scale silently omits values that are not above 0.
fn say_unshown(canvas: &mut Canvas, sheets: &[Sheet]) {
    let means = sheets
        .iter()
        .flat_map(|sheet| &sheet.strokes)
        .flat_map(|stroke| &stroke.points)
        .filter_map(|point| point.mean);
    let unshown = means.filter(|&mean| mean <= 0.0).count();
    if unshown > 0 {
        canvas.missing(format!(
            "{unshown} points are not above 0, which the logarithmic scale can't show."
        ));
    }
}

/// Values for plotly.js, and error bars up and down if there are any.
pub(super) fn arrays(points: &[Point]) -> (Vec<Option<f64>>, Option<[Vec<f64>; 2]>) {
    let means = points.iter().map(|point| point.mean).collect();
    let bar = |of: fn(&Point) -> f64| points.iter().map(of).collect::<Vec<f64>>();
    let up = bar(|point| point.mean.map_or(0.0, |mean| point.high - mean));
    let down = bar(|point| point.mean.map_or(0.0, |mean| mean - point.low));
    let any = up.iter().chain(&down).any(|&length| length > 0.0);
    (means, any.then_some([up, down]))
}
