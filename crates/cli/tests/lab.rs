//! `lab`: experiments from the command line.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use crate::support::{failed, keys, succeeded, swiftwater};
use serde_json::Value;
use tempfile::TempDir;

/// Enough runs for something to happen in the middle.
const MANY: &str = r#"
title = "Many short runs"
[run]
duration = "2s"
repeats = 20
rtt = "20ms"
[sweep]
cc = ["newreno", "cubic"]
[[link]]
rate = "20mbit"
[[flow]]
name = "subject"
app = "bulk"
cc = "${cc}"
[[claim]]
id = "M1"
says = "More than the link can carry"
paper = "21 Mbit/s"
measure = "subject.goodput_mbps"
where = { cc = "cubic" }
pass = { min = 21 }
"#;

fn folder() -> TempDir {
    TempDir::new().unwrap()
}

fn lab<const N: usize>(folder: &Path, args: [&str; N]) -> Command {
    let mut command = swiftwater();
    command
        .env_remove("SWIFTWATER_TRACES")
        .current_dir(folder)
        .arg("lab")
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn run<const N: usize>(folder: &Path, args: [&str; N]) -> Output {
    lab(folder, args).output().expect("it starts")
}

fn json(output: &Output) -> Value {
    serde_json::from_str(&succeeded(output)).expect("one JSON document")
}

/// A folder with the scenario of many runs.
fn many() -> TempDir {
    let folder = folder();
    let collection = folder.path().join("scenarios/mine");
    fs::create_dir_all(&collection).unwrap();
    fs::write(collection.join("many.toml"), MANY).unwrap();
    folder
}

const FLAGS: [&str; 5] = ["--scenarios", "scenarios", "--jobs", "1", "--no-report"];

/// Starts the many runs and waits until some are finished.
fn started(folder: &TempDir, out: &str) -> Child {
    let mut command = lab(folder.path(), ["run", "mine", "--out", out]);
    let child = command.args(FLAGS).spawn().expect("it starts");
    let rows = rows(folder, out);
    while lines(&rows) < 5 {
        thread::sleep(Duration::from_millis(5));
    }
    child
}

fn rows(folder: &TempDir, out: &str) -> PathBuf {
    folder.path().join(out).join("mine/many/rows.csv")
}

fn lines(path: &Path) -> usize {
    fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

/// Runs what is missing and returns what the document says about the experiment.
fn finished(folder: &TempDir, out: &str) -> Value {
    let mut command = lab(folder.path(), ["run", "mine", "--json", "--out", out]);
    let document = json(&command.args(FLAGS).output().expect("it starts"));
    document["experiments"][0].clone()
}

#[test]
fn a_killed_run_goes_on_and_ends_in_the_same_rows() {
    let folder = many();
    let whole = finished(&folder, "whole");
    assert_eq!(
        (&whole["finished"], &whole["rows"]),
        (&40.into(), &40.into())
    );

    let mut killed = started(&folder, "killed");
    let second = lab(folder.path(), ["run", "mine", "--out", "killed"])
        .args(FLAGS)
        .output();
    let error = failed(&second.expect("it starts"), 7);
    assert!(error.contains("another process"), "{error}");
    killed.kill().expect("it runs");
    killed.wait().expect("it ended");

    let resumed = finished(&folder, "killed");
    let before = resumed["before"].as_u64().unwrap();
    assert!((4..40).contains(&before), "{before}");
    assert_eq!(resumed["finished"].as_u64().unwrap(), 40 - before);
    let text = |out| fs::read(rows(&folder, out)).unwrap();
    assert!(text("whole") == text("killed"));
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_what_is_finished() {
    let folder = many();
    let stopped = started(&folder, "out");
    let pid = stopped.id().to_string();
    let kill = Command::new("kill").args(["-INT", &pid]).status();
    assert!(kill.expect("kill runs").success());
    let output = stopped.wait_with_output().expect("it ended");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{error}");
    assert!(error.contains("the same command continues"), "{error}");
    let kept = lines(&rows(&folder, "out")) - 1;
    assert!((4..40).contains(&kept), "{kept}");
    assert_eq!(finished(&folder, "out")["before"], kept);
}

#[test]
fn shards_are_joined_and_claims_judged() {
    let folder = many();
    for (shard, out) in [("1/2", "one"), ("2/2", "two")] {
        let args = ["run", "mine", "--shard", shard, "--out", out];
        let mut command = lab(folder.path(), args);
        command.args(FLAGS).args(["--repeats", "3"]);
        succeeded(&command.output().expect("it starts"));
    }
    let merged = run(folder.path(), ["merge", "all", "one", "two"]);
    let text = succeeded(&merged);
    assert!(
        text.contains("6 of 6 runs") && text.contains("FAIL"),
        "{text}"
    );
    assert!(text.contains("M1: passes if"), "{text}");

    let mut whole = lab(folder.path(), ["run", "mine", "--out", "whole"]);
    whole.args(FLAGS).args(["--repeats", "3", "--strict"]);
    let output = whole.output().expect("it starts");
    assert_eq!(output.status.code(), Some(12), "a claim failed");
    let text = |out| fs::read(rows(&folder, out)).unwrap();
    assert!(text("whole") == text("all"));

    let again = run(folder.path(), ["report", "all", "--json"]);
    let document = json(&again);
    assert_eq!(document[0]["verdicts"][0]["outcome"], "fail");
    assert!(folder.path().join("all/mine/many/report.html").is_file());
    let strict = run(folder.path(), ["report", "all", "--json", "--strict"]);
    assert!(failed(&strict, 12).contains("1 claim failed"));
}

#[test]
fn the_first_example() {
    let folder = folder();
    let output = run(
        folder.path(),
        ["run", "examples/first", "--quick", "--json"],
    );
    let document = json(&output);
    assert_eq!(
        keys(&document),
        [
            "experiments",
            "invalid",
            "simulated_per_wall",
            "simulated_s",
            "skipped",
            "stopped",
            "wall_s"
        ]
    );
    let experiment = &document["experiments"][0];
    assert_eq!(experiment["name"], "examples/first");
    assert_eq!(experiment["rows"], experiment["runs"]);
    assert!(experiment["simulated_s"].as_f64() > Some(0.0));
    assert!(!experiment["verdicts"].as_array().unwrap().is_empty());
    let report = folder.path().join(experiment["report"].as_str().unwrap());
    assert!(fs::read_to_string(report).unwrap().contains("<html"));

    // Another experiment of the same name is refused until the results are put aside.
    let other = ["run", "examples/first", "--quick", "--set", "duration=2s"];
    let error = failed(&run(folder.path(), other), 7);
    assert!(error.contains("--fresh"), "{error}");
    let mut fresh = lab(folder.path(), other);
    let output = fresh.args(["--fresh", "--json"]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("old-1"));
    assert_eq!(json(&output)["experiments"][0]["before"], 0);
}

#[test]
fn a_quick_run_says_that_its_verdicts_are_not_results() {
    let folder = folder();
    fs::write(folder.path().join("many.toml"), MANY).unwrap();
    let text = succeeded(&run(
        folder.path(),
        ["run", "many.toml", "--quick", "--repeats", "3"],
    ));
    // Before the numbers, and once for all.
    let said = text.find("smoke run: 0 claims inside their bands, 1 outside");
    assert!(said < text.find("More than the link can carry"), "{text}");
    assert_eq!(
        text.matches("its verdicts are not results").count(),
        2,
        "{text}"
    );
    assert!(text.contains("outside") && !text.contains("FAIL"), "{text}");
    // A whole run has results.
    let text = succeeded(&run(
        folder.path(),
        ["run", "many.toml", "--repeats", "3", "--out", "whole"],
    ));
    assert!(text.contains("FAIL") && !text.contains("smoke"), "{text}");
}

#[test]
fn the_list_fits_a_terminal() {
    let folder = folder();
    let list = succeeded(&run(folder.path(), ["list"]));
    for line in list.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    // A scenario without its traces has a title nevertheless.
    let missing = list.lines().find(|line| line.contains("no traces"));
    let words: Vec<&str> = missing.unwrap().split_whitespace().collect();
    assert!(words.len() > 5, "{words:?}");
    assert!(list.contains("docs/lab.md"), "{list}");
    let entries = json(&run(folder.path(), ["list", "--json"]));
    for entry in entries.as_array().unwrap() {
        assert!(entry["title"].is_string(), "{entry}");
    }
}

#[test]
fn what_there_is() {
    let folder = folder();
    let list = succeeded(&run(folder.path(), ["list", "examples"]));
    assert!(list.contains("examples/first"), "{list}");
    let list = json(&run(folder.path(), ["list", "examples", "--json"]));
    assert!(list[0]["runs"].as_u64() > Some(0));
    let show = succeeded(&run(folder.path(), ["show", "examples/first"]));
    assert!(show.contains("Axes:") && show.contains("Claims:"), "{show}");
    let show = json(&run(folder.path(), ["show", "examples/first", "--json"]));
    assert_eq!(show["axes"][0]["name"], "buffer");
    assert_eq!(show["claims"][0]["test"]["where"]["cc"], "cubic");
    assert_eq!(
        show["claims"][0]["test"]["compare"]["ratio"]["where"]["cc"],
        "newreno"
    );
    assert_eq!(show["figures"][0]["kind"], "bar");
    let measures = show["measures"].as_array().unwrap();
    assert!(measures.contains(&"subject.goodput_mbps".into()));
    let check = succeeded(&run(folder.path(), ["check", "examples"]));
    assert!(check.contains("examples/first: "), "{check}");

    let all = succeeded(&run(folder.path(), ["controllers"]));
    assert!(
        all.contains("newreno: ") && all.contains("cubic: "),
        "{all}"
    );
    let one = json(&run(folder.path(), ["controllers", "CUBIC", "--json"]));
    assert_eq!(one[0]["name"], "cubic");
    assert_eq!(
        keys(&one[0]["parameters"][0]),
        ["about", "accepts", "default", "name"]
    );
    let error = failed(&run(folder.path(), ["controllers", "pigeon"]), 10);
    assert!(error.contains("newreno"), "{error}");
}

#[test]
fn errors_are_reported_with_file_and_line() {
    let folder = many();
    let bad = folder.path().join("bad.toml");
    fs::write(&bad, MANY.replace("20mbit", "fast")).unwrap();
    let line = 1 + MANY
        .lines()
        .position(|line| line.starts_with("rate"))
        .unwrap();
    for command in ["run", "check", "show"] {
        let error = failed(&run(folder.path(), [command, "bad.toml"]), 10);
        assert!(error.contains(&format!("bad.toml:{line}: ")), "{error}");
    }
    let error = failed(&run(folder.path(), ["run", "examples/frist"]), 10);
    assert!(error.contains("examples/first"), "{error}");
    failed(&run(folder.path(), ["run", "missing.toml"]), 7);
    failed(&run(folder.path(), ["report", "scenarios"]), 7);
    failed(&run(folder.path(), ["merge", "out", "nowhere"]), 7);
    for args in [
        ["--shard", "3/2"],
        ["--only", "3"],
        ["--set", "x"],
        ["--jobs", "0"],
    ] {
        let mut command = lab(folder.path(), ["run", "examples/first"]);
        let error = failed(&command.args(args).output().unwrap(), 2);
        assert!(
            args[0] != "--jobs" || error.contains("1 or more"),
            "{error}"
        );
    }
    let beyond = [
        "run",
        "examples/first",
        "--quick",
        "--json",
        "--only",
        "99-0",
    ];
    assert!(failed(&run(folder.path(), beyond), 2).contains("no run 99-0"));
    let nonsense = ["run", "examples/first", "--set", "nothing=1"];
    failed(&run(folder.path(), nonsense), 2);
}

#[test]
fn a_scenario_that_does_not_load_does_not_stop_the_others() {
    let folder = many();
    let path = folder.path().join("scenarios/mine/awry.toml");
    fs::write(path, MANY.replace("bulk", "bulky")).unwrap();
    let args = ["run", "mine", "--json", "--repeats", "1"];
    let mut command = lab(folder.path(), args);
    let output = command
        .args(["--scenarios", "scenarios"])
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(10));
    // At once and at the end.
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(error.matches("awry.toml:13: ").count(), 2, "{error}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["invalid"][0]["name"], "mine/awry");
    assert_eq!(document["experiments"][0]["name"], "mine/many");
    assert_eq!(document["experiments"][0]["rows"], 2);
}

#[test]
fn a_collection_has_a_page_of_all_that_is_in_the_folder() {
    let folder = many();
    let path = folder.path().join("scenarios/mine/more #2.toml");
    fs::write(path, MANY).unwrap();
    let command = |what| {
        let mut command = lab(folder.path(), ["run", what, "--out", "out"]);
        command.args(["--scenarios", "scenarios", "--repeats", "1"]);
        command.output().expect("it starts")
    };
    let text = succeeded(&command("mine/many"));
    let page = Path::new("out").join("mine").join("index.html");
    assert!(
        text.contains(&format!("index: {}", page.display())),
        "{text}"
    );
    // The earlier experiment stays on the page.
    succeeded(&command("mine/more #2"));
    let html = fs::read_to_string(folder.path().join(&page)).unwrap();
    for link in ["\"many/report.html\"", "\"more%20%232/report.html\""] {
        assert!(html.contains(link), "{html}");
    }
    let document = json(&run(folder.path(), ["report", "out/mine/many", "--json"]));
    let index = document[0]["index"].as_str().unwrap();
    assert!(Path::new(index).ends_with("mine/index.html"), "{index}");
}

#[test]
fn results_of_a_file_by_itself_are_found_again() {
    let folder = folder();
    let here = folder.path().join("studies");
    fs::create_dir(&here).unwrap();
    fs::write(here.join("own.toml"), MANY).unwrap();
    let command = ["run", "own.toml", "--repeats", "1", "--json"];
    let document = json(&run(&here, command));
    assert_eq!(document["experiments"][0]["name"], "studies/own");
    let again = json(&run(&here, ["report", "lab-results", "--json"]));
    assert_eq!(again[0]["rows"], 2);
}

#[test]
fn nothing_is_put_aside_for_runs_that_do_not_exist() {
    let folder = many();
    let args = ["run", "mine", "--out", "out", "--repeats", "1"];
    let with = |more: &[&str]| {
        let mut command = lab(folder.path(), args);
        command.args(FLAGS).args(more).output().unwrap()
    };
    succeeded(&with(&[]));
    let error = failed(&with(&["--fresh", "--only", "99-0"]), 2);
    assert!(error.contains("no run 99-0"), "{error}");
    assert_eq!(lines(&rows(&folder, "out")), 3);
    assert!(!folder.path().join("out/mine/old-1").exists());
    assert!(!folder.path().join("out/mine/many/old-1").exists());
}

#[test]
fn a_file_is_run_from_its_own_folder_and_reported_from_another() {
    let folder = many();
    let own = folder.path().join("scenarios/mine");
    let flags = ["--jobs", "1", "--no-report", "--repeats", "1"];
    let mut command = lab(&own, ["run", "many.toml", "--out", "../../out"]);
    succeeded(&command.args(flags).output().unwrap());
    assert_eq!(lines(&rows(&folder, "out")), 3);
    let report = json(&run(folder.path(), ["report", "out", "--json"]));
    assert_eq!(report[0]["name"], "mine/many");
    succeeded(&run(folder.path(), ["merge", "all", "out"]));
    assert_eq!(lines(&rows(&folder, "all")), 3);

    // A folder that can't be read doesn't keep the others from being reported.
    let bad = folder.path().join("out/mine/bad");
    fs::create_dir(&bad).unwrap();
    fs::write(bad.join("manifest.json"), "{").unwrap();
    let output = run(folder.path(), ["report", "out", "--json"]);
    let error = failed(&output, 7);
    assert!(error.contains("bad is left out"), "{error}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document.as_array().unwrap().len(), 1);
}

#[test]
fn missing_runs_are_reported_and_strict_counts_claims_without_data() {
    let folder = many();
    // Two cases, six runs.
    let shard = |shard: &str, out: &str| {
        let mut command = lab(folder.path(), ["run", "mine", "--shard", shard]);
        let flags = ["--repeats", "3", "--strict", "--out", out];
        command.args(FLAGS).args(flags).output().unwrap()
    };
    // A part needn't have all data.
    succeeded(&shard("1/3", "one"));
    succeeded(&shard("2/3", "two"));
    let merged = run(folder.path(), ["merge", "all", "one", "two"]);
    assert_eq!(merged.status.code(), Some(15));
    let error = String::from_utf8_lossy(&merged.stderr);
    assert!(
        error.contains("runs of mine/many are missing; --partial accepts that"),
        "{error}"
    );
    let merged = run(
        folder.path(),
        ["merge", "all", "one", "two", "--partial", "--strict"],
    );
    assert_eq!(merged.status.code(), Some(12));
    let error = String::from_utf8_lossy(&merged.stderr);
    assert!(error.contains("error: 1 claim without data"), "{error}");
    assert!(
        error.contains("mine/many: 2 of 6 runs are missing (case-repeat): "),
        "{error}"
    );
    assert!(error.contains("shard 3/3 seems to be missing"), "{error}");
    succeeded(&run(folder.path(), ["report", "all"]));
    let strict = run(folder.path(), ["report", "all", "--strict"]);
    assert!(failed(&strict, 12).contains("1 claim without data"));

    // With other values cases may be left out on purpose.
    let mut command = lab(folder.path(), ["run", "mine", "--set", "cc=newreno"]);
    let flags = ["--repeats", "1", "--strict", "--out", "some"];
    succeeded(&command.args(FLAGS).args(flags).output().unwrap());
}

#[test]
fn scenarios_without_their_traces_are_skipped() {
    let folder = many();
    let traced = MANY.replace("rate = \"20mbit\"", "trace = \"cell/none.csv\"");
    let path = folder.path().join("scenarios/mine/traced.toml");
    fs::write(path, traced).unwrap();
    let args = [
        "run",
        "mine",
        "--scenarios",
        "scenarios",
        "--repeats",
        "1",
        "--json",
    ];
    let output = run(folder.path(), args);
    let document = json(&output);
    assert_eq!(document["experiments"].as_array().unwrap().len(), 1);
    assert_eq!(document["skipped"][0]["name"], "mine/traced");
    let note = String::from_utf8_lossy(&output.stderr);
    assert!(note.contains("mine/traced is skipped"), "{note}");
    assert!(note.contains("SWIFTWATER_TRACES"), "{note}");
    let alone = ["run", "mine/traced", "--scenarios", "scenarios"];
    let output = run(folder.path(), alone);
    assert_eq!(output.status.code(), Some(7), "nothing was run");
}

#[test]
fn a_manifest_leads_nowhere_else() {
    let folder = many();
    let mut command = lab(
        folder.path(),
        ["run", "mine", "--out", "out", "--repeats", "1"],
    );
    succeeded(&command.args(FLAGS).output().unwrap());
    let path = folder.path().join("out/mine/many/manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("\"mine/many\"", "\"../../evil\"", 1)).unwrap();
    failed(&run(folder.path(), ["merge", "all", "out"]), 7);
    assert!(!folder.path().join("evil").exists());
}
