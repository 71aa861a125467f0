//! Selection of the rows that a test needs.

use std::collections::BTreeMap;

use crate::scenario::{Against, Compare, Experiment, Selection, Test};
use crate::store::Table;

/// Most missing runs that are listed.
const EXAMPLES: usize = 3;

/// Rows by case and repeat.
pub(super) struct Rows<'a> {
    experiment: &'a Experiment,
    cases: BTreeMap<&'a [String], usize>,
    values: BTreeMap<(usize, u32), &'a [Option<f64>]>,
    columns: BTreeMap<&'a str, usize>,
}

/// A combination of the labels of `each`, with its cases.
pub(super) struct Point {
    /// Axis and label, in the order of `each`.
    pub(super) labels: Vec<(String, String)>,
    /// Averaged cases, each with the case that it is compared with.
    cells: Vec<(usize, Option<usize>)>,
}

/// The values of a point, one for each repeat, averaged over its cases.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Values {
    pub(super) own: Vec<f64>,
    /// The other side of the comparison, by the same repeats.
    pub(super) others: Option<Vec<f64>>,
}

/// Data that a test lacks.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Missing {
    /// Runs (a measure of a run each) that are needed.
    pub(super) needed: usize,
    /// Of these, runs that do not exist.
    pub(super) absent: usize,
    /// Of these, runs without a value.
    pub(super) empty: usize,
    /// The first few of these, as text.
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

    /// The values of a point, or `None` if some are missing, which are recorded in `missing`.
    pub(super) fn values(
        &self,
        test: &Test,
        point: &Point,
        missing: &mut Missing,
    ) -> Option<Values> {
        let other_measure = against(&test.compare)
            .and_then(|against| against.measure.as_ref())
            .unwrap_or(&test.measure);
        let own: Vec<usize> = point.cells.iter().map(|cell| cell.0).collect();
        let others: Vec<usize> = point.cells.iter().filter_map(|cell| cell.1).collect();
        let own = self.average(&test.measure, &own, missing);
        if others.is_empty() {
            return Some(Values {
                own: own?,
                others: None,
            });
        }
        let others = self.average(other_measure, &others, missing);
        Some(Values {
            own: own?,
            others: Some(others?),
        })
    }

    /// For each repeat the mean of a measure over cases.
    fn average(&self, measure: &str, cases: &[usize], missing: &mut Missing) -> Option<Vec<f64>> {
        let column = self.columns.get(measure).copied();
        let count = cases.len() as f64;
        let mut complete = true;
        let mut means = Vec::new();
        for repeat in 0..self.experiment.repeats {
            let mut sum = 0.0;
            for &case in cases {
                missing.needed += 1;
                let row = self.values.get(&(case, repeat));
                missing.absent += usize::from(row.is_none());
                let value = column.and_then(|column| *row?.get(column)?);
                if row.is_some() && value.is_none() {
                    missing.empty += 1;
                    if missing.examples.len() < EXAMPLES {
                        missing.examples.push(self.place(measure, case, repeat));
                    }
                }
                complete &= value.is_some();
                sum += value.unwrap_or_default();
            }
            means.push(sum / count);
        }
        complete.then_some(means)
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
