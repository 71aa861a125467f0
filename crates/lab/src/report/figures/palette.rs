//! One colour for each entity, on the whole page.

use plotly::common::{DashType, MarkerSymbol, PatternShape};

use crate::scenario::{Experiment, FigureKind, Selected};

/// Eight colours that are distinguishable with any kind of colour vision: those of Okabe and Ito,
/// "Color Universal Design" (2008), their yellow replaced with a brown, as it is faint on white.
/// Markers differ too.
const COLOURS: [&str; 8] = [
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31",
];

/// Style of a line or bar.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Style {
    /// Colour as `#RRGGBB`.
    pub color: &'static str,
    /// Index of the marker's symbol; differs where colours repeat, and between colours.
    symbol: usize,
}

/// Colours of all entities that the figures of an experiment distinguish.
#[derive(Clone, Debug, PartialEq)]
pub struct Palette {
    /// In the order of first appearance.
    names: Vec<String>,
}

impl Palette {
    /// Assigns colours in the order in which names appear in the experiment's figures and axes, so
    /// that they don't depend on the existing rows.
    pub fn of(experiment: &Experiment) -> Self {
        let mut names: Vec<String> = Vec::new();
        for figure in &experiment.figures {
            let keys: Vec<String> = if figure.series.is_empty() {
                match &figure.kind {
                    FigureKind::Line { y, .. }
                    | FigureKind::Bar { y, .. }
                    | FigureKind::Series { y } => y.clone(),
                    FigureKind::Cdf { group, .. } => vec![group.clone()],
                }
            } else {
                let groups = Selected::new(experiment, &figure.select).groups(&figure.series);
                groups.into_iter().map(|(name, _)| name).collect()
            };
            for key in keys {
                if !names.contains(&key) {
                    names.push(key);
                }
            }
        }
        Self { names }
    }

    /// The style of a name: labels of a figure's series axes, separated by commas, or without such
    /// axes a measure or group. Unknown names look like the first.
    pub fn style(&self, name: &str) -> Style {
        let place = self.names.iter().position(|known| known == name);
        let place = place.unwrap_or(0);
        Style {
            color: COLOURS[place % COLOURS.len()],
            symbol: place + place / COLOURS.len(),
        }
    }
}

impl Style {
    /// Marker of a line.
    pub(super) fn marker(self) -> MarkerSymbol {
        match self.symbol % 6 {
            0 => MarkerSymbol::Circle,
            1 => MarkerSymbol::Square,
            2 => MarkerSymbol::Diamond,
            3 => MarkerSymbol::TriangleUp,
            4 => MarkerSymbol::X,
            _ => MarkerSymbol::TriangleDown,
        }
    }
}

/// Dashes of the `place`th of several measures in the same colour.
pub(super) fn dash(place: usize) -> DashType {
    match place % 4 {
        0 => DashType::Solid,
        1 => DashType::Dash,
        2 => DashType::Dot,
        _ => DashType::DashDot,
    }
}

/// Hatching of the `place`th of several measures in the same colour.
pub(super) fn pattern(place: usize) -> PatternShape {
    match place % 4 {
        0 => PatternShape::None,
        1 => PatternShape::RightDiagonalLine,
        2 => PatternShape::Dot,
        _ => PatternShape::DiagonalCross,
    }
}
