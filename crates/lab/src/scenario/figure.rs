//! Figures of an experiment.

use serde::Serialize;

use super::claim::{Compare, Selection, as_written};

/// One figure, possibly with several panels.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Short name, such as `fig5`; unique.
    pub id: String,
    /// Title.
    pub title: String,
    /// Text below it.
    pub caption: String,
    /// What kind of plot.
    #[serde(flatten)]
    pub kind: FigureKind,
    /// Axes, or fields of axes, whose labels distinguish lines or bar colours.
    pub series: Vec<String>,
    /// Axes, or fields of axes, with one panel per label.
    pub panels: Vec<String>,
    /// The cases: those with these labels; axes that are not named are averaged.
    #[serde(rename = "where", serialize_with = "as_written")]
    pub select: Selection,
    /// What measures are compared with, by lines and bars.
    pub compare: Compare,
    /// Scale of the horizontal axis.
    pub x_scale: Scale,
    /// Scale of the vertical axis.
    pub y_scale: Scale,
}

/// Kinds of plots.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FigureKind {
    /// Measures over an axis, with the spread of the repeats.
    Line {
        /// The axis of the experiment, or a field of one. Labels that start with numbers are placed at them.
        x: String,
        /// Columns of the rows; several make several lines.
        y: Vec<String>,
    },
    /// Measures as bars, grouped by an axis.
    Bar {
        /// The axis of the experiment, or a field of one.
        x: String,
        /// Columns of the rows.
        y: Vec<String>,
    },
    /// Distribution function of samples (all repeats).
    Cdf {
        /// Group of flows whose samples are taken.
        group: String,
        /// Column of the samples: `duration_ms` or `size_bytes`.
        of: String,
    },
    /// Values over time, from the recorder, first repeat.
    Series {
        /// `group` or `link`, a dot, column of the recorder: `subject.cwnd_bytes`,
        /// `bottleneck.queue_bytes`.
        y: Vec<String>,
    },
}

/// Scale of an axis.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Linear.
    #[default]
    Linear,
    /// Logarithmic.
    Log,
}
