//! Means over repeats, and their spread.

use std::collections::BTreeMap;

use crate::claim::half_width;
use crate::scenario::Experiment;
use crate::store::{Row, Table};

/// Meaning of the error bars of an experiment's figures.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ErrorBars {
    /// None: one repeat.
    None,
    /// Smallest to largest repeat: 2 to 4 repeats.
    Range,
    /// 95 % confidence interval of the mean (Student's t): 5 repeats or more.
    Interval,
}

impl ErrorBars {
    /// The kind for so many repeats.
    pub fn of(repeats: u32) -> Self {
        match repeats {
            0 | 1 => Self::None,
            2..=4 => Self::Range,
            _ => Self::Interval,
        }
    }

    /// Description of the bars, for the text below a figure.
    pub fn describe(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Range => Some("Bars: smallest to largest repeat."),
            Self::Interval => Some("Bars: 95 % confidence interval of the mean over repeats."),
        }
    }
}

/// One measure at one position.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// Mean over repeats of each case, then over cases; `None` if a case has no value.
    pub mean: Option<f64>,
    /// Lower end of the error bar.
    pub low: f64,
    /// Upper end of the error bar.
    pub high: f64,
    /// Repeats that all cases have.
    pub repeats: usize,
}

/// The rows of an experiment by case.
#[derive(Debug)]
pub struct Means<'a> {
    table: &'a Table,
    by_case: BTreeMap<usize, Vec<&'a Row>>,
    bars: ErrorBars,
}

impl<'a> Means<'a> {
    /// Sorts the rows; rows of unknown cases are left out.
    pub fn new(experiment: &Experiment, table: &'a Table) -> Self {
        let mut by_case: BTreeMap<usize, Vec<&Row>> = BTreeMap::new();
        for row in &table.rows {
            if row.run.case < experiment.cases.len() {
                by_case.entry(row.run.case).or_default().push(row);
            }
        }
        Self {
            table,
            by_case,
            bars: ErrorBars::of(experiment.repeats),
        }
    }

    /// Meaning of the error bars.
    pub fn bars(&self) -> ErrorBars {
        self.bars
    }

    /// The column of a measure.
    pub fn column(&self, measure: &str) -> Option<usize> {
        self.table.measures.iter().position(|name| name == measure)
    }

    /// Number of repeats of a case.
    pub fn repeats(&self, case: usize) -> usize {
        self.by_case.get(&case).map_or(0, Vec::len)
    }

    /// Values of one case by repeat, those that exist.
    fn values(&self, case: usize, column: usize) -> BTreeMap<u32, f64> {
        let rows = self.by_case.get(&case).map_or(&[][..], Vec::as_slice);
        rows.iter()
            .filter_map(|row| Some((row.run.repeat, (*row.values.get(column)?)?)))
            .collect()
    }

    /// The mean of a column over `cases`, with its error bar.
    pub fn point(&self, cases: &[usize], column: usize) -> Point {
        let values: Vec<_> = cases.iter().map(|&c| self.values(c, column)).collect();
        if values.is_empty() || values.iter().any(BTreeMap::is_empty) {
            return Point::default();
        }
        let case_means: Vec<f64> = values
            .iter()
            .map(|of_case| mean(&of_case.values().copied().collect::<Vec<_>>()))
            .collect();
        let centre = mean(&case_means);
        let by_repeat: Vec<f64> = values[0]
            .keys()
            .filter_map(|repeat| {
                let all: Option<Vec<f64>> = values
                    .iter()
                    .map(|of_case| of_case.get(repeat).copied())
                    .collect();
                Some(mean(&all?))
            })
            .collect();
        let (low, high) = self.bar(centre, &by_repeat);
        Point {
            mean: Some(centre),
            low,
            high,
            repeats: by_repeat.len(),
        }
    }

    fn bar(&self, centre: f64, repeats: &[f64]) -> (f64, f64) {
        match self.bars {
            ErrorBars::Range if repeats.len() > 1 => {
                repeats.iter().fold((centre, centre), |(low, high), &v| {
                    (low.min(v), high.max(v))
                })
            }
            ErrorBars::Interval => {
                let half = half_width(repeats).unwrap_or_default();
                (centre - half, centre + half)
            }
            _ => (centre, centre),
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
