//! Distribution functions of samples, all repeats together.

use plotly::Scatter;
use plotly::common::{Line, LineShape, Mode};

use super::canvas::Canvas;
use super::{Context, MAX_POINTS, axis};
use crate::record::Sample;
use crate::report::html::plot_text;
use crate::scenario::{Figure, Scale, Selected};

pub(super) fn draw(
    canvas: &mut Canvas,
    figure: &Figure,
    selected: &Selected<'_>,
    group: &str,
    of: &str,
    context: Context<'_>,
) {
    let Some(value) = column(of) else {
        canvas.missing(format!(
            "Samples have no column `{of}`: `duration_ms` or `size_bytes` was expected."
        ));
        return;
    };
    canvas.note("Samples of all repeats together.");
    let together = selected.others(&[&figure.series, &figure.panels]);
    if !together.is_empty() {
        canvas.note(format!("All labels of {} combined.", together.join(", ")));
    }
    say_missing_runs(canvas, selected, context);
    for (panel, cases) in selected.groups(&figure.panels) {
        let mut slot = None;
        for (series, cases) in cases.groups(&figure.series) {
            let what = [panel.as_str(), series.as_str(), group];
            let Some(mut values) = completed(canvas, &cases, group, value, &what, context) else {
                continue;
            };
            values.sort_by(f64::total_cmp);
            if figure.x_scale == Scale::Log && values[0] <= 0.0 {
                canvas.missing("Values of 0 are not shown on the logarithmic scale.".to_owned());
            }
            let slot = slot.get_or_insert_with(|| {
                let x = axis::of_measures(&[of], figure.x_scale);
                let y = axis::titled("share of samples up to here", figure.y_scale);
                canvas.panel(&panel, x, y)
            });
            let key = if series.is_empty() { group } else { &series };
            let name = plot_text(key);
            let (x, y) = steps(&values);
            let trace = Scatter::new(x, y)
                .name(&name)
                .legend_group(&name)
                .show_legend(canvas.first_of(&name))
                .mode(Mode::Lines)
                .line(
                    Line::new()
                        .color(context.palette.style(key).color)
                        .shape(LineShape::Hv),
                )
                .x_axis(&slot.x)
                .y_axis(&slot.y);
            canvas.trace(trace);
        }
    }
}

type Column = fn(&Sample) -> Option<f64>;

fn column(of: &str) -> Option<Column> {
    match of {
        "duration_ms" => Some(|sample| sample.duration_ms),
        "size_bytes" => Some(|sample| Some(sample.size_bytes as f64)),
        _ => None,
    }
}

/// Values of the samples of `group`; `None` if there are none. Notes how many had no value.
fn completed(
    canvas: &mut Canvas,
    cases: &Selected<'_>,
    group: &str,
    value: Column,
    what: &[&str],
    context: Context<'_>,
) -> Option<Vec<f64>> {
    let samples = context
        .data
        .samples
        .iter()
        .filter(|(run, _)| cases.cases().contains(&run.case))
        .flat_map(|(_, samples)| samples)
        .filter(|sample| sample.group == group);
    let all: Vec<Option<f64>> = samples.map(value).collect();
    let values: Vec<f64> = all.iter().copied().flatten().collect();
    let parts: Vec<&str> = what
        .iter()
        .copied()
        .filter(|part| !part.is_empty())
        .collect();
    let what = parts.join(", ");
    let left_out = all.len() - values.len();
    if all.is_empty() {
        canvas.missing(format!("{what}: no samples."));
    } else if left_out > 0 {
        let all = all.len();
        canvas.note(format!(
            "{what}: {left_out} of {all} samples did not end and are left out."
        ));
    }
    (!values.is_empty()).then_some(values)
}

fn say_missing_runs(canvas: &mut Canvas, selected: &Selected<'_>, context: Context<'_>) {
    let expected = selected.cases().len() * context.data.experiment.repeats as usize;
    let runs = context.data.samples.iter();
    let present = runs
        .filter(|(run, _)| selected.cases().contains(&run.case))
        .count();
    if present < expected {
        canvas.missing(format!("Samples of {present} of {expected} runs."));
    }
}

/// The steps of the distribution function of sorted values, thinned to [`MAX_POINTS`]: the smallest
/// and the largest value are always there.
fn steps(values: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let count = values.len();
    let shown = count.min(MAX_POINTS - 1);
    let mut x = vec![values[0]];
    let mut y = vec![0.0];
    for step in 0..shown {
        // Evenly over the ranks, including both ends.
        let rank = if shown > 1 {
            step * (count - 1) / (shown - 1)
        } else {
            0
        };
        x.push(values[rank]);
        y.push((rank + 1) as f64 / count as f64);
    }
    (x, y)
}
