//! The folder of one experiment's results.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::lock::Lock;
use super::old_results::put_aside;
use super::rows::{self, Columns};
use super::shape::Shape;
use super::timing::{self, Timing};
use super::whole_file::{read_if_there, write_below};
use super::{Manifest, Origin, Row, StoreError, Table, UNKNOWN_COMMIT, names, records, whole_file};
use crate::claim::Verdict;
use crate::record::{Sample, Series};
use crate::scenario::{Experiment, Run};
use crate::world::RunOutcome;

/// Longest interval between syncs of rows to the disk.
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// The results of one experiment: a folder with a row for each finished run.
///
/// One that was [opened](Self::open) is locked and takes new rows; one that was [read](Self::read)
/// shows the existing rows.
#[derive(Debug)]
pub struct Results {
    folder: PathBuf,
    manifest: Manifest,
    columns: Columns,
    shape: Shape,
    repeats: u32,
    rows: BTreeMap<Key, Row>,
    timing: BTreeMap<Key, Timing>,
    /// Commit of the build that adds rows.
    commit: String,
    /// `None` if the results are read-only.
    writing: Option<Writing>,
}

/// Runs by repeat, then case: the order of [`Experiment::runs`].
type Key = (u32, usize);

fn key(run: Run) -> Key {
    (run.repeat, run.case)
}

/// State of a writer.
#[derive(Debug)]
struct Writing {
    /// Held until the results are dropped.
    _lock: Lock,
    rows: File,
    timing: File,
    /// Bytes of complete lines in the file of rows.
    length: u64,
    /// When the oldest unsynced row was written.
    unsynced: Option<Instant>,
}

/// Files that can be appended to. The others must be rewritten first: they are missing, end in a
/// partial line, or have rows whose files are missing.
#[derive(Clone, Copy)]
struct Whole {
    rows: bool,
    timing: bool,
}

impl Results {
    /// Opens `folder` to add rows: a new folder, or one that holds rows of the same experiment,
    /// which are kept. Partial data of a killed process are removed. Only one process can have a
    /// folder open.
    pub fn open(folder: &Path, experiment: &Experiment) -> Result<Self, StoreError> {
        fs::create_dir_all(folder).map_err(StoreError::io(folder))?;
        let lock = Lock::take(folder)?;
        Self::open_locked(folder, experiment, lock)
    }

    /// Opens `folder` like [`Self::open`], after all existing results were moved to a folder
    /// `old-1` inside it (or the next number). Returns that folder, if there was anything.
    pub fn open_fresh(
        folder: &Path,
        experiment: &Experiment,
    ) -> Result<(Self, Option<PathBuf>), StoreError> {
        fs::create_dir_all(folder).map_err(StoreError::io(folder))?;
        let lock = Lock::take(folder)?;
        let old = put_aside(folder)?;
        Ok((Self::open_locked(folder, experiment, lock)?, old))
    }

    /// Reads the contents of `folder`, also while another process adds to it. Nothing is changed.
    pub fn read(folder: &Path, experiment: &Experiment) -> Result<Self, StoreError> {
        let manifest = Manifest::read(folder)?;
        let mut results = Self::empty(folder, experiment);
        let ours = Manifest {
            // Reading can't mix results.
            program: manifest.program.clone(),
            ..results.manifest
        };
        ours.same_rows(&manifest, folder)?;
        results.manifest = manifest;
        results.load()?;
        Ok(results)
    }

