//! The rows that an experiment has, and their files.

use std::collections::BTreeMap;

use super::Row;
use crate::scenario::{App, Experiment, Run, Setup};
use crate::world;

/// The columns of the rows of an experiment.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) cases: Vec<CaseShape>,
    seed: u64,
}

/// The columns of the rows of a case.
#[derive(Debug)]
pub(super) struct CaseShape {
    pub(super) labels: Vec<String>,
    /// For each measure of the case, its index among those of all cases.
    pub(super) places: Vec<usize>,
    /// Whether a run has a file of time series.
    pub(super) series: bool,
    /// Whether a run has a file of samples.
    pub(super) samples: bool,
}

impl Shape {
    /// The shape of `experiment`, and the measures of all cases.
    pub(super) fn of(experiment: &Experiment) -> (Self, Vec<String>) {
        let mut measures: Vec<String> = Vec::new();
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        let cases = experiment.cases.iter().map(|case| {
            let names = world::measures(&case.setup);
            let of_case = names.into_iter().map(|name| {
                *places.entry(name).or_insert_with_key(|name| {
                    measures.push(name.clone());
                    measures.len() - 1
                })
            });
            CaseShape {
                places: of_case.collect(),
                labels: case.labels.clone(),
                series: case.setup.record.is_some(),
                samples: has_samples(&case.setup),
            }
        });
        let cases = cases.collect();
        let shape = Self {
            cases,
            seed: experiment.seed,
        };
        (shape, measures)
    }

    /// Whether the experiment can have this row, in any repeat.
    pub(super) fn check(&self, row: &Row) -> Result<(), String> {
        let Run { case, repeat, seed } = row.run;
        let Some(expected) = self.cases.get(case) else {
            return Err(format!("there is no case {case}"));
        };
        if expected.labels != row.labels {
            return Err(format!(
                "case {case} is {}, not {}",
                expected.labels.join(", "),
                row.labels.join(", ")
            ));
        }
        if seed != self.seed.wrapping_add(u64::from(repeat)) {
            return Err(format!("repeat {repeat} has another seed than {seed}"));
        }
        Ok(())
    }
}

fn has_samples(setup: &Setup) -> bool {
    setup.flows.iter().any(|flow| {
        matches!(
            flow.app,
            App::Transfer { .. } | App::Poisson { .. } | App::Live { .. }
        )
    })
}
