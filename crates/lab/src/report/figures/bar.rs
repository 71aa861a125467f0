//! Bars: measures by the labels of an axis, grouped.

use plotly::Bar;
use plotly::common::{ErrorData, ErrorType, Marker, Pattern};

use super::canvas::Canvas;
use super::points::{arrays, gather};
use super::{Context, axis, palette};
use crate::scenario::{Figure, Selected};

pub(super) fn draw(
    canvas: &mut Canvas,
    figure: &Figure,
    selected: &Selected<'_>,
    x: &str,
    y: &[String],
    context: Context<'_>,
) {
    canvas.group_bars();
    for sheet in gather(canvas, figure, selected, x, y, context) {
        let labels = axis::side_by_side(x, &sheet.labels, None);
        let slot = canvas.panel(&sheet.title, labels.axis, sheet.y);
        for stroke in &sheet.strokes {
            let (means, bars) = arrays(&stroke.points);
            let marker = Marker::new()
                .color(stroke.style.color)
                .pattern(Pattern::new().shape(palette::pattern(stroke.measure)));
            let mut trace = Bar::new(labels.places.clone(), means)
                .name(&stroke.name)
                .legend_group(&stroke.name)
                .show_legend(canvas.first_of(&stroke.name))
                .offset_group(&stroke.name)
                .marker(marker)
                .x_axis(&slot.x)
                .y_axis(&slot.y);
            if let Some([up, down]) = bars {
                trace = trace.error_y(
                    ErrorData::new(ErrorType::Data)
                        .array(up)
                        .array_minus(down)
                        .symmetric(false),
                );
            }
            canvas.trace(trace);
        }
    }
}
