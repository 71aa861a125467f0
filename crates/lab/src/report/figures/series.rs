//! Values over time, from the recorder, of the first repeat.

use plotly::Scatter;
use plotly::common::{Line, Mode};

use super::canvas::{Canvas, Slot};
use super::decimate::decimate;
use super::{Context, MAX_POINTS, axis, palette};
use crate::record::{FlowPoint, LinkPoint, Series};
use crate::report::html::plot_text;
use crate::scenario::{Figure, Scale, Selected};

/// Most members of a group that are drawn.
const MAX_MEMBERS: u32 = 16;

/// One line.
struct Curve {
    times: Vec<f64>,
    values: Vec<Option<f64>>,
    /// Tooltip: flow and state; empty for none.
    text: Vec<String>,
}

pub(super) fn draw(
    canvas: &mut Canvas,
    figure: &Figure,
    selected: &Selected<'_>,
    y: &[String],
    context: Context<'_>,
) {
    canvas.note("First repeat.");
    canvas.side_by_side(axis::by_unit(y).len());
    let apart = selected.others(&[&figure.series, &figure.panels]);
    if !apart.is_empty() {
        let apart = apart.join(", ");
        canvas.note(format!(
            "Each label of {apart} has a separate line; the tooltip shows which."
        ));
    }
    for (panel, cases) in selected.groups(&figure.panels) {
        for measures in axis::by_unit(y) {
            let mut slot = None;
            for (series, cases) in cases.groups(&figure.series) {
                for (place, &measure) in measures.iter().enumerate() {
                    let what = [panel.as_str(), series.as_str(), measure];
                    for (label, case) in cases.groups(&apart) {
                        let Some(curves) = curves(canvas, &case, measure, &label, &what, context)
                        else {
                            continue;
                        };
                        let slot = slot.get_or_insert_with(|| {
                            let x = axis::titled("time (s)", figure.x_scale);
                            let y = axis::of_measures(&measures, figure.y_scale);
                            canvas.panel(&panel, x, y)
                        });
                        let look = Look::of(&series, measure, axis::of_one_unit(y), place, context);
                        for curve in curves {
                            draw_curve(canvas, slot, &look, &curve, figure.y_scale);
                        }
                    }
                }
            }
        }
    }
}

/// Style of the lines of a series.
struct Look {
    name: String,
    line: Line,
}

impl Look {
    fn of(
        series: &str,
        measure: &str,
        measures: usize,
        place: usize,
        context: Context<'_>,
    ) -> Self {
        let (name, key, place) = match (series.is_empty(), measures) {
            (true, _) => (measure.to_owned(), measure, 0),
            (false, 1) => (series.to_owned(), series, 0),
            (false, _) => (format!("{series}, {measure}"), series, place),
        };
        let color = context.palette.style(key).color;
        Self {
            name: plot_text(&name),
            line: Line::new()
                .color(color)
                .dash(palette::dash(place))
                .width(1.5),
        }
    }
}

fn draw_curve(canvas: &mut Canvas, slot: &Slot, look: &Look, curve: &Curve, scale: Scale) {
    if scale == Scale::Log && curve.values.iter().flatten().any(|&value| value <= 0.0) {
        canvas.missing("Values of 0 are not shown on the logarithmic scale.".to_owned());
    }
    let kept = decimate(&curve.values, MAX_POINTS);
    let x: Vec<f64> = kept.iter().map(|&at| curve.times[at]).collect();
    let y: Vec<Option<f64>> = kept.iter().map(|&at| curve.values[at]).collect();
    if kept.len() < curve.values.len() {
        canvas.note(format!(
            "Lines are thinned to at most {MAX_POINTS} points, extremes kept."
        ));
    }
    let mut trace = Scatter::new(x, y)
        .name(&look.name)
        .legend_group(&look.name)
        .show_legend(canvas.first_of(&look.name))
        .mode(Mode::Lines)
        .line(look.line.clone())
        .x_axis(&slot.x)
        .y_axis(&slot.y);
    if curve.text.iter().any(|text| !text.is_empty()) {
        let text = kept.iter().map(|&at| plot_text(&curve.text[at])).collect();
        trace = trace.hover_text_array(text);
    }
    canvas.trace(trace);
}

