//! Selection of the rows that a test needs.

use std::collections::BTreeMap;

use crate::scenario::{Against, Compare, Experiment, Selection, Test};
use crate::store::Table;

/// Most runs with nothing to measure that are listed.
const EXAMPLES: usize = 3;

/// Rows by case and repeat.
pub(super) struct Rows<'a> {
    experiment: &'a Experiment,
    cases: BTreeMap<&'a [String], usize>,
    values: BTreeMap<(usize, u32), &'a [Option<f64>]>,
    columns: BTreeMap<&'a str, usize>,
}

/// A measure of one run.
#[derive(Clone, Copy)]
enum Cell {
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
    /// Averaged cases, each with the case that it is compared with.
    cells: Vec<(usize, Option<usize>)>,
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
    pub(super) fn new(experiment: &'a Experiment, table: &'a Table) -> Self {
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

    /// The points of a test, without those for which the experiment has no cases: excluded
    /// combinations, or labels that the short form doesn't have.
    pub(super) fn points(&self, test: &Test) -> Vec<Point> {
        let against = against(&test.compare);
        self.combinations(&test.each)
            .into_iter()
            .map(|labels| {
                let mut base = test.select.clone();
                base.extend(labels.iter().cloned());
                let cells = self
                    .combinations(&test.average)
                    .into_iter()
                    .filter_map(|averaged| {
                        let mut own = base.clone();
                        own.extend(averaged);
                        let Some(against) = against else {
                            return Some((self.case(&own)?, None));
                        };
                        let mut other = own.clone();
                        other.extend(against.select.clone());
                        Some((self.case(&own)?, Some(self.case(&other)?)))
                    })
                    .collect();
                Point { labels, cells }
            })
            .filter(|point| !point.cells.is_empty())
            .collect()
    }

    /// The values of a point. Runs or pairs that were not run, or had nothing to measure, are recorded in
    /// `needed` and left out, on both sides of a comparison alike.
    pub(super) fn values(&self, test: &Test, point: &Point, needed: &mut Needed) -> Values {
        let other_measure = against(&test.compare)
            .and_then(|against| against.measure.as_ref())
            .unwrap_or(&test.measure);
        let is_compared = point.cells.iter().any(|cell| cell.1.is_some());
        let mut values = Values {
            repeats: Vec::new(),
            own: Vec::new(),
            others: is_compared.then(Vec::new),
        };
        for repeat in 0..self.experiment.repeats {
            let (mut own, mut others, mut count) = (0.0, 0.0, 0.0);
            for &(case, other) in &point.cells {
                needed.total += 1;
                let first = self.value(&test.measure, case, repeat);
                let second = other.map(|other| self.value(other_measure, other, repeat));
                match (first, second) {
                    (Cell::Value(value), None) => own += value,
                    (Cell::Value(value), Some(Cell::Value(other))) => {
                        own += value;
                        others += other;
                    }
                    (Cell::Absent, _) | (_, Some(Cell::Absent)) => {
                        needed.absent += 1;
                        continue;
                    }
                    (first, _) => {
                        let (measure, case) = match (first, other) {
                            (Cell::Value(_), Some(other)) => (other_measure, other),
                            _ => (&test.measure, case),
                        };
                        needed.empty += 1;
                        if needed.examples.len() < EXAMPLES {
                            needed.examples.push(self.place(measure, case, repeat));
                        }
                        continue;
                    }
                }
                count += 1.0;
            }
            if count > 0.0 {
                values.repeats.push(repeat);
                values.own.push(own / count);
                if let Some(list) = &mut values.others {
                    list.push(others / count);
                }
            }
        }
        values
    }

    /// A measure of one run.
    fn value(&self, measure: &str, case: usize, repeat: u32) -> Cell {
        let Some(row) = self.values.get(&(case, repeat)) else {
            return Cell::Absent;
        };
        let column = self.columns.get(measure);
        let value = column.and_then(|&column| *row.get(column)?);
        value.map_or(Cell::Empty, Cell::Value)
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

    /// The case with these labels.
    fn case(&self, labels: &Selection) -> Option<usize> {
        let labels: Vec<String> = self
            .experiment
            .axes
            .iter()
            .map(|axis| labels.get(&axis.name).cloned())
            .collect::<Option<_>>()?;
        self.cases.get(labels.as_slice()).copied()
    }

    /// Every combination of the labels of some axes; a single empty one for no axes.
    fn combinations(&self, axes: &[String]) -> Vec<Vec<(String, String)>> {
        let mut all = vec![Vec::new()];
        for name in axes {
            let axis = self.experiment.axes.iter().find(|axis| axis.name == *name);
            let labels = axis.map_or(&[][..], |axis| &axis.labels);
            all = all
                .into_iter()
                .flat_map(|before: Vec<(String, String)>| {
                    labels.iter().map(move |label| {
                        let mut next = before.clone();
                        next.push((name.clone(), label.clone()));
                        next
                    })
                })
                .collect();
        }
        all
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
