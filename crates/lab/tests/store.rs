//! Results on disk: what survives, what is refused, what is joined.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::experiments::{bare, experiment, options, outcome, read, run_in, simulate, write};
use proptest::prelude::*;
use swiftwater_lab::run::{ExecuteOptions, execute_with};
use swiftwater_lab::scenario::Experiment;
use swiftwater_lab::store::{Manifest, Origin, Results, StoreError, UNKNOWN_COMMIT, find, merge};
use tempfile::TempDir;

fn folder() -> TempDir {
    TempDir::new().expect("a folder")
}

/// A finished folder.
fn finished(experiment: &Experiment) -> TempDir {
    let folder = folder();
    run_in(folder.path(), experiment, &options(1), &simulate);
    folder
}

#[test]
fn rows_series_and_samples_are_read_as_they_were_written() {
    let experiment = experiment(&["a", "b"], 2);
    let folder = finished(&experiment);
    let results = Results::read(folder.path(), &experiment).expect("it is there");
    let table = results.table().expect("rows");
    assert_eq!(table.axes, ["kind", "odd, name"]);
    assert!(!table.measures.is_empty());
    let runs: Vec<_> = experiment.runs().collect();
    assert_eq!(
        table.rows.iter().map(|row| row.run).collect::<Vec<_>>(),
        runs
    );
    for row in &table.rows {
        let case = &experiment.cases[row.run.case];
        let expected = outcome(&case.setup, row.run.seed);
        assert_eq!(row.labels, case.labels);
        assert_eq!(row.values, expected.measures);
        let series = results.series(row.run).expect("readable");
        assert_eq!(series.expect("recorded"), expected.series);
        assert_eq!(
            results.samples(row.run).expect("readable"),
            expected.samples
        );
    }
    let simulated: Vec<f64> = results.timing().map(|timing| timing.simulated_s).collect();
    assert_eq!(simulated, [1.0, 2.0, 1.0, 2.0]);
}

/// Runs a shard with a build of this commit.
fn run_shard(folder: &Path, experiment: &Experiment, commit: &str, shard: (u32, u32)) {
    let mut results = Results::open(folder, experiment).expect("it opens");
    results.set_commit(commit);
    let options = ExecuteOptions {
        shard: Some(shard),
        ..options(1)
    };
    execute_with(experiment, &mut results, &options, &mut (), &simulate).expect("it runs");
}

fn commits(folder: &Path) -> Vec<String> {
    Manifest::read(folder).expect("a manifest").commits
}

#[test]
fn the_manifest_names_the_commits_of_the_rows() {
    let experiment = experiment(&["a", "b"], 3);
    let folder = folder();
    run_shard(folder.path(), &experiment, "aaa", (1, 2));
    assert_eq!(commits(folder.path()), ["aaa"]);
    // Nothing is left of this part: no row is from another build.
    run_shard(folder.path(), &experiment, "bbb", (1, 2));
    assert_eq!(commits(folder.path()), ["aaa"]);
    run_shard(folder.path(), &experiment, "bbb", (2, 2));
    assert_eq!(commits(folder.path()), ["aaa", "bbb"]);
    // Rows don't name it.
    let other = finished(&experiment);
    assert_eq!(commits(other.path()), [UNKNOWN_COMMIT]);
    assert!(read(folder.path(), "rows.csv") == read(other.path(), "rows.csv"));
}

#[test]
fn rows_from_before_commits_were_recorded_have_an_unknown_one() {
    let experiment = experiment(&["a", "b"], 3);
    let folder = folder();
    run_shard(folder.path(), &experiment, "aaa", (1, 2));
    let manifest = String::from_utf8(read(folder.path(), "manifest.json")).expect("text");
    let (before, after) = manifest
        .split_once("  \"commits\": [")
        .expect("they are there");
    let (_, after) = after.split_once("],\n").expect("a list");
    write(
        folder.path(),
        "manifest.json",
        format!("{before}{after}").as_bytes(),
    );
    assert!(commits(folder.path()).is_empty());
    run_shard(folder.path(), &experiment, "bbb", (2, 2));
    assert_eq!(commits(folder.path()), [UNKNOWN_COMMIT, "bbb"]);
}