    fn open_locked(folder: &Path, experiment: &Experiment, lock: Lock) -> Result<Self, StoreError> {
        let mut results = Self::empty(folder, experiment);
        match Manifest::find(folder)? {
            Some(there) => {
                results.manifest.same_rows(&there, folder)?;
                results.manifest.origin.clone_from(&there.origin);
                results.manifest.commits.clone_from(&there.commits);
                if results.manifest != there {
                    results.manifest.write(folder)?;
                }
            }
            None if folder.join(names::ROWS).exists() => {
                return Err(StoreError::OtherExperiment {
                    folder: folder.to_owned(),
                    difference: "there are rows without a manifest.json".to_owned(),
                });
            }
            None => results.manifest.write(folder)?,
        }
        for name in [names::SERIES, names::SAMPLES] {
            whole_file::remove_parts(&folder.join(name))?;
        }
        whole_file::remove_parts(folder)?;
        let whole = results.load()?;
        if !whole.rows {
            results.write_rows()?;
        }
        if !whole.timing {
            results.write_timing()?;
        }
        let (rows, length) = appending(&folder.join(names::ROWS))?;
        let (timing, _) = appending(&folder.join(names::TIMING))?;
        results.writing = Some(Writing {
            _lock: lock,
            rows,
            timing,
            length,
            unsynced: None,
        });
        Ok(results)
    }

    fn empty(folder: &Path, experiment: &Experiment) -> Self {
        let (shape, measures) = Shape::of(experiment);
        let manifest = Manifest::of(experiment, measures);
        Self {
            folder: folder.to_owned(),
            columns: Columns {
                axes: manifest.axes.clone(),
                measures: manifest.measures.clone(),
            },
            manifest,
            shape,
            repeats: experiment.repeats,
            rows: BTreeMap::new(),
            timing: BTreeMap::new(),
            commit: UNKNOWN_COMMIT.to_owned(),
            writing: None,
        }
    }

    /// Reads rows and timing.
    fn load(&mut self) -> Result<Whole, StoreError> {
        let path = self.folder.join(names::ROWS);
        let text = read_if_there(&path)?.unwrap_or_default();
        let damaged = |line, expected| StoreError::Damaged {
            path: path.clone(),
            line,
            expected,
        };
        let content = self
            .columns
            .decode(&text)
            .map_err(|damage| damaged(damage.line, damage.expected))?;
        let mut whole = content.whole;
        for (row, line) in content.rows.into_iter().zip(2..) {
            self.shape
                .check(&row)
                .map_err(|expected| damaged(line, expected))?;
            if !self.has_files(row.run) {
                whole = false;
                continue;
            }
            let place = key(row.run);
            match self.rows.get(&place) {
                Some(there) if rows::encode(there) != rows::encode(&row) => {
                    return Err(damaged(line, "a run has two different rows".to_owned()));
                }
                Some(_) => whole = false,
                None => drop(self.rows.insert(place, row)),
            }
        }
        let (timing, whole_timing) = timing::read(&self.folder.join(names::TIMING))?;
        let of_rows = timing
            .into_iter()
            .map(|timing| (key(timing.run), timing))
            .filter(|(place, _)| self.rows.contains_key(place));
        self.timing = of_rows.collect();
        Ok(Whole {
            rows: whole,
            timing: whole_timing,
        })
    }

