//! Lines: measures over an axis.

use plotly::Scatter;
use plotly::common::{ErrorData, ErrorType, Line, Marker, Mode};

use super::canvas::{Canvas, Slot};
use super::points::{Stroke, arrays, gather};
use super::{Context, axis, palette};
use crate::report::html::plot_text;
use crate::report::statistics::Point;
use crate::scenario::{Figure, Selected};

pub(super) fn draw(
    canvas: &mut Canvas,
    figure: &Figure,
    selected: &Selected<'_>,
    x: &str,
    y: &[String],
    context: Context<'_>,
) {
    for sheet in gather(canvas, figure, selected, x, y, context) {
        let labels = axis::of_labels(x, &sheet.labels, figure.x_scale);
        if let Some(note) = labels.note {
            canvas.note(note);
        }
        let slot = canvas.panel(&sheet.title, labels.axis, sheet.y);
        // Labels may be in another order in the file than their numbers.
        let mut order: Vec<usize> = (0..sheet.labels.len()).collect();
        order.sort_by(|&a, &b| match (&labels.places[a], &labels.places[b]) {
            (axis::X::Number(a), axis::X::Number(b)) => a.total_cmp(b),
            _ => a.cmp(&b),
        });
        for stroke in &sheet.strokes {
            line(canvas, &slot, stroke, &order, &labels.places, &sheet.labels);
        }
    }
}

fn line(
    canvas: &mut Canvas,
    slot: &Slot,
    stroke: &Stroke,
    order: &[usize],
    places: &[axis::X],
    labels: &[String],
) {
    let points: Vec<Point> = order.iter().map(|&place| stroke.points[place]).collect();
    let (means, bars) = arrays(&points);
    let color = stroke.style.color;
    let x = order.iter().map(|&place| places[place].clone()).collect();
    let text = order
        .iter()
        .map(|&place| plot_text(&labels[place]))
        .collect();
    let mut trace = Scatter::new(x, means)
        .name(&stroke.name)
        .legend_group(&stroke.name)
        .show_legend(canvas.first_of(&stroke.name))
        .mode(Mode::LinesMarkers)
        .hover_text_array(text)
        .line(Line::new().color(color).dash(palette::dash(stroke.measure)))
        .marker(
            Marker::new()
                .color(color)
                .symbol(stroke.style.marker())
                .size(8),
        )
        .x_axis(&slot.x)
        .y_axis(&slot.y);
    if let Some([up, down]) = bars {
        trace = trace.error_y(
            ErrorData::new(ErrorType::Data)
                .array(up)
                .array_minus(down)
                .symmetric(false)
                .thickness(1.2),
        );
    }
    canvas.trace(trace);
}