/// The lines of `measure` in a case; notes the reason if there are none.
fn curves(
    canvas: &mut Canvas,
    case: &Selected<'_>,
    measure: &str,
    label: &str,
    what: &[&str],
    context: Context<'_>,
) -> Option<Vec<Curve>> {
    let name: Vec<&str> = what
        .iter()
        .chain([&label])
        .copied()
        .filter(|p| !p.is_empty())
        .collect();
    let name = name.join(", ");
    let index = *case.cases().first()?;
    let runs = context.data.series.iter();
    let mut runs = runs.filter(|(run, _)| run.case == index && run.repeat == 0);
    let Some((_, series)) = runs.next() else {
        canvas.missing(
            if context.data.experiment.cases[index].setup.record.is_none() {
                "The scenario records nothing: `record` is not set.".to_owned()
            } else {
                format!("{name}: no time series of the first repeat.")
            },
        );
        return None;
    };
    let curves = select(canvas, series, measure, label);
    if curves.is_empty() {
        canvas.missing(format!("{name}: nothing of this name was recorded."));
        return None;
    }
    Some(curves)
}

fn select(canvas: &mut Canvas, series: &Series, measure: &str, label: &str) -> Vec<Curve> {
    let Some((whose, column)) = measure.rsplit_once('.') else {
        return Vec::new();
    };
    let mut curves = Vec::new();
    if let Some(value) = flow_column(column) {
        let flows = series.flows.iter().filter(|flow| flow.group == whose);
        let members = flows.clone().count();
        if members > MAX_MEMBERS as usize {
            canvas.note(format!(
                "`{whose}`: the first {MAX_MEMBERS} of {members} flows."
            ));
        }
        for flow in flows.filter(|flow| flow.member < MAX_MEMBERS) {
            let member = (members > 1).then(|| format!("flow {}", flow.member));
            let text = |point: &FlowPoint| {
                let parts = [Some(label), member.as_deref(), Some(point.state.as_str())];
                let parts: Vec<&str> = parts
                    .into_iter()
                    .flatten()
                    .filter(|p| !p.is_empty())
                    .collect();
                parts.join(", ")
            };
            curves.push(Curve {
                times: flow.points.iter().map(|point| point.t_s).collect(),
                values: flow.points.iter().map(value).collect(),
                text: flow.points.iter().map(text).collect(),
            });
        }
    }
    if let Some(value) = link_column(column) {
        for link in series.links.iter().filter(|link| link.link == whose) {
            curves.push(Curve {
                times: link.points.iter().map(|point| point.t_s).collect(),
                values: link.points.iter().map(|point| Some(value(point))).collect(),
                text: vec![label.to_owned(); link.points.len()],
            });
        }
    }
    curves.retain(|curve| !curve.times.is_empty());
    curves
}

fn flow_column(name: &str) -> Option<fn(&FlowPoint) -> Option<f64>> {
    Some(match name {
        "cwnd_bytes" => |point| Some(point.cwnd_bytes as f64),
        "ssthresh_bytes" => |point| point.ssthresh_bytes.map(|bytes| bytes as f64),
        "pacing_mbps" => |point| point.pacing_mbps,
        "smoothed_rtt_ms" => |point| Some(point.smoothed_rtt_ms),
        "latest_rtt_ms" => |point| Some(point.latest_rtt_ms),
        "inflight_bytes" => |point| Some(point.inflight_bytes as f64),
        "delivered_bytes" => |point| Some(point.delivered_bytes as f64),
        "lost_bytes" => |point| Some(point.lost_bytes as f64),
        "goodput_mbps" => |point| Some(point.goodput_mbps),
        "redundancy_level" => |point| point.redundancy_level,
        "loss_rate" => |point| point.loss_rate,
        "detection_time_ms" => |point| point.detection_time_ms,
        _ => return None,
    })
}

fn link_column(name: &str) -> Option<fn(&LinkPoint) -> f64> {
    Some(match name {
        "queue_bytes" => |point| point.queue_bytes as f64,
        "dropped_packets" => |point| point.dropped_packets as f64,
        "marked_packets" => |point| point.marked_packets as f64,
        "delivered_bytes" => |point| point.delivered_bytes as f64,
        _ => return None,
    })
}
