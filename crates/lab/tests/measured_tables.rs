//! Tables and compared figures of scenarios: numbers of their cells, and how mistakes are named.

use crate::texts::{dumbbell, load, load_with};
use swiftwater_lab::report::{MeasuredTable, ReportData, RowsOrigin, measured_tables, render_data};
use swiftwater_lab::scenario::{Experiment, LoadOptions};
use swiftwater_lab::store::{Row, Table};

/// Two buffers, two controllers and two directions of a class; three repeats.
fn text(rest: &str) -> String {
    let axes = "repeats = 3\n[sweep]\n\
         net = [\n\
         { label = \"a\", rate = \"10mbit\", class = \"lte\" },\n\
         { label = \"b\", rate = \"20mbit\", class = \"lte\" },\n\
         { label = \"c\", rate = \"30mbit\", class = \"wifi\" },\n]\n\
         cc = [\"cubic\", \"newreno\"]\n";
    let scenario = dumbbell(axes, "").replace("rate = \"20mbit\"\n", "rate = \"${net.rate}\"\n");
    scenario.replace("cc = \"cubic\"\n", "cc = \"${cc}\"\n") + rest
}

/// Goodput 10, 20, 40 of the networks, plus the repeat; with NewReno half of it. Jain's index is missing in a repeat.
fn table(experiment: &Experiment) -> Table {
    let rows = experiment.runs().map(|run| {
        let labels = experiment.cases[run.case].labels.clone();
        let base = match labels[0].as_str() {
            "a" => 10.0,
            "b" => 20.0,
            _ => 40.0,
        };
        let value = base + f64::from(run.repeat);
        let value = if labels[1] == "cubic" {
            value
        } else {
            value / 2.0
        };
        let share = (run.repeat != 1).then_some(0.25);
        Row {
            run,
            labels,
            values: vec![Some(value), share],
        }
    });
    Table {
        axes: vec!["net".to_owned(), "cc".to_owned()],
        measures: vec!["goodput_mbps".to_owned(), "jain".to_owned()],
        rows: rows.collect(),
    }
}

fn measured(block: &str) -> MeasuredTable {
    let experiment = load(&text(&format!(
        "[[table]]\nid = \"t\"\ntitle = \"T\"\n{block}\n"
    )));
    measured_tables(&experiment, &table(&experiment)).remove(0)
}

fn shown(table: &MeasuredTable) -> Vec<Vec<&str>> {
    let rows = table.rows.iter();
    rows.map(|row| {
        let cells = row.cells.iter().map(|cell| cell.shown.as_str());
        row.labels.iter().map(String::as_str).chain(cells).collect()
    })
    .collect()
}

#[test]
fn a_row_for_each_label_and_means_over_the_others() {
    let table = measured("rows = [\"cc\"]\ncolumns = [\"goodput_mbps\"]");
    assert_eq!(table.keys, ["cc"]);
    assert_eq!(table.columns, ["goodput_mbps"]);
    // The mean of 10, 20 and 40 plus 0 to 2; the margin is that of 0, 1, 2.
    assert_eq!(
        shown(&table),
        [["cubic", "24.3 ± 2.5"], ["newreno", "12.2 ± 1.2"]]
    );
    assert_eq!(table.notes[0], "Means over net.");
}

#[test]
fn comparisons_are_paired_and_what_they_refer_to_has_a_dash() {
    let table = measured(
        "rows = [\"cc\"]\nacross = [\"net.class\"]\ncolumns = [\n\
         { measure = \"goodput_mbps\", title = \"gain\", compare = \"change\", against = { cc = \"newreno\" } } ]",
    );
    assert_eq!(table.columns, ["lte: gain", "wifi: gain"]);
    // Twice as much in every run: no deviation remains.
    assert_eq!(
        shown(&table),
        [
            ["cubic", "+100 % ± 0 %", "+100 % ± 0 %"],
            ["newreno", "-", "-"]
        ]
    );
    let estimate = table.rows[0].cells[0].estimate.as_ref().expect("a number");
    assert_eq!((estimate.value, estimate.runs), (Some(1.0), Some((6, 6))));
    assert!(table.notes[1].contains("same seed"), "{:?}", table.notes);
}