#[test]
fn joined_shards_of_several_builds_name_them_all() {
    let experiment = experiment(&["a", "b"], 3);
    let (one, two, all) = (folder(), folder(), folder());
    run_shard(one.path(), &experiment, "aaa", (1, 2));
    run_shard(two.path(), &experiment, "bbb", (2, 2));
    let inputs = [one.path().to_owned(), two.path().to_owned()];
    merge(all.path(), &experiment, &inputs).expect("it merges");
    assert_eq!(commits(all.path()), ["aaa", "bbb"]);
    let whole = finished(&experiment);
    assert!(read(all.path(), "rows.csv") == read(whole.path(), "rows.csv"));
}

#[test]
fn cases_with_different_measures_share_the_columns() {
    let mut experiment = experiment(&["a", "b"], 1);
    experiment.cases[1].setup.flows[0].name = "other".to_owned();
    let folder = finished(&experiment);
    let table = Results::read(folder.path(), &experiment)
        .and_then(|results| results.table())
        .expect("rows");
    for (row, (own, foreign)) in table
        .rows
        .iter()
        .zip([("subject.", "other."), ("other.", "subject.")])
    {
        let of = |prefix: &str| {
            let columns = table.measures.iter().zip(&row.values);
            let values = columns.filter(|(name, _)| name.starts_with(prefix));
            values.filter(|(_, value)| value.is_some()).count()
        };
        assert!(of(own) > 0);
        assert_eq!(of(foreign), 0);
    }
}

