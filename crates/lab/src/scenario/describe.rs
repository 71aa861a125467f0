//! Summary of an experiment, for lists.

use std::time::Duration;

use serde::Serialize;

use super::claim::Verifiable;
use super::{Axis, Experiment};

/// Size and content of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Description {
    /// [`Experiment::name`].
    pub name: String,
    /// [`Experiment::title`].
    pub title: String,
    /// [`Experiment::source`].
    pub source: String,
    /// [`Experiment::about`].
    pub about: String,
    /// Whether this is the short form.
    pub quick: bool,
    /// The axes.
    pub axes: Vec<Axis>,
    /// Points of the grid.
    pub cases: usize,
    /// Cases times repeats.
    pub runs: u64,
    /// Longest total virtual time of all runs: runs may end early.
    pub simulated: Duration,
    /// Claims that are tested.
    pub claims: usize,
    /// Claims that can't be tested.
    pub untestable: usize,
    /// Figures.
    pub figures: usize,
}

/// Describes an experiment.
pub fn describe(experiment: &Experiment) -> Description {
    let untestable = experiment
        .claims
        .iter()
        .filter(|claim| matches!(claim.test, Verifiable::No(_)))
        .count();
    let once: Duration = experiment
        .cases
        .iter()
        .map(|case| case.setup.duration)
        .sum();
    Description {
        name: experiment.name.clone(),
        title: experiment.title.clone(),
        source: experiment.source.clone(),
        about: experiment.about.clone(),
        quick: experiment.quick,
        axes: experiment.axes.clone(),
        cases: experiment.cases.len(),
        runs: experiment.cases.len() as u64 * u64::from(experiment.repeats),
        simulated: once.saturating_mul(experiment.repeats),
        claims: experiment.claims.len() - untestable,
        untestable,
        figures: experiment.figures.len(),
    }
}
