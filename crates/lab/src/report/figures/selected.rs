//! The cases of a figure, and their grouping by the labels of axes.

use std::collections::BTreeMap;

use crate::scenario::{Experiment, Figure, FigureKind, Selection};

/// A subset of the cases of an experiment.
#[derive(Clone, Debug)]
pub struct Selected<'a> {
    experiment: &'a Experiment,
    select: &'a Selection,
    cases: Vec<usize>,
}

impl<'a> Selected<'a> {
    /// The cases that have all labels of `select`. Axes that don't exist exclude nothing.
    pub fn new(experiment: &'a Experiment, select: &'a Selection) -> Self {
        let has = |case: usize| {
            select.iter().all(|(axis, label)| {
                axis_place(experiment, axis)
                    .is_none_or(|place| experiment.cases[case].labels.get(place) == Some(label))
            })
        };
        Self {
            experiment,
            select,
            cases: (0..experiment.cases.len()).filter(|&c| has(c)).collect(),
        }
    }

    /// Their indices in [`Experiment::cases`], ascending.
    pub fn cases(&self) -> impl Iterator<Item = usize> + '_ {
        self.cases.iter().copied()
    }

    pub(super) fn indices(&self) -> &[usize] {
        &self.cases
    }

    /// Groups the cases by their labels of `axes`, in the order of the axes' labels. Each group has
    /// its labels, separated by commas, as its name; without axes there is one group without a
    /// name.
    pub fn groups(&self, axes: &[String]) -> Vec<(String, Selected<'a>)> {
        let places: Vec<usize> = axes
            .iter()
            .filter_map(|axis| axis_place(self.experiment, axis))
            .collect();
        let mut parts: BTreeMap<Vec<usize>, (String, Vec<usize>)> = BTreeMap::new();
        for &case in &self.cases {
            let labels = &self.experiment.cases[case].labels;
            let rank = |place: usize| {
                let label = labels.get(place)?;
                let known = &self.experiment.axes[place].labels;
                known.iter().position(|other| other == label)
            };
            let key = places
                .iter()
                .map(|&p| rank(p).unwrap_or(usize::MAX))
                .collect();
            let name = || {
                let labels: Vec<&str> = places
                    .iter()
                    .filter_map(|&place| labels.get(place).map(String::as_str))
                    .collect();
                labels.join(", ")
            };
            let part = parts.entry(key).or_insert_with(|| (name(), Vec::new()));
            part.1.push(case);
        }
        parts
            .into_values()
            .map(|(name, cases)| {
                let part = Selected {
                    experiment: self.experiment,
                    select: self.select,
                    cases,
                };
                (name, part)
            })
            .collect()
    }

    /// Names of axes with several labels among these cases, except those in `named`.
    pub(super) fn others(&self, named: &[&[String]]) -> Vec<String> {
        let several = |place: usize| {
            let label = |&case: &usize| self.experiment.cases[case].labels.get(place);
            self.cases
                .iter()
                .map(label)
                .any(|l| l != self.cases.first().and_then(label))
        };
        self.experiment
            .axes
            .iter()
            .enumerate()
            .filter(|(place, axis)| {
                !named.iter().any(|names| names.contains(&axis.name)) && several(*place)
            })
            .map(|(_, axis)| axis.name.clone())
            .collect()
    }

    /// Axes that `figure` names and the experiment lacks.
    pub(super) fn unknown<'f>(&self, figure: &'f Figure) -> Vec<&'f str> {
        let x = match &figure.kind {
            FigureKind::Line { x, .. } | FigureKind::Bar { x, .. } => Some(x),
            FigureKind::Cdf { .. } | FigureKind::Series { .. } => None,
        };
        figure
            .series
            .iter()
            .chain(&figure.panels)
            .chain(figure.select.keys())
            .chain(x)
            .filter(|axis| axis_place(self.experiment, axis).is_none())
            .map(String::as_str)
            .collect()
    }
}

fn axis_place(experiment: &Experiment, name: &str) -> Option<usize> {
    experiment.axes.iter().position(|axis| axis.name == name)
}