/// A process can be killed while any byte is being written.
#[test]
fn a_file_of_rows_that_ends_anywhere_is_continued() {
    let experiment = experiment(&["a", "b"], 2);
    let folder = finished(&experiment);
    let whole = read(folder.path(), "rows.csv");
    // The fixed part is the same everywhere: the boundaries of lines and fields are what matters.
    let header = whole.iter().position(|&byte| byte == b'\n').expect("lines");
    let positions = (0..20).chain(header - 2..whole.len()).step_by(7);
    for end in positions.chain([header, header + 1, whole.len() - 1, whole.len()]) {
        write(folder.path(), "rows.csv", &whole[..end]);
        let complete = whole[..end].split(|&byte| byte == b'\n').count() - 1;
        let summary = run_in(folder.path(), &experiment, &options(2), &simulate);
        assert_eq!(summary.before, complete.saturating_sub(1), "cut at {end}");
        assert_eq!(summary.finished, 4 - summary.before);
        assert!(read(folder.path(), "rows.csv") == whole, "cut at {end}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn labels_of_any_text_survive_a_cut_anywhere(
        label in "[a,\"\n\r ;é]{0,8}",
        cut in 0.0..1.0_f64,
        garbage in "[a,\"0]{0,6}",
    ) {
        let other = format!("{label}-");
        let experiment = bare(experiment(&[&label, &other], 2));
        let folder = finished(&experiment);
        let whole = read(folder.path(), "rows.csv");
        let end = (whole.len() as f64 * cut) as usize;
        write(folder.path(), "rows.csv", &whole[..end]);
        run_in(folder.path(), &experiment, &options(1), &simulate);
        prop_assert!(read(folder.path(), "rows.csv") == whole);
        // Any other text without a line break never becomes a row.
        let header = whole.iter().position(|&byte| byte == b'\n').expect("lines");
        let bytes = [&whole[..end.max(header + 1)], garbage.as_bytes()].concat();
        write(folder.path(), "rows.csv", &bytes);
        run_in(folder.path(), &experiment, &options(1), &simulate);
        prop_assert!(read(folder.path(), "rows.csv") == whole);
    }
}

#[test]
fn a_row_without_its_files_is_run_again() {
    let experiment = experiment(&["a", "b"], 2);
    let folder = finished(&experiment);
    let whole = read(folder.path(), "rows.csv");
    fs::remove_file(folder.path().join("series/1-0.csv")).expect("it is there");
    fs::remove_file(folder.path().join("samples/0-1.csv")).expect("it is there");
    write(folder.path(), "series/0-0.csv.part", b"half a");
    let summary = run_in(folder.path(), &experiment, &options(1), &simulate);
    assert_eq!((summary.before, summary.finished), (2, 2));
    assert!(read(folder.path(), "rows.csv") == whole);
    assert!(folder.path().join("series/1-0.csv").is_file());
    assert!(folder.path().join("samples/0-1.csv").is_file());
    assert!(!folder.path().join("series/0-0.csv.part").exists());
}

#[test]
fn rows_are_kept_in_the_order_of_the_runs_once_all_are_there() {
    let experiment = experiment(&["a", "b"], 2);
    let whole = finished(&experiment);
    let folder = folder();
    let mut results = Results::open(folder.path(), &experiment).expect("it opens");
    let mut runs: Vec<_> = experiment.runs().collect();
    runs.reverse();
    for run in runs {
        let outcome = outcome(&experiment.cases[run.case].setup, run.seed);
        results
            .add(run, &outcome, Duration::from_secs(1))
            .expect("it is kept");
    }
    assert!(read(folder.path(), "rows.csv") != read(whole.path(), "rows.csv"));
    results.finish().expect("it is writable");
    assert!(read(folder.path(), "rows.csv") == read(whole.path(), "rows.csv"));
}

#[test]
fn more_repeats_continue_and_fewer_hide() {
    let two = experiment(&["a", "b"], 2);
    let three = experiment(&["a", "b"], 3);
    let folder = finished(&two);
    let summary = run_in(folder.path(), &three, &options(1), &simulate);
    assert_eq!((summary.before, summary.finished), (4, 2));
    let rows = |experiment| {
        let results = Results::read(folder.path(), experiment).expect("it is there");
        results.table().expect("rows").rows.len()
    };
    assert_eq!((rows(&two), rows(&three)), (4, 6));
}

#[test]
fn rows_of_another_experiment_are_refused_until_put_aside() {
    let ours = experiment(&["a", "b"], 1);
    let folder = finished(&ours);
    let rows = read(folder.path(), "rows.csv");
    let other = Experiment {
        digest: "d2".to_owned(),
        ..ours.clone()
    };
    for result in [
        Results::open(folder.path(), &other),
        Results::read(folder.path(), &other),
    ] {
        let error = result.expect_err("another digest");
        assert!(matches!(error, StoreError::OtherExperiment { .. }));
        assert!(error.to_string().contains("--fresh"), "{error}");
    }
    let quick = Experiment {
        quick: true,
        ..ours.clone()
    };
    let error = Results::open(folder.path(), &quick).expect_err("another form");
    assert!(error.to_string().contains("quick"), "{error}");
    assert!(
        read(folder.path(), "rows.csv") == rows,
        "nothing was touched"
    );

    let (results, old) = Results::open_fresh(folder.path(), &other).expect("put aside");
    assert!(results.table().expect("no rows").rows.is_empty());
    let old = old.expect("there was something");
    assert!(read(&old, "rows.csv") == rows);
    assert!(old.join("series/0-0.csv").is_file());
    drop(results);
    let (_, older) = Results::open_fresh(folder.path(), &ours).expect("put aside");
    assert!(older.expect("there was something") != old);
    let found = find(folder.path()).expect("one");
    assert_eq!(found, [folder.path()], "those aside don't count");
}

#[test]
fn rows_that_the_experiment_cannot_have_are_refused_with_their_line() {
    let experiment = experiment(&["a", "b"], 2);
    let folder = finished(&experiment);
    let whole = String::from_utf8(read(folder.path(), "rows.csv")).expect("text");
    let lines: Vec<&str> = whole.lines().collect();
    let spoil = |from: &str, to: &str| {
        let line = lines[2].replacen(from, to, 1);
        let text = [lines[0], lines[1], &line, lines[3], lines[4], ""].join("\n");
        assert!(text != whole, "{from}");
        write(folder.path(), "rows.csv", text.as_bytes());
        let error = Results::open(folder.path(), &experiment).expect_err("spoilt");
        error.to_string()
    };
    assert!(lines[2].starts_with("1,0,7,b,"), "{}", lines[2]);
    for (from, to) in [
        ("1,0,7,", "9,0,7,"),
        ("1,0,7,", "1,0,8,"),
        (",b,", ",c,"),
        ("1,0,7,", "one,0,7,"),
        ("1,0,7,b", "1,0,7,b,b"),
    ] {
        let error = spoil(from, to);
        assert!(error.contains("rows.csv:3: "), "{error}");
    }
    write(folder.path(), "rows.csv", b"case,repeat,what\n");
    let error = Results::open(folder.path(), &experiment).expect_err("other columns");
    assert!(error.to_string().contains("rows.csv:1: "), "{error}");
    write(folder.path(), "manifest.json", b"{\n");
    let error = Results::open(folder.path(), &experiment).expect_err("no manifest");
    assert!(error.to_string().contains("manifest.json:"), "{error}");
    fs::remove_file(folder.path().join("manifest.json")).expect("it is there");
    let error = Results::open(folder.path(), &experiment).expect_err("no manifest");
    assert!(error.to_string().contains("--fresh"), "{error}");
}

#[test]
fn only_one_can_write() {
    let experiment = experiment(&["a"], 1);
    let folder = folder();
    let first = Results::open(folder.path(), &experiment).expect("it opens");
    for second in [
        Results::open(folder.path(), &experiment).map(drop),
        Results::open_fresh(folder.path(), &experiment).map(drop),
    ] {
        let error = second.expect_err("it is in use");
        assert!(matches!(error, StoreError::InUse(_)), "{error}");
    }
    Results::read(folder.path(), &experiment).expect("reading is free");
    drop(first);
    Results::open(folder.path(), &experiment).expect("it is free");
}

#[test]
fn results_that_are_read_take_no_rows() {
    let experiment = experiment(&["a"], 1);
    let folder = finished(&experiment);
    let before = read(folder.path(), "rows.csv");
    let mut results = Results::read(folder.path(), &experiment).expect("it is there");
    assert!(results.finish().is_err());
    assert!(read(folder.path(), "rows.csv") == before);
}

#[test]
fn the_manifest_says_how_to_load_the_experiment_again() {
    let experiment = experiment(&["a"], 1);
    let folder = folder();
    for record in [None, Some(None), Some(Some(Duration::from_millis(100)))] {
        let origin = Origin {
            scenario: "tests/one".to_owned(),
            set: vec![("kind".to_owned(), "a".to_owned())],
            repeats: Some(1),
            record,
            ..Origin::default()
        };
        let mut results = Results::open(folder.path(), &experiment).expect("it opens");
        results.set_origin(origin.clone()).expect("it is kept");
        drop(results);
        drop(Results::open(folder.path(), &experiment).expect("it opens"));
        let manifest = Manifest::read(folder.path()).expect("it is there");
        assert_eq!(manifest.origin, Some(origin));
        assert_eq!(manifest.digest, "d1");
    }
}

/// Runs one of `parts` shards in a separate folder.
fn shard(experiment: &Experiment, part: u32, parts: u32) -> TempDir {
    let folder = folder();
    let options = ExecuteOptions {
        shard: Some((part, parts)),
        ..options(1)
    };
    run_in(folder.path(), experiment, &options, &simulate);
    folder
}

fn same_files(a: &Path, b: &Path) {
    for name in ["rows.csv", "series/1-0.csv", "samples/2-1.csv"] {
        assert!(read(a, name) == read(b, name), "{name}");
    }
}

#[test]
fn merged_shards_equal_the_whole() {
    let experiment = experiment(&["a", "b", "c"], 3);
    let whole = finished(&experiment);
    let shards: Vec<TempDir> = (1..=4).map(|part| shard(&experiment, part, 4)).collect();
    let paths = |shards: &[TempDir]| -> Vec<PathBuf> {
        shards.iter().map(|shard| shard.path().to_owned()).collect()
    };
    let out = folder();
    // In two steps, the second with runs that are there already.
    let some = merge(out.path(), &experiment, &paths(&shards[2..])).expect("they fit");
    assert!(some.table().expect("rows").rows.len() < 9);
    drop(some);
    let all = merge(out.path(), &experiment, &paths(&shards)).expect("they fit");
    assert_eq!(all.table().expect("rows").rows.len(), 9);
    assert_eq!(all.timing().count(), 9);
    same_files(out.path(), whole.path());
    drop(all);
    let mut results = Results::open(out.path(), &experiment).expect("it opens");
    results.finish().expect("it is writable");
    same_files(out.path(), whole.path());
}

#[test]
fn shards_that_contradict_each_other_are_not_merged() {
    let mut experiment = experiment(&["a", "b", "c"], 2);
    let (one, two) = (shard(&experiment, 1, 2), finished(&experiment));
    let inputs = [one.path().to_owned(), two.path().to_owned()];

    let text = String::from_utf8(read(one.path(), "rows.csv")).expect("text");
    let spoilt = text.replacen("0.11", "0.12", 1);
    assert!(spoilt != text, "{text}");
    write(one.path(), "rows.csv", spoilt.as_bytes());
    let error = merge(folder().path(), &experiment, &inputs).expect_err("rows differ");
    assert!(error.to_string().contains("the row of case"), "{error}");
    write(one.path(), "rows.csv", text.as_bytes());

    write(one.path(), "series/0-0.csv", b"");
    let error = merge(folder().path(), &experiment, &inputs).expect_err("series differ");
    assert!(
        error.to_string().contains("the series of case 0"),
        "{error}"
    );

    // A contradiction in the last folder, and one with existing rows: nothing is joined.
    let out = folder();
    merge(out.path(), &experiment, &inputs).expect_err("series differ");
    assert!(!out.path().join("manifest.json").exists());
    let there = shard(&experiment, 1, 6);
    write(there.path(), "series/0-0.csv", b"");
    let before = read(there.path(), "rows.csv");
    let fine = shard(&experiment, 2, 6);
    let inputs_there = [fine.path().to_owned(), two.path().to_owned()];
    merge(there.path(), &experiment, &inputs_there).expect_err("series differ");
    assert!(read(there.path(), "rows.csv") == before);

    experiment.digest = "d2".to_owned();
    let out = folder();
    merge(out.path(), &experiment, &inputs).expect_err("another experiment");
    assert!(!out.path().join("manifest.json").exists());
}

#[test]
fn folders_of_results_are_found_below() {
    let root = folder();
    let experiment = experiment(&["a"], 1);
    for name in ["b/e2", "a/e1"] {
        drop(Results::open(&root.path().join(name), &experiment).expect("it opens"));
    }
    let found = find(root.path()).expect("two");
    assert_eq!(found, [root.path().join("a/e1"), root.path().join("b/e2")]);
    assert!(matches!(
        find(&root.path().join("a/e1/series")).or_else(|_| find(folder().path())),
        Err(StoreError::NoResults(_))
    ));
}

#[test]
fn runs_without_files_need_none() {
    let experiment = bare(experiment(&["a"], 1));
    let folder = finished(&experiment);
    assert!(!folder.path().join("series").exists());
    let results = Results::read(folder.path(), &experiment).expect("it is there");
    let run = experiment.runs().next().expect("one");
    assert!(results.has(run));
    assert_eq!(results.series(run).expect("none"), None);
    assert!(results.samples(run).expect("none").is_empty());
}
