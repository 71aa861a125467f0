//! Panels in a grid, one legend for all of them.

use std::collections::BTreeSet;

use plotly::common::Anchor;
use plotly::layout::{Annotation, Axis};
use plotly::{Trace, Traces};
use serde_json::{Map, Value, json};

use super::super::html::plot_text;
use super::Drawn;

/// Height of a panel, pixels.
const PANEL: u32 = 320;
/// Height of the surroundings of the panels, without the legend, pixels.
const AROUND: u32 = 110;
/// Height of a row of the legend, pixels.
const LEGEND_ROW: u32 = 20;

/// Target panel of traces.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) x: String,
    pub(super) y: String,
}

/// A figure under construction.
#[derive(Default)]
pub(super) struct Canvas {
    panels: Vec<(String, Axis, Axis)>,
    traces: Traces,
    legend: BTreeSet<String>,
    /// Panels side by side, if the figure specifies it.
    columns: Option<usize>,
    /// True if there are bars.
    grouped: bool,
    notes: Vec<String>,
    missing: Vec<String>,
}

impl Canvas {
    /// Adds a panel.
    pub(super) fn panel(&mut self, title: &str, x: Axis, y: Axis) -> Slot {
        self.panels.push((plot_text(title), x, y));
        let suffix = suffix(self.panels.len() - 1);
        Slot {
            x: format!("x{suffix}"),
            y: format!("y{suffix}"),
        }
    }

    /// True for the first trace of a name, which represents all of them in the legend.
    pub(super) fn first_of(&mut self, name: &str) -> bool {
        self.legend.insert(name.to_owned())
    }

    /// Sets the number of panels side by side: one for each unit, so that panels of one unit are
    /// stacked.
    pub(super) fn side_by_side(&mut self, units: usize) {
        self.columns = (2..=3).contains(&units).then_some(units);
    }

    /// Bars at the same position are shown side by side.
    pub(super) fn group_bars(&mut self) {
        self.grouped = true;
    }

    /// Adds a line or bars.
    pub(super) fn trace(&mut self, trace: Box<dyn Trace>) {
        self.traces.push(trace);
    }

    /// Adds a note on how to read the figure, once.
    pub(super) fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// Adds a note on missing data.
    pub(super) fn missing(&mut self, text: String) {
        if !self.missing.contains(&text) {
            self.missing.push(text);
        }
    }

    /// The figure. Without a trace it has no plot, but at least one reason.
    pub(super) fn finish(mut self) -> Result<Drawn, serde_json::Error> {
        if self.traces.is_empty() {
            if self.missing.is_empty() {
                self.missing.push("There is nothing to show.".to_owned());
            }
            return Ok(Drawn {
                plot: None,
                height: 0,
                notes: self.notes,
                missing: self.missing,
            });
        }
        let columns = self.columns.unwrap_or(match self.panels.len() {
            0 | 1 => 1,
            2..=4 => 2,
            _ => 3,
        });
        let rows = self.panels.len().div_ceil(columns);
        let plot = json!({
            "data": serde_json::to_value(&self.traces)?,
            "layout": self.layout(columns, rows)?,
        });
        let height = self.height(rows);
        Ok(Drawn {
            plot: Some(plot),
            height,
            notes: self.notes,
            missing: self.missing,
        })
    }

    /// Height of the legend, pixels, from an estimate of the text width.
    fn legend_height(&self) -> u32 {
        let width: usize = self
            .legend
            .iter()
            .map(|name| 55 + 7 * name.chars().count())
            .sum();
        LEGEND_ROW * width.div_ceil(1000) as u32
    }

    fn height(&self, rows: usize) -> u32 {
        rows as u32 * PANEL + AROUND + self.legend_height()
    }

    fn layout(&self, columns: usize, rows: usize) -> Result<Value, serde_json::Error> {
        let mut layout = Map::new();
        let mut titles = Vec::new();
        for (place, (title, x, y)) in self.panels.iter().enumerate() {
            let suffix = suffix(place);
            let across = span(place % columns, columns, 0.07 * columns as f64);
            // Rows count from the top, domains from the bottom.
            let up = span(rows - 1 - place / columns, rows, 0.3);
            let x = x.clone().domain(&across).anchor(format!("y{suffix}"));
            let y = y.clone().domain(&up).anchor(format!("x{suffix}"));
            layout.insert(format!("xaxis{suffix}"), serde_json::to_value(x)?);
            layout.insert(format!("yaxis{suffix}"), serde_json::to_value(y)?);
            if !title.is_empty() {
                titles.push(
                    Annotation::new()
                        .text(format!("<b>{title}</b>"))
                        .show_arrow(false)
                        .x_ref("paper")
                        .y_ref("paper")
                        .x(f64::midpoint(across[0], across[1]))
                        .y(up[1])
                        .x_anchor(Anchor::Center)
                        .y_anchor(Anchor::Bottom),
                );
            }
        }
        layout.insert("annotations".to_owned(), serde_json::to_value(titles)?);
        layout.insert("height".to_owned(), json!(self.height(rows)));
        if self.grouped {
            layout.insert("barmode".to_owned(), json!("group"));
        }
        layout.insert("showlegend".to_owned(), json!(self.legend.len() > 1));
        // Pixels above the panels, at any height: it must not cover their titles.
        let top = 1.0 + 28.0 / (rows as f64 * f64::from(PANEL));
        layout.insert(
            "legend".to_owned(),
            json!({"orientation": "h", "x": 0, "y": top, "yanchor": "bottom"}),
        );
        layout.insert("hoverlabel".to_owned(), json!({"namelength": -1}));
        layout.insert(
            "margin".to_owned(),
            json!({"l": 60, "r": 20, "t": 70, "b": 60}),
        );
        layout.insert("plot_bgcolor".to_owned(), json!("#ffffff"));
        Ok(Value::Object(layout))
    }
}

/// Axes are called `x`, `x2`, `x3`.
fn suffix(place: usize) -> String {
    if place == 0 {
        String::new()
    } else {
        (place + 1).to_string()
    }
}

/// The `place`th of `count` intervals of 0 to 1, with a gap of this share of each between them.
fn span(place: usize, count: usize, gap: f64) -> [f64; 2] {
    if count == 1 {
        return [0.0, 1.0];
    }
    let width = 1.0 / (count as f64 - gap);
    let from = place as f64 * width;
    [from, (from + width * (1.0 - gap)).min(1.0)]
}
