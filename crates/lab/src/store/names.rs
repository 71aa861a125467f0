//! Names of the files in a folder of results.

use std::path::{Path, PathBuf};

use crate::scenario::Run;

/// Locked by the process that writes.
pub(super) const LOCK: &str = ".lock";
/// The manifest.
pub(super) const MANIFEST: &str = "manifest.json";
/// One line for each finished run.
pub(super) const ROWS: &str = "rows.csv";
/// The cost of each run.
pub(super) const TIMING: &str = "timing.csv";
/// Folder of time series.
pub(super) const SERIES: &str = "series";
/// Folder of samples.
pub(super) const SAMPLES: &str = "samples";
/// The verdicts.
pub(super) const VERDICTS: &str = "verdicts.json";
/// The report.
pub(super) const REPORT: &str = "report.html";
/// The page of the collection, in the folder above.
pub(super) const INDEX: &str = "index.html";
/// The rows in columnar form.
pub(super) const PARQUET: &str = "rows.parquet";
/// Folders of moved results: `old-1`, `old-2` ...
pub(super) const OLD: &str = "old-";

/// Everything that is moved when results are started again. The manifest comes first: rows without
/// it are never used.
pub(super) const ALL: [&str; 8] = [
    MANIFEST, ROWS, TIMING, SERIES, SAMPLES, VERDICTS, REPORT, PARQUET,
];

/// The file of a run's time series.
pub(super) fn series(folder: &Path, run: Run) -> PathBuf {
    folder.join(SERIES).join(of(run))
}

/// The file of a run's samples.
pub(super) fn samples(folder: &Path, run: Run) -> PathBuf {
    folder.join(SAMPLES).join(of(run))
}

fn of(run: Run) -> String {
    format!("{}-{}.csv", run.case, run.repeat)
}