#[test]
fn columns_select_reduce_and_scale() {
    let table = measured(
        "rows = [\"cc\"]\nwhere = { net.class = \"lte\" }\ncolumns = [\n\
         { measure = \"goodput_mbps\", title = \"b\", where = { net = \"b\" } },\n\
         { measure = \"goodput_mbps\", title = \"least\", each = [\"net\"], take = \"min\" },\n\
         { measure = \"goodput_mbps\", title = \"none\", where = { net = \"c\" } },\n\
         { measure = \"jain\", title = \"index, %\", scale = 100 } ]",
    );
    assert_eq!(table.columns, ["b", "least", "none", "index, %"]);
    let rows = shown(&table);
    assert_eq!(rows[0][1], "21.0 ± 2.5");
    assert!(rows[0][2].starts_with("11.0 ["), "{rows:?}");
    assert_eq!(rows[0][3], "-");
    assert_eq!(rows[0][4], "25.0 ± 0.0*");
    assert!(table.notes.iter().any(|note| note.starts_with("*: ")));
}

#[test]
fn missing_runs_are_named() {
    let experiment = load(&text(
        "[[table]]\nid = \"t\"\ntitle = \"T\"\nrows = [\"cc\"]\ncolumns = [\"goodput_mbps\"]\n",
    ));
    let mut table = table(&experiment);
    table.rows.pop();
    let table = measured_tables(&experiment, &table).remove(0);
    assert_eq!(shown(&table)[1], ["newreno", "no data"]);
}

#[track_caller]
fn refused(block: &str, expected: &str) {
    let text = text(&format!("[[table]]\nid = \"t\"\ntitle = \"T\"\n{block}\n"));
    let error = load_with(&text, &LoadOptions::default()).expect_err("invalid");
    let error = error.to_string();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn mistakes_are_named() {
    refused("columns = [\"goodput_mbps\"]", "no `rows`");
    refused("rows = [\"cc\"]", "no `columns`");
    refused("rows = [\"cc\"]\ncolumns = []", "at least one measure");
    refused(
        "rows = [\"cc\"]\ncolumns = [\"goodputt_mbps\"]",
        "did you mean",
    );
    refused(
        "rows = [\"net.clas\"]\ncolumns = [\"jain\"]",
        "no field `clas`",
    );
    refused(
        "rows = [\"cc\"]\nacross = [\"cc\"]\ncolumns = [\"jain\"]",
        "axis `cc` is used already",
    );
    refused(
        "rows = [\"cc\"]\nwhere = { cc = \"cubic\" }\ncolumns = [\"jain\"]",
        "axis `cc` is used already",
    );
    refused(
        "rows = [\"cc\"]\ncolumns = [{ measure = \"jain\", compare = \"ratio\", against = { net = \"a\" } }]",
        "axis `net` is averaged",
    );
    refused(
        "rows = [\"cc\"]\ncolumns = [\"jain\", \"jain\"]",
        "a `title` of its own",
    );
}

#[test]
fn pages_have_tables_and_figures_of_comparisons() {
    let experiment = load(&text(
        "[[table]]\nid = \"t\"\ntitle = \"Gains & losses\"\nrows = [\"cc\"]\ncolumns = [\"goodput_mbps\"]\n\
         [[figure]]\nid = \"f\"\ntitle = \"F\"\nkind = \"bar\"\nx = \"net\"\ny = \"goodput_mbps\"\nseries = [\"cc\"]\n\
         compare = \"ratio\"\nagainst = { cc = \"newreno\" }\n",
    ));
    let page = render_data(&ReportData {
        experiment: &experiment,
        table: &table(&experiment),
        series: &[],
        samples: &[],
        verdicts: &[],
        origin: &RowsOrigin {
            commits: vec!["0123456789ab".to_owned()],
            ..RowsOrigin::default()
        },
    })
    .expect("a page");
    assert!(
        page.contains("Gains &amp; losses")
            && page.contains("<td class=\"number\">24.3 ± 2.5</td>")
    );
    assert!(page.contains("ratio to cc=newreno"));
    // Twice as much; what it is compared with is not drawn.
    assert!(page.contains("\"y\":[2.0,2.0,2.0]"), "{page}");
    assert!(!page.contains("\"name\":\"newreno\""));
    assert!(page.contains("Commit of the rows") && page.contains("0123456789ab"));
}

#[test]
fn a_figure_is_compared_only_with_what_it_fixes() {
    let figure = "[[figure]]\nid = \"f\"\ntitle = \"F\"\nkind = \"bar\"\nx = \"net\"\ny = \"goodput_mbps\"\n\
                  compare = \"ratio\"\nagainst = { cc = \"newreno\" }\n";
    let error = load_with(&text(figure), &LoadOptions::default()).expect_err("invalid");
    assert!(
        error.to_string().contains("axis `cc` is averaged"),
        "{error}"
    );
}
