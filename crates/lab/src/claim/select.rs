//! Selection of the rows that a test needs.

use std::collections::BTreeMap;

use crate::scenario::{Against, Compare, Experiment, Selected, Selection, Test};
use crate::store::Table;

/// Most runs with nothing to measure that are listed.
const EXAMPLES: usize = 3;

/// The rows of an experiment by case and repeat.
#[derive(Debug)]
pub struct Rows<'a> {
    experiment: &'a Experiment,
    cases: BTreeMap<&'a [String], usize>,
    values: BTreeMap<(usize, u32), &'a [Option<f64>]>,
    columns: BTreeMap<&'a str, usize>,
}

/// A measure of one run.
#[derive(Clone, Copy)]
enum Measured {
    Value(f64),
    /// The run had nothing to measure.
    Empty,
    /// There is no such row.
    Absent,
}

/// A combination of the labels of `each`, with its cases.
pub(super) struct Point {
    /// Axis and label, in the order of `each`.
    pub(super) labels: Vec<(String, String)>,
    /// Averaged cases.
    cells: Vec<Cell>,
}

/// A case of a point.
struct Cell {
    case: usize,
    /// The case that it is compared with.
    other: Option<usize>,
    /// Its weight in the mean.
    weight: f64,
}

/// The values of a point, one for each repeat that has any, averaged over its cases.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Values {
    /// The repeats, rising.
    pub(super) repeats: Vec<u32>,
    pub(super) own: Vec<f64>,
    /// The other side of the comparison, by the same repeats.
    pub(super) others: Option<Vec<f64>>,
}

/// The runs that a test needs: those of one case, or the pairs of runs of two cases that are compared, which have
/// the same seed.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Needed {
    /// Runs or pairs in all.
    pub(super) total: usize,
    /// Of these, how many were not run.
    pub(super) absent: usize,
    /// Of these, how many had nothing to measure.
    pub(super) empty: usize,
    /// The first few of the latter, as text.
    pub(super) examples: Vec<String>,
}

impl<'a> Rows<'a> {
    /// Indexes the rows of `table`.
    pub fn new(experiment: &'a Experiment, table: &'a Table) -> Self {
        let cases = experiment.cases.iter().enumerate();
        let rows = table.rows.iter();
        let columns = table.measures.iter().enumerate();
        Self {
            experiment,
            cases: cases
                .map(|(index, case)| (case.labels.as_slice(), index))
                .collect(),
            values: rows
                .map(|row| ((row.run.case, row.run.repeat), row.values.as_slice()))
                .collect(),
            columns: columns
                .map(|(index, name)| (name.as_str(), index))
                .collect(),
        }
    }

