//! The results of an experiment, for a document.

use crate::claim::{Verdict, evaluate};
use crate::report::measured_table::{MeasuredTable, measured_tables};
use crate::scenario::Experiment;
use crate::store::{Results, StoreError};

/// The results of an experiment, with what a document says about their origin. Nothing of it differs between runs that
/// have the same rows: no times, no costs.
#[derive(Clone, Debug)]
pub struct Documented {
    /// The experiment.
    pub experiment: Experiment,
    /// Its claims.
    pub verdicts: Vec<Verdict>,
    /// Its tables.
    pub tables: Vec<MeasuredTable>,
    /// [`Manifest::commits`](crate::store::Manifest::commits).
    pub commits: Vec<String>,
    /// Version of the program that produced the rows.
    pub version: String,
    /// Overridden axes and keys of the scenario.
    pub settings: Vec<(String, String)>,
    /// Rows of each case.
    pub rows: Vec<usize>,
}

impl Documented {
    /// Evaluates results, which are those of `experiment`.
    pub fn new(experiment: Experiment, results: &Results) -> Result<Self, StoreError> {
        let table = results.table()?;
        let manifest = results.manifest();
        let mut rows = vec![0; experiment.cases.len()];
        for row in &table.rows {
            if let Some(count) = rows.get_mut(row.run.case) {
                *count += 1;
            }
        }
        let origin = manifest.origin.as_ref();
        Ok(Self {
            verdicts: evaluate(&experiment, &table),
            tables: measured_tables(&experiment, &table),
            commits: manifest.commits.clone(),
            version: manifest.program.clone(),
            settings: origin.map_or_else(Vec::new, |origin| origin.set.clone()),
            rows,
            experiment,
        })
    }

    /// Runs that have a row.
    pub(super) fn present(&self) -> usize {
        self.rows.iter().sum()
    }

    /// `700 of 700`.
    pub(super) fn runs(&self) -> String {
        format!("{} of {}", self.present(), self.experiment.runs().count())
    }

    /// `5 of 5`, the least of any case of those that were asked for; with what the scenario asks for if that differs.
    pub(super) fn repeats(&self) -> String {
        let least = self.rows.iter().min().copied().unwrap_or_default();
        let most = self.rows.iter().max().copied().unwrap_or_default();
        let (asked, planned) = (self.experiment.repeats, self.experiment.planned_repeats);
        let present = if least == most {
            least.to_string()
        } else {
            format!("{least} to {most}")
        };
        let planned = if asked == planned {
            String::new()
        } else {
            format!(" (the scenario asks for {planned})")
        };
        format!("{present} of {asked}{planned}")
    }

    /// `1 to 5`.
    pub(super) fn seeds(&self) -> String {
        let first = self.experiment.seed;
        match u64::from(self.experiment.repeats.saturating_sub(1)) {
            0 => first.to_string(),
            more => format!("{first} to {}", first.wrapping_add(more)),
        }
    }

    /// The commits of its rows.
    pub(super) fn commits(&self) -> String {
        match self.commits.as_slice() {
            [] => "not recorded".to_owned(),
            commits => {
                let quoted = commits.iter().map(|commit| format!("`{commit}`"));
                quoted.collect::<Vec<_>>().join(" and ")
            }
        }
    }
}
