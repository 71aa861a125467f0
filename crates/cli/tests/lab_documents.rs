//! `lab report --markdown`: pages whose tables come from rows; and the commit of the build in results.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::support::{failed, succeeded, swiftwater};
use serde_json::Value;
use tempfile::TempDir;

const SHORT: &str = r#"
title = "Short runs"
[run]
duration = "1s"
repeats = 2
rtt = "20ms"
[sweep]
cc = ["newreno", "cubic"]
[[link]]
rate = "10mbit"
[[flow]]
name = "subject"
cc = "${cc}"
[[claim]]
id = "S1"
says = "Less than the link carries"
measure = "subject.goodput_mbps"
where = { cc = "cubic" }
pass = { max = 10 }
[[table]]
id = "goodput"
title = "Goodput"
rows = ["cc"]
columns = ["subject.goodput_mbps"]
"#;

fn lab(folder: &Path, args: &[&str]) -> Output {
    let mut command = swiftwater();
    command
        .env_remove("SWIFTWATER_TRACES")
        .current_dir(folder)
        .arg("lab")
        .args(args)
        .args(["--scenarios", "scenarios"])
        .output()
        .expect("it starts")
}

/// A folder with a scenario and its results in `out`.
fn results() -> TempDir {
    let folder = TempDir::new().unwrap();
    let collection = folder.path().join("scenarios/mine");
    fs::create_dir_all(&collection).unwrap();
    fs::write(collection.join("short.toml"), SHORT).unwrap();
    succeeded(&lab(
        folder.path(),
        &["run", "mine", "--out", "out", "--no-report"],
    ));
    folder
}

const REPORT: [&str; 4] = ["report", "out", "--markdown", "page.md"];
const CHECK: [&str; 5] = ["report", "out", "--markdown", "page.md", "--check"];

#[test]
fn a_page_is_made_filled_and_checked() {
    let folder = results();
    let page = folder.path().join("page.md");
    failed(&lab(folder.path(), &CHECK), 7);
    succeeded(&lab(folder.path(), &REPORT));
    let made = fs::read_to_string(&page).unwrap();
    for part in [
        "<!-- lab claims mine -->",
        "| mine/short | 4 of 4 | 2 | 2 of 2 | 1 to 2 |",
        "| S1 | Less than the link carries |",
        "#### Goodput",
    ] {
        assert!(made.contains(part), "{made}");
    }
    succeeded(&lab(folder.path(), &CHECK));
    // Nothing else is written.
    assert!(!folder.path().join("out/mine/short/report.html").exists());

    fs::write(&page, made.replace("| S1 | Less", "| S1 | More")).unwrap();
    let error = failed(&lab(folder.path(), &CHECK), 1);
    assert!(
        error.contains("page.md:") && error.contains("not what the rows give"),
        "{error}"
    );
    succeeded(&lab(folder.path(), &REPORT));
    assert!(fs::read_to_string(&page).unwrap() == made);
}

#[test]
fn prose_around_the_markers_is_kept() {
    let folder = results();
    let page = folder.path().join("page.md");
    let prose = "Prose: <!-- lab value mine/short S1 --><!-- /lab --> Mbit/s.\n";
    fs::write(&page, prose).unwrap();
    succeeded(&lab(folder.path(), &REPORT));
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.starts_with("Prose: <!-- lab value mine/short S1 -->"));
    assert!(text.contains(" ± "), "{text}");
    assert!(text.ends_with("<!-- /lab --> Mbit/s.\n"), "{text}");

    fs::write(&page, "no markers\n").unwrap();
    assert!(failed(&lab(folder.path(), &REPORT), 7).contains("no markers"));
    fs::write(&page, "\n<!-- lab claims nine --><!-- /lab -->\n").unwrap();
    let error = failed(&lab(folder.path(), &REPORT), 7);
    assert!(
        error.contains("page.md: line 2: no experiment or collection `nine`"),
        "{error}"
    );
    failed(&lab(folder.path(), &["report", "out", "--check"]), 2);
}

#[test]
fn results_name_the_commit_of_the_build() {
    let version = succeeded(&swiftwater().arg("--version").output().unwrap());
    let (_, commit) = version.split_once("(commit ").expect("it is there");
    let commit = commit.trim_end().trim_end_matches(')');
    assert!(!commit.is_empty());

    let folder = results();
    let manifest = folder.path().join("out/mine/short/manifest.json");
    let manifest: Value = serde_json::from_slice(&fs::read(manifest).unwrap()).unwrap();
    assert_eq!(manifest["commits"], serde_json::json!([commit]));
    let report = succeeded(&lab(folder.path(), &["report", "out", "--json"]));
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report[0]["commits"], serde_json::json!([commit]));
    assert_eq!(report[0]["tables"][0]["rows"][1]["labels"][0], "cubic");
    succeeded(&lab(folder.path(), &REPORT));
    let page = fs::read_to_string(folder.path().join("page.md")).unwrap();
    assert!(page.contains(&format!("`{commit}`")), "{page}");
}

#[test]
fn another_build_is_named_when_it_goes_on() {
    let folder = results();
    let path = folder.path().join("out/mine/short/manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    let manifest: Value = serde_json::from_str(&text).unwrap();
    let commit = manifest["commits"][0].as_str().unwrap();
    fs::write(&path, text.replace(commit, "0123456789ab")).unwrap();
    let more = [
        "run",
        "mine",
        "--out",
        "out",
        "--no-report",
        "--repeats",
        "3",
    ];
    let output = lab(folder.path(), &more);
    succeeded(&output);
    let note = String::from_utf8_lossy(&output.stderr);
    assert!(note.contains("rows of commit 0123456789ab"), "{note}");
    let text = fs::read_to_string(&path).unwrap();
    let manifest: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        manifest["commits"],
        serde_json::json!(["0123456789ab", commit])
    );
}
