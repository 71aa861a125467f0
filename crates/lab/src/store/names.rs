//! How the files of a folder of results are called.

use std::path::{Path, PathBuf};

use crate::scenario::Run;

/// Held by the process that writes.
pub(super) const LOCK: &str = ".lock";
/// What the rows belong to.
pub(super) const MANIFEST: &str = "manifest.json";
/// One line for each finished run.
pub(super) const ROWS: &str = "rows.csv";
/// What each run cost.
pub(super) const TIMING: &str = "timing.csv";
/// Folder of time series.
pub(super) const SERIES: &str = "series";
/// Folder of samples.
pub(super) const SAMPLES: &str = "samples";
/// How the claims fared.
pub(super) const VERDICTS: &str = "verdicts.json";
/// The page for people.
pub(super) const REPORT: &str = "report.html";
/// The page of a collection, in the folder above.
pub(super) const INDEX: &str = "index.html";
/// The rows once more, in columns.
pub(super) const PARQUET: &str = "rows.parquet";
/// Folders of results that were put aside: `old-1`, `old-2` ...
pub(super) const OLD: &str = "old-";

/// Everything that is put aside when results are begun anew. The manifest comes first: rows without
/// it are never taken for anything.
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
