//! Figures of an experiment, as JSON for plotly.js. One file per kind; shared parts are the cases
//! of a figure ([`Selected`]), colours ([`Palette`]), thinning ([`decimate`]), axes and panels.

mod axis;
mod bar;
mod canvas;
mod cdf;
mod decimate;
mod line;
mod palette;
mod points;
mod series;

use serde_json::Value;

pub use decimate::decimate;
pub use palette::{Palette, Style};

use super::data::ReportData;
use super::statistics::Means;
use crate::claim::Rows;
use crate::scenario::{Figure, FigureKind, Selected};
use canvas::Canvas;

/// Most points of a line; more are thinned, keeping extremes.
pub const MAX_POINTS: usize = 2000;

/// Input of every figure of a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context<'a> {
    pub(super) data: ReportData<'a>,
    pub(super) means: &'a Means<'a>,
    pub(super) rows: &'a Rows<'a>,
    pub(super) palette: &'a Palette,
}

/// A figure, ready for the page.
#[derive(Debug)]
pub(super) struct Drawn {
    /// `data` and `layout` of plotly.js; `None` if there is nothing to show, with the reason in
    /// `missing`.
    pub(super) plot: Option<Value>,
    /// Pixels.
    pub(super) height: u32,
    /// Notes on reading it.
    pub(super) notes: Vec<String>,
    /// Missing data.
    pub(super) missing: Vec<String>,
}

/// Draws a figure from the available data.
pub(super) fn draw(figure: &Figure, context: Context<'_>) -> Result<Drawn, serde_json::Error> {
    let mut canvas = Canvas::default();
    let selected = Selected::new(context.data.experiment, &figure.select);
    for axis in selected.unknown(named_axes(figure)) {
        canvas.missing(format!("The experiment has no axis `{axis}`."));
    }
    if selected.cases().is_empty() {
        canvas.missing("No case has the labels of this figure.".to_owned());
    } else {
        match &figure.kind {
            FigureKind::Line { x, y } => line::draw(&mut canvas, figure, &selected, x, y, context),
            FigureKind::Bar { x, y } => bar::draw(&mut canvas, figure, &selected, x, y, context),
            FigureKind::Cdf { group, of } => {
                cdf::draw(&mut canvas, figure, &selected, group, of, context);
            }
            FigureKind::Series { y } => series::draw(&mut canvas, figure, &selected, y, context),
        }
    }
    canvas.finish()
}

/// The axes, or fields of axes, that a figure names.
fn named_axes(figure: &Figure) -> impl Iterator<Item = &String> {
    let x = match &figure.kind {
        FigureKind::Line { x, .. } | FigureKind::Bar { x, .. } => Some(x),
        FigureKind::Cdf { .. } | FigureKind::Series { .. } => None,
    };
    let others = figure.series.iter().chain(&figure.panels);
    others.chain(figure.select.keys()).chain(x)
}