    /// The cases that have labels of `select`.
    pub fn selected(&self, select: &Selection) -> Selected<'a> {
        Selected::new(self.experiment, select)
    }

    /// The points of a test in `cases`, without those for which the experiment has no cases: excluded
    /// combinations, or labels that the short form doesn't have.
    pub(super) fn points(&self, test: &Test, cases: &Selected<'_>) -> Vec<Point> {
        let against = against(&test.compare);
        let groups = cases.grouped(&test.each).into_iter();
        let points = groups.map(|(labels, part)| {
            let values = labels.into_iter().map(str::to_owned);
            let mut cells = Vec::new();
            let parts = part.grouped(&test.average_fields());
            let is_one = parts.len() == 1;
            for (_, part) in parts {
                let found = part.cases().iter().filter_map(|&case| match against {
                    None => Some((case, None)),
                    Some(against) => Some((case, Some(self.other(case, against)?))),
                });
                let found: Vec<_> = found.collect();
                let weight = if is_one {
                    1.0
                } else {
                    1.0 / found.len() as f64
                };
                cells.extend(found.into_iter().map(|(case, other)| Cell {
                    case,
                    other,
                    weight,
                }));
            }
            Point {
                labels: test.each.iter().cloned().zip(values).collect(),
                cells,
            }
        });
        points.filter(|point| !point.cells.is_empty()).collect()
    }

    /// The values of a point. Runs or pairs that were not run, or had nothing to measure, are recorded in
    /// `needed` and left out, on both sides of a comparison alike.
    pub(super) fn values(&self, test: &Test, point: &Point, needed: &mut Needed) -> Values {
        let other_measure = against(&test.compare)
            .and_then(|against| against.measure.as_ref())
            .unwrap_or(&test.measure);
        let is_compared = point.cells.iter().any(|cell| cell.other.is_some());
        let mut values = Values {
            repeats: Vec::new(),
            own: Vec::new(),
            others: is_compared.then(Vec::new),
        };
        for repeat in 0..self.experiment.repeats {
            let (mut own, mut others, mut weights) = (0.0, 0.0, 0.0);
            for cell in &point.cells {
                let &Cell {
                    case,
                    other,
                    weight,
                } = cell;
                needed.total += 1;
                let first = self.value(&test.measure, case, repeat);
                let second = other.map(|other| self.value(other_measure, other, repeat));
                match (first, second) {
                    (Measured::Value(value), None) => own += weight * value,
                    (Measured::Value(value), Some(Measured::Value(other))) => {
                        own += weight * value;
                        others += weight * other;
                    }
                    (Measured::Absent, _) | (_, Some(Measured::Absent)) => {
                        needed.absent += 1;
                        continue;
                    }
                    (first, _) => {
                        let (measure, case) = match (first, other) {
                            (Measured::Value(_), Some(other)) => (other_measure, other),
                            _ => (&test.measure, case),
                        };
                        needed.empty += 1;
                        if needed.examples.len() < EXAMPLES {
                            needed.examples.push(self.place(measure, case, repeat));
                        }
                        continue;
                    }
                }
                weights += weight;
            }
            if weights > 0.0 {
                values.repeats.push(repeat);
                values.own.push(own / weights);
                if let Some(list) = &mut values.others {
                    list.push(others / weights);
                }
            }
        }
        values
    }

    /// A measure of one run.
    fn value(&self, measure: &str, case: usize, repeat: u32) -> Measured {
        let Some(row) = self.values.get(&(case, repeat)) else {
            return Measured::Absent;
        };
        let column = self.columns.get(measure);
        let value = column.and_then(|&column| *row.get(column)?);
        value.map_or(Measured::Empty, Measured::Value)
    }

    /// A measure of a run, such as `jain at cc=cubic, repeat 2`.
    fn place(&self, measure: &str, case: usize, repeat: u32) -> String {
        let axes = self.experiment.axes.iter();
        let labels = axes.zip(&self.experiment.cases[case].labels);
        let mut place: Vec<String> = labels
            .map(|(axis, label)| format!("{}={label}", axis.name))
            .collect();
        place.push(format!("repeat {repeat}"));
        format!("{measure} at {}", place.join(", "))
    }

    /// The case that `case` is compared with.
    fn other(&self, case: usize, against: &Against) -> Option<usize> {
        let own = self.experiment.axes.iter();
        let own = own.zip(&self.experiment.cases[case].labels);
        let labels: Vec<String> = own
            .map(|(axis, label)| against.select.get(&axis.name).unwrap_or(label).clone())
            .collect();
        self.cases.get(labels.as_slice()).copied()
    }
}

impl Point {
    /// Such as `buffer=20bdp, rival=bbr1`.
    pub(super) fn place(&self) -> String {
        let labels = self.labels.iter();
        let labels: Vec<_> = labels
            .map(|(axis, label)| format!("{axis}={label}"))
            .collect();
        labels.join(", ")
    }
}

fn against(compare: &Compare) -> Option<&Against> {
    match compare {
        Compare::Value => None,
        Compare::Ratio(against) | Compare::Change(against) | Compare::Difference(against) => {
            Some(against)
        }
    }
}
