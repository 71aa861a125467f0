//! Pages whose tables come from rows.

use crate::texts::{dumbbell, load};
use swiftwater_lab::claim::evaluate;
use swiftwater_lab::report::{
    DocumentError, Documented, document_template, fill_document, measured_tables,
};
use swiftwater_lab::store::{Row, Table};

const CLAIMS: &str = r#"
[[claim]]
id = "low"
says = "Less than 1"
paper = "0.5"
note = "Why it is so."
measure = "goodput_mbps"
where = { cc = "cubic" }
pass = { max = 1 }
[[claim]]
id = "high"
says = "Much | more"
paper = "+60 %"
lowered = "half of it"
measure = "goodput_mbps"
where = { cc = "cubic" }
compare = "change"
against = { cc = "newreno" }
pass = { min = 0.3 }
[[table]]
id = "all"
title = "Goodput"
rows = ["cc"]
columns = ["goodput_mbps"]
"#;

/// An experiment named so, with three repeats; CUBIC has twice the goodput.
fn documented(name: &str) -> Documented {
    let axes = "repeats = 3\n[sweep]\ncc = [\"cubic\", \"newreno\"]\n";
    let text = dumbbell(axes, "").replace("cc = \"cubic\"\n", "cc = \"${cc}\"\n") + CLAIMS;
    let mut experiment = load(&text);
    name.clone_into(&mut experiment.name);
    let rows = experiment.runs().map(|run| {
        let labels = experiment.cases[run.case].labels.clone();
        let value = 10.0 + f64::from(run.repeat);
        let value = if labels[0] == "cubic" {
            2.0 * value
        } else {
            value
        };
        Row {
            run,
            labels,
            values: vec![Some(value)],
        }
    });
    let table = Table {
        axes: vec!["cc".to_owned()],
        measures: vec!["goodput_mbps".to_owned()],
        rows: rows.collect(),
    };
    Documented {
        verdicts: evaluate(&experiment, &table),
        tables: measured_tables(&experiment, &table),
        commits: vec!["0123456789ab".to_owned()],
        version: "0.1.0".to_owned(),
        settings: Vec::new(),
        rows: vec![3, 3],
        experiment,
    }
}

fn filled(page: &str, results: &[Documented]) -> String {
    let known = ["mine/one", "mine/two", "other/three"].map(str::to_owned);
    fill_document(page, results, &known).expect("valid markers")
}

/// What stands between the marker and its end.
fn content(order: &str, results: &[Documented]) -> String {
    let page = format!("<!-- lab {order} -->\nold\n<!-- /lab -->\n");
    let filled = filled(&page, results);
    let (_, after) = filled.split_once("-->").expect("the marker");
    let (content, _) = after.split_once("<!-- /lab -->").expect("its end");
    content.to_owned()
}

#[test]
fn claims_have_numbers_bands_and_verdicts_misses_first() {
    let text = content("claims mine", &[documented("mine/one")]);
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines[0], "### mine/one: t");
    assert_eq!(
        lines[1],
        "6 of 6 runs; repeats: 3 of 3; commit `0123456789ab`."
    );
    assert_eq!(
        lines[2],
        "1 failed, 0 open, 0 without data, 0 not testable, 1 passed."
    );
    assert_eq!(
        lines[3],
        "| claim | says | published | here | n | passes if | verdict | detail |"
    );
    assert_eq!(
        lines[5],
        "| low | Less than 1 | 0.5 | 22.0 ± 5.0 | 3 | at most 1 | **FAIL** | mean of 3 repeats; Why it is so. |"
    );
    assert_eq!(
        lines[6],
        "| high | Much \\| more | +60 % | +100 % ± 0 % | 3 | at least +30 % (lowered bar: half of it) | pass | mean of 3 \
         repeats |"
    );
    assert_eq!(lines[7], "#### Goodput");
    assert_eq!(lines[8], "| cc | goodput_mbps |");
    assert_eq!(lines[10], "| cubic | 22.0 ± 5.0 |");
    assert!(text.contains("Not run: mine/two."), "{text}");
}

#[test]
fn counts_keep_lowered_bars_apart() {
    let results = [documented("mine/one"), documented("mine/two")];
    let text = content("summary mine", &results);
    let lines: Vec<&str> = text.trim().lines().collect();
    assert_eq!(lines[2], "| mine/one | 0 | 0 | 1 | 0 | 0 | 0 | 0 | 1 |");
    assert_eq!(lines[4], "| all | 0 | 0 | 2 | 0 | 0 | 0 | 0 | 2 |");
}

