//! The data of a report, and the files that have to be read for it.

use std::collections::BTreeSet;

use crate::claim::Verdict;
use crate::record::{Sample, Series};
use crate::scenario::{Experiment, FigureKind, Run, Selected};
use crate::store::Table;

/// All data of a page.
#[derive(Clone, Copy, Debug)]
pub struct ReportData<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// Its rows, possibly incomplete.
    pub table: &'a Table,
    /// Time series of the runs of [`Needs::series`] that are finished.
    pub series: &'a [(Run, Series)],
    /// Samples of the runs of [`Needs::samples`] that are finished.
    pub samples: &'a [(Run, Vec<Sample>)],
    /// The verdicts.
    pub verdicts: &'a [Verdict],
    /// RowsOrigin of the rows.
    pub origin: &'a RowsOrigin,
}

/// RowsOrigin of rows. Unknown values are left out of the page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowsOrigin {
    /// The command; by default the plain one is shown.
    pub command: Option<String>,
    /// Version of the program that produced the rows.
    pub version: Option<String>,
    /// [`Manifest::commits`](crate::store::Manifest::commits).
    pub commits: Vec<String>,
    /// Seconds that the runs took on the wall clock, summed over runs (not over cores).
    pub wall_s: Option<f64>,
    /// Virtual seconds simulated, summed over runs.
    pub simulated_s: Option<f64>,
}

/// Runs for which more than the row is needed, in order, each once.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Needs {
    /// Time series: the first repeat of the cases shown over time.
    pub series: Vec<Run>,
    /// Samples: every repeat of the cases whose distribution is shown.
    pub samples: Vec<Run>,
}

/// The runs whose time series and samples the figures of `experiment` show.
pub fn needs(experiment: &Experiment) -> Needs {
    let mut over_time = BTreeSet::new();
    let mut sampled = BTreeSet::new();
    for figure in &experiment.figures {
        let cases = match &figure.kind {
            FigureKind::Series { .. } => &mut over_time,
            FigureKind::Cdf { .. } => &mut sampled,
            FigureKind::Line { .. } | FigureKind::Bar { .. } => continue,
        };
        cases.extend(Selected::new(experiment, &figure.select).cases());
    }
    let runs = |cases: &BTreeSet<usize>, repeats: u32| {
        experiment
            .runs()
            .filter(|run| run.repeat < repeats && cases.contains(&run.case))
            .collect()
    };
    Needs {
        series: runs(&over_time, 1),
        samples: runs(&sampled, experiment.repeats),
    }
}