    fn has_files(&self, run: Run) -> bool {
        let expected = &self.shape.cases[run.case];
        (!expected.series || names::series(&self.folder, run).is_file())
            && (!expected.samples || names::samples(&self.folder, run).is_file())
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The origin of the rows.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Stores the settings of the experiment in the manifest.
    pub fn set_origin(&mut self, origin: Origin) -> Result<(), StoreError> {
        if self.manifest.origin.as_ref() != Some(&origin) {
            self.manifest.origin = Some(origin);
            self.manifest.write(&self.folder)?;
        }
        Ok(())
    }

    /// Names the commit of the build that [adds](Self::add) rows from now on, which the manifest records; otherwise it
    /// is [`UNKNOWN_COMMIT`].
    pub fn set_commit(&mut self, commit: &str) {
        commit.clone_into(&mut self.commit);
    }

    /// Adds commits of rows that come from other folders.
    pub(super) fn add_commits(&mut self, commits: &[String]) -> Result<(), StoreError> {
        let mut is_new = false;
        for commit in commits {
            is_new |= self.manifest.add_commit(commit, !self.rows.is_empty());
        }
        if is_new {
            self.manifest.write(&self.folder)?;
        }
        Ok(())
    }

    /// True if `run` is finished.
    pub fn has(&self, run: Run) -> bool {
        self.rows.contains_key(&key(run))
    }

    /// All finished runs of the experiment.
    pub fn table(&self) -> Result<Table, StoreError> {
        Ok(Table {
            axes: self.columns.axes.clone(),
            measures: self.columns.measures.clone(),
            // More repeats may have been run before.
            rows: self
                .rows
                .range(..(self.repeats, 0))
                .map(|(_, row)| row.clone())
                .collect(),
        })
    }

    /// The cost of the finished runs, in the order of the runs.
    pub fn timing(&self) -> impl Iterator<Item = &Timing> {
        self.timing
            .range(..(self.repeats, 0))
            .map(|(_, timing)| timing)
    }

    /// The time series of a run; `None` if it has none.
    pub fn series(&self, run: Run) -> Result<Option<Series>, StoreError> {
        let path = names::series(&self.folder, run);
        read_if_there(&path)?
            .map(|text| records::decode_series(&text, &path))
            .transpose()
    }

    /// The samples of a run.
    pub fn samples(&self, run: Run) -> Result<Vec<Sample>, StoreError> {
        let path = names::samples(&self.folder, run);
        match read_if_there(&path)? {
            Some(text) => records::decode_samples(&text, &path),
            None => Ok(Vec::new()),
        }
    }

    /// Stores the result of a run; it took `wall`. After the return, the row survives the end of
    /// the process; after at most another second and a [`Self::sync_if_due`], also a failure of the
    /// machine.
    pub fn add(
        &mut self,
        run: Run,
        outcome: &RunOutcome,
        wall: Duration,
    ) -> Result<Row, StoreError> {
        let expected = &self.shape.cases[run.case];
        if outcome.measures.len() != expected.places.len() {
            return Err(StoreError::Measures {
                got: outcome.measures.len(),
                expected: expected.places.len(),
            });
        }
        let mut values = vec![None; self.columns.measures.len()];
        for (&place, &value) in expected.places.iter().zip(&outcome.measures) {
            values[place] = value;
        }
        let row = Row {
            run,
            labels: expected.labels.clone(),
            values,
        };
        // Before the row: a row's commit is never missing.
        let commit = self.commit.clone();
        self.add_commits(std::slice::from_ref(&commit))?;
        self.write_records(run, &outcome.series, &outcome.samples)?;
        let timing = Timing {
            run,
            wall,
            simulated_s: outcome.simulated_s,
            tasks: outcome.tasks,
        };
        self.add_row(row.clone(), Some(timing))?;
        Ok(row)
    }

    fn write_records(
        &self,
        run: Run,
        series: &Series,
        samples: &[Sample],
    ) -> Result<(), StoreError> {
        let expected = &self.shape.cases[run.case];
        if expected.series || *series != Series::default() {
            let path = names::series(&self.folder, run);
            write_below(&path, &records::encode_series(series, &path)?)?;
        }
        if expected.samples || !samples.is_empty() {
            let path = names::samples(&self.folder, run);
            write_below(&path, &records::encode_samples(samples, &path)?)?;
        }
        Ok(())
    }

    /// Appends a row whose files exist.
    pub(super) fn add_row(&mut self, row: Row, timing: Option<Timing>) -> Result<(), StoreError> {
        let place = key(row.run);
        if self.rows.contains_key(&place) {
            return Ok(());
        }
        let path = self.folder.join(names::ROWS);
        let writing = writing(&mut self.writing, &self.folder)?;
        let line = rows::encode(&row);
        if let Err(error) = writing.rows.write_all(&line) {
            // A full disk causes a partial line, which must be removed before the next one.
            let _ = writing.rows.set_len(writing.length);
            return Err(StoreError::io(&path)(error));
        }
        writing.length += line.len() as u64;
        writing.unsynced.get_or_insert_with(Instant::now);
        self.rows.insert(place, row);
        if let Some(timing) = timing {
            let path = self.folder.join(names::TIMING);
            writing
                .timing
                .write_all(&timing::encode(&timing))
                .map_err(StoreError::io(&path))?;
            self.timing.insert(place, timing);
        }
        self.sync_if_due()
    }

    /// Syncs the rows to the disk if the oldest one not yet synced is a second old. Must be called
    /// regularly while there are no new rows.
    pub fn sync_if_due(&mut self) -> Result<(), StoreError> {
        let due = |writing: &Writing| {
            writing
                .unsynced
                .is_some_and(|since| since.elapsed() >= SYNC_EVERY)
        };
        if self.writing.as_ref().is_some_and(due) {
            self.sync()?;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), StoreError> {
        let path = self.folder.join(names::ROWS);
        if let Some(writing) = &mut self.writing
            && writing.unsynced.take().is_some()
        {
            writing.rows.sync_data().map_err(StoreError::io(&path))?;
        }
        Ok(())
    }

    /// Sorts the rows in the order of the runs, so that the file does not depend on the order in
    /// which they ended, and syncs everything.
    pub fn finish(&mut self) -> Result<(), StoreError> {
        writing(&mut self.writing, &self.folder)?;
        self.write_rows()?;
        self.write_timing()?;
        // The files that were open no longer have a name.
        let (rows, length) = appending(&self.folder.join(names::ROWS))?;
        let (timing, _) = appending(&self.folder.join(names::TIMING))?;
        let writing = writing(&mut self.writing, &self.folder)?;
        writing.rows = rows;
        writing.timing = timing;
        writing.length = length;
        writing.unsynced = None;
        Ok(())
    }

    fn write_rows(&self) -> Result<(), StoreError> {
        let mut text = self.columns.header();
        for row in self.rows.values() {
            text.extend(rows::encode(row));
        }
        whole_file::write(&self.folder.join(names::ROWS), &text)
    }

    fn write_timing(&self) -> Result<(), StoreError> {
        let mut text = timing::header();
        for timing in self.timing.values() {
            text.extend(timing::encode(timing));
        }
        whole_file::write(&self.folder.join(names::TIMING), &text)
    }

    /// Writes `verdicts.json` and returns its path.
    pub fn write_verdicts(&self, verdicts: &[Verdict]) -> Result<PathBuf, StoreError> {
        let path = self.folder.join(names::VERDICTS);
        let mut text = serde_json::to_vec_pretty(verdicts)
            .map_err(|error| StoreError::io(&path)(io::Error::from(error)))?;
        text.push(b'\n');
        whole_file::write(&path, &text)?;
        Ok(path)
    }

    /// Writes `report.html` and returns its path.
    pub fn write_report(&self, page: &str) -> Result<PathBuf, StoreError> {
        let path = self.folder.join(names::REPORT);
        whole_file::write(&path, page.as_bytes())?;
        Ok(path)
    }

    /// The row of a run, as in the file.
    pub(super) fn line(&self, run: Run) -> Option<Vec<u8>> {
        self.rows.get(&key(run)).map(rows::encode)
    }

    /// All data of every finished run.
    pub(super) fn finished(&self) -> impl Iterator<Item = (&Row, Option<&Timing>)> {
        self.rows
            .iter()
            .map(|(place, row)| (row, self.timing.get(place)))
    }
}

fn writing<'a>(
    writing: &'a mut Option<Writing>,
    folder: &Path,
) -> Result<&'a mut Writing, StoreError> {
    writing.as_mut().ok_or_else(|| {
        let error = io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "opened to be read only");
        StoreError::io(folder)(error)
    })
}

/// The file for appending, and its length.
fn appending(path: &Path) -> Result<(File, u64), StoreError> {
    let open = || {
        let file = File::options().append(true).open(path)?;
        let length = file.metadata()?.len();
        Ok((file, length))
    };
    open().map_err(StoreError::io(path))
}