#[test]
fn the_origin_names_commits_repeats_and_what_is_missing() {
    let one = documented("mine/one");
    let same = content("provenance mine", std::slice::from_ref(&one));
    assert!(same.contains("Commit of the build that made the rows: `0123456789ab`."));
    assert!(
        same.contains("| mine/one | 6 of 6 | 2 | 3 of 3 | 1 to 3 |"),
        "{same}"
    );
    assert!(same.contains("Not run: mine/two."));

    let mut two = documented("mine/two");
    two.commits = vec!["aaa".to_owned(), "bbb-dirty".to_owned()];
    two.rows = vec![3, 1];
    two.experiment.planned_repeats = 100;
    two.settings = vec![("duration".to_owned(), "2s".to_owned())];
    let several = content("provenance mine/one mine/two", &[one, two]);
    assert!(
        several.contains(
            "| mine/two, with duration=2s | 4 of 6 | 2 | 1 to 3 of 3 (the scenario asks for 100) | 1 to 3 | `aaa` and \
             `bbb-dirty` |"
        ),
        "{several}"
    );
    assert!(several.contains("rows of all of them are in one table"));
    assert!(several.contains("changes that are in no commit"));
}

#[test]
fn prose_has_single_numbers() {
    let results = [documented("mine/one")];
    let page = "It gains <!-- lab value mine/one high -->?<!-- /lab -->, to \
                <!-- lab value mine/one all; cubic; goodput_mbps --><!-- /lab --> Mbit/s.\n";
    assert_eq!(
        filled(page, &results),
        "It gains <!-- lab value mine/one high -->+100 % ± 0 %<!-- /lab -->, to \
         <!-- lab value mine/one all; cubic; goodput_mbps -->22.0 ± 5.0<!-- /lab --> Mbit/s.\n"
    );
}

#[test]
fn a_filled_page_stays_the_same_and_prose_is_kept() {
    let results = [documented("mine/one")];
    let page = "# T\n\nProse < & |\n\n<!-- lab table mine/one all -->\n<!-- /lab -->\n\nEnd\n";
    let once = filled(page, &results);
    assert!(once.starts_with("# T\n\nProse < & |\n\n<!-- lab table mine/one all -->\n\n| cc |"));
    assert!(once.ends_with("<!-- /lab -->\n\nEnd\n"));
    assert_eq!(filled(&once, &results), once);
    let template = document_template(["mine/one", "mine/two", "other/three"]);
    assert_eq!(template.matches("<!-- lab claims").count(), 2);
}

#[track_caller]
fn wrong(page: &str, line: usize, expected: &str) {
    let error = fill_document(page, &[documented("mine/one")], &["mine/two".to_owned()]);
    match error {
        Err(DocumentError::Marker { line: at, why }) => {
            assert_eq!(at, line);
            assert!(why.contains(expected), "{why}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn wrong_markers_are_named_with_their_line() {
    let end = "<!-- /lab -->";
    wrong("a\n\n<!-- lab claims mine", 3, "has no <!-- /lab -->");
    wrong(
        &format!("<!-- lab claims mine -->\n<!-- lab claims mine -->\n{end}"),
        1,
        "has no <!-- /lab -->",
    );
    wrong(
        &format!("<!-- lab figure mine -->{end}"),
        1,
        "a marker is one of",
    );
    wrong(
        &format!("<!-- lab claims nine -->{end}"),
        1,
        "no experiment or collection `nine`",
    );
    wrong(
        &format!("<!-- lab claims mine/two -->{end}"),
        1,
        "no results of",
    );
    wrong(
        &format!("<!-- lab table mine/one x -->{end}"),
        1,
        "has no table `x`",
    );
    wrong(
        &format!("<!-- lab value mine/one x -->{end}"),
        1,
        "has no claim `x`",
    );
    wrong(
        &format!("<!-- lab value mine/one all; bbr; goodput_mbps -->{end}"),
        1,
        "has no row `bbr`",
    );
    wrong(
        &format!("<!-- lab value mine/one all; cubic; x -->{end}"),
        1,
        "but `goodput_mbps`",
    );
    let none = fill_document("prose", &[], &[]);
    assert_eq!(none, Err(DocumentError::NoMarkers));
}
