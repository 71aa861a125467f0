//! A subset of the cases of an experiment, and its grouping by the labels of axes.

use std::collections::BTreeMap;

use super::claim::Selection;
use super::{Axis, AxisField, Experiment};

/// A subset of the cases of an experiment.
#[derive(Clone, Debug)]
pub struct Selected<'a> {
    experiment: &'a Experiment,
    cases: Vec<usize>,
}

/// What distinguishes cases: an axis, or a field of the values of one.
#[derive(Clone, Copy, Debug)]
struct Key<'a> {
    place: usize,
    axis: &'a Axis,
    field: Option<&'a AxisField>,
}

impl<'a> Key<'a> {
    /// `name` is that of an axis, or with a dot after it that of a field.
    fn of(experiment: &'a Experiment, name: &str) -> Option<Self> {
        let (axis, field) = match name.split_once('.') {
            Some((axis, field)) => (axis, Some(field)),
            None => (name, None),
        };
        let mut axes = experiment.axes.iter().enumerate();
        let (place, axis) = axes.find(|(_, known)| known.name == axis)?;
        let field = match field {
            None => None,
            Some(field) => Some(axis.fields.iter().find(|known| known.name == field)?),
        };
        Some(Self { place, axis, field })
    }

    /// What a label counts as.
    fn value(&self, label: usize) -> Option<&'a str> {
        match self.field {
            None => self.axis.labels.get(label).map(String::as_str),
            Some(field) => field.values.get(label)?.as_deref(),
        }
    }

    /// The position of a case among the values, by the first label that has it, and the value.
    fn rank(&self, experiment: &Experiment, case: usize) -> (usize, &'a str) {
        let label = experiment.cases[case].labels.get(self.place);
        let labels = &self.axis.labels;
        let value = label
            .and_then(|label| labels.iter().position(|known| known == label))
            .and_then(|label| self.value(label));
        let first = (0..labels.len()).find(|&label| self.value(label) == value);
        (first.unwrap_or(usize::MAX), value.unwrap_or_default())
    }
}

impl<'a> Selected<'a> {
    /// The cases that have labels of `select`. Axes that don't exist exclude nothing.
    pub fn new(experiment: &'a Experiment, select: &Selection) -> Self {
        let has = |case: &usize| {
            select.iter().all(|(axis, labels)| {
                Key::of(experiment, axis).is_none_or(|key| {
                    let label = experiment.cases[*case].labels.get(key.place);
                    label.is_some_and(|label| labels.contains(label))
                })
            })
        };
        Self {
            experiment,
            cases: (0..experiment.cases.len()).filter(has).collect(),
        }
    }

    /// Those of them that have labels of `select`.
    #[must_use]
    pub fn within(&self, select: &Selection) -> Self {
        let all = Self::new(self.experiment, select);
        let cases = self.cases.iter().copied();
        Self {
            experiment: self.experiment,
            cases: cases
                .filter(|case| all.cases.binary_search(case).is_ok())
                .collect(),
        }
    }

    /// Their indices in [`Experiment::cases`], ascending.
    pub fn cases(&self) -> &[usize] {
        &self.cases
    }

    /// Groups the cases by what they are in each of `keys`, axes or fields of axes, in the order of the axes' labels.
    /// Each group has the values of its keys; without keys there is one group.
    pub fn grouped(&self, keys: &[String]) -> Vec<(Vec<&'a str>, Selected<'a>)> {
        let keys = keys.iter().filter_map(|key| Key::of(self.experiment, key));
        let keys: Vec<Key<'a>> = keys.collect();
        let mut parts: BTreeMap<Vec<(usize, &'a str)>, Vec<usize>> = BTreeMap::new();
        for &case in &self.cases {
            let ranks = keys.iter().map(|key| key.rank(self.experiment, case));
            parts.entry(ranks.collect()).or_default().push(case);
        }
        parts
            .into_iter()
            .map(|(ranks, cases)| {
                let values = ranks.into_iter().map(|(_, value)| value).collect();
                let part = Selected {
                    experiment: self.experiment,
                    cases,
                };
                (values, part)
            })
            .collect()
    }

    /// [`Self::grouped`], each group with its values, separated by commas, as its name.
    pub fn groups(&self, keys: &[String]) -> Vec<(String, Selected<'a>)> {
        let groups = self.grouped(keys).into_iter();
        groups
            .map(|(values, part)| (values.join(", "), part))
            .collect()
    }

    /// Names of axes with several labels among these cases, except those in `named`.
    pub fn others(&self, named: &[&[String]]) -> Vec<String> {
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

    /// Those of `names` that are neither an axis of the experiment nor a field of one.
    pub fn unknown<'n>(&self, names: impl IntoIterator<Item = &'n String>) -> Vec<&'n str> {
        let names = names.into_iter();
        names
            .filter(|name| Key::of(self.experiment, name).is_none())
            .map(String::as_str)
            .collect()
    }
}
