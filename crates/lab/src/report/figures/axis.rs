//! Axes: titles with units, scales, positions of labels.

use plotly::common::ExponentFormat;
use plotly::layout::{Axis, AxisType};
use serde::Serialize;

use super::super::html::plot_text;
use super::super::number::positions;
use crate::scenario::{Compare, Scale};

/// A position on the horizontal axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum X {
    /// At a number.
    Number(f64),
    /// At the position of a label.
    Label(String),
}

/// A horizontal axis of labels.
pub(super) struct Labels {
    /// For plotly.js.
    pub(super) axis: Axis,
    /// Position of each label, in the order of the labels.
    pub(super) places: Vec<X>,
    /// Remarks for the reader.
    pub(super) note: Option<String>,
}

/// Labels at their numbers, if all have one and the scale can show them, otherwise equally spaced.
pub(super) fn of_labels(name: &str, labels: &[String], scale: Scale) -> Labels {
    let Some((values, unit)) = positions(labels) else {
        return side_by_side(name, labels, None);
    };
    if scale == Scale::Log && values.iter().any(|&value| value <= 0.0) {
        let note = format!(
            "`{name}` has 0, which a logarithmic scale can't show: labels are equally spaced."
        );
        return side_by_side(name, labels, Some(note));
    }
    let title = if unit.is_empty() {
        plot_text(name)
    } else {
        plot_text(&format!("{name} ({unit})"))
    };
    let mut axis = titled(&title, scale);
    if scale == Scale::Log || values.len() <= 6 {
        axis = axis
            .tick_values(values.clone())
            .tick_text(labels.iter().map(|label| plot_text(label)).collect());
    }
    Labels {
        axis,
        places: values.into_iter().map(X::Number).collect(),
        note: None,
    }
}

/// Equally spaced labels.
pub(super) fn side_by_side(name: &str, labels: &[String], note: Option<String>) -> Labels {
    let shown: Vec<String> = labels.iter().map(|label| plot_text(label)).collect();
    Labels {
        axis: titled(&plot_text(name), Scale::Linear)
            .type_(AxisType::Category)
            .category_array(shown.clone()),
        places: shown.into_iter().map(X::Label).collect(),
        note,
    }
}

/// The axis of `measures`, which have the same unit.
pub(super) fn of_measures(measures: &[&str], scale: Scale) -> Axis {
    let axis = titled(&title(measures), scale);
    match measures.first().map(|measure| unit(measure)) {
        // 2M, 1G.
        Some("bytes") => axis.exponent_format(ExponentFormat::SI),
        _ => axis,
    }
}

/// The axis of `measures`, or of comparisons of them.
pub(super) fn of_comparison(compare: &Compare, measures: &[&str], scale: Scale) -> Axis {
    let (word, other) = match compare {
        Compare::Value => return of_measures(measures, scale),
        Compare::Ratio(other) => ("ratio to", other),
        Compare::Change(other) => ("relative change against", other),
        Compare::Difference(other) => ("difference from", other),
    };
    let other = plot_text(&other.describe());
    titled(&format!("{}, {word} {other}", title(measures)), scale)
}

/// An axis with an escaped title.
pub(super) fn titled(title: &str, scale: Scale) -> Axis {
    Axis::new()
        .title(title)
        .auto_margin(true)
        .exponent_format(ExponentFormat::None)
        .grid_color("#e0e0e0")
        .zero_line_color("#bbbbbb")
        .type_(match scale {
            Scale::Linear => AxisType::Linear,
            Scale::Log => AxisType::Log,
        })
}

/// Unit of a measure or column, from the end of its name; empty for a bare number.
pub(super) fn unit(measure: &str) -> &'static str {
    const ENDINGS: [(&str, &str); 10] = [
        ("_mbps", "Mbit/s"),
        ("_per_100s", "per 100 s"),
        ("_within_1s", "share"),
        ("_ms", "ms"),
        ("_s", "s"),
        ("_share", "share"),
        ("_bytes", "bytes"),
        ("_bdp", "BDP"),
        ("_packets", "packets"),
        ("_cv", "standard deviation / mean"),
    ];
    let column = column(measure);
    if matches!(column, "share" | "utilisation") {
        return "share";
    }
    ENDINGS
        .iter()
        .find(|(ending, _)| column.ends_with(ending))
        .map_or("", |(_, unit)| unit)
}

/// The name of a measure without its subject: `goodput_mbps` of `subject.goodput_mbps`.
fn column(measure: &str) -> &str {
    measure.rsplit('.').next().unwrap_or(measure)
}

/// Title of the axis that shows `measures`, which have the same unit.
pub(super) fn title(measures: &[&str]) -> String {
    let Some(first) = measures.first() else {
        return String::new();
    };
    let unit = unit(first);
    let same = measures.iter().all(|other| column(other) == column(first));
    let name = if same { column(first) } else { "" };
    // `goodput_mbps` with its unit as text needs no `mbps`.
    let ending = name.rsplit_once('_').filter(|(_, ending)| {
        matches!(
            *ending,
            "mbps" | "ms" | "s" | "bytes" | "bdp" | "packets" | "share" | "cv"
        )
    });
    let name = ending.map_or(name, |(stem, _)| stem).replace('_', " ");
    match (name.is_empty(), unit.is_empty()) {
        (false, false) if name != unit => plot_text(&format!("{name} ({unit})")),
        (false, _) => plot_text(&name),
        (true, _) => plot_text(unit),
    }
}

/// Groups measures by unit, in the order of first appearance: each unit has a separate panel.
pub(super) fn by_unit(measures: &[String]) -> Vec<Vec<&str>> {
    let mut parts: Vec<Vec<&str>> = Vec::new();
    for measure in measures {
        match parts.iter_mut().find(|part| unit(part[0]) == unit(measure)) {
            Some(part) => part.push(measure),
            None => parts.push(vec![measure]),
        }
    }
    parts
}

/// True if all measures have one unit; otherwise lines are named after their measure too, in all
/// panels.
pub(super) fn of_one_unit(measures: &[String]) -> usize {
    by_unit(measures).iter().map(Vec::len).max().unwrap_or(0)
}
