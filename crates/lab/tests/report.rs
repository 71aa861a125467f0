//! Pages of experiments: what is in them, that it is the rows' numbers, and that text of files stays
//! text.

use crate::report_support::{
    Parts, case_mean, experiment, figure, flow_series, plots, table, traces_named, verdict,
};
use proptest::prelude::*;
use serde_json::Value;
use swiftwater_lab::claim::Outcome;
use swiftwater_lab::record::{Sample, Series};
use swiftwater_lab::report::figures::{MAX_POINTS, Palette, decimate};
use swiftwater_lab::report::{Counts, ErrorBars, IndexEntry, index, markdown, needs};
use swiftwater_lab::scenario::{Experiment, FigureKind, Scale, number_and_unit};
use swiftwater_lab::store::Table;

/// Position of `what`, which must be there.
fn at(page: &str, what: &str) -> usize {
    page.find(what)
        .unwrap_or_else(|| panic!("`{what}` is not in the page"))
}

/// The page without the embedded plotly.js.
fn without_scripts(page: &str) -> String {
    let mut out = String::new();
    let mut rest = page;
    while let Some(start) = rest.find("<script") {
        let end = start + rest[start..].find("</script>").unwrap();
        out.push_str(&rest[..start]);
        rest = &rest[end..];
    }
    out + rest
}

fn numbers(value: &Value) -> Vec<Option<f64>> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(Value::as_f64)
        .collect()
}

#[test]
fn a_page_has_its_parts_in_order() {
    let mut parts = Parts::new(experiment());
    parts.experiment.figures.push(figure("fig5", line()));
    parts.experiment.figures.push(figure("fig6", bar()));
    parts.verdicts = vec![
        verdict("C1", Outcome::Pass),
        verdict("C2", Outcome::NoData),
        verdict("C3", Outcome::Fail),
        verdict("C4", Outcome::NotTestable),
    ];
    let page = parts.page();
    let order = [
        "<h1>Sharing a bottleneck</h1>",
        "Paper, section 4.2",
        "What to know.",
        "id=\"claim-C3\"",
        "FAIL",
        "id=\"claim-C2\"",
        "id=\"claim-C4\"",
        "id=\"claim-C1\"",
        "id=\"figure-fig5\"",
        "id=\"figure-fig6\"",
        "<table class=\"sortable\">",
        "How it was run",
        "swiftwater lab run test/sharing",
        "href=\"rows.csv\"",
    ];
    let places: Vec<usize> = order.iter().map(|what| at(&page, what)).collect();
    assert!(places.is_sorted(), "{places:?}");
    assert!(page.contains("1 failed, 0 open, 1 without data, 1 not testable, 1 passed"));
    assert!(!page.contains("Unfinished"));
    assert!(!page.contains("Quick form"));
}

#[test]
fn text_of_files_stays_text() {
    let evil = "<script>alert('x')</script>&\"";
    let mut parts = Parts::new(experiment());
    parts.experiment.title = evil.to_owned();
    parts.experiment.source = evil.to_owned();
    parts.experiment.about = evil.to_owned();
    parts.experiment.axes[1].labels[0] = evil.to_owned();
    for case in &mut parts.experiment.cases {
        if case.labels[1] == "cubic" {
            case.labels[1] = evil.to_owned();
        }
    }
    let mut drawn = figure(evil, line());
    drawn.title = evil.to_owned();
    drawn.caption = evil.to_owned();
    drawn.panels = vec!["rival".to_owned()];
    parts.experiment.figures = vec![drawn];
    let mut claimed = verdict(evil, Outcome::Fail);
    for text in [
        &mut claimed.says,
        &mut claimed.note,
        &mut claimed.here,
        &mut claimed.detail,
    ] {
        *text = evil.to_owned();
    }
    parts.verdicts = vec![claimed];
    parts.table = table(&parts.experiment);
    parts.origin.command = Some(evil.to_owned());

    let page = parts.page();
    assert!(!page.contains("<script>alert"));
    assert!(page.contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;&quot;"));
    // Plotly.js reads tags in names: there the text must be escaped once more.
    let plot = &plots(&page)[0];
    assert_eq!(
        plot["data"][0]["name"],
        "&lt;script&gt;alert('x')&lt;/script&gt;&amp;\""
    );

    let entry = IndexEntry::new(&parts.experiment, 1, &parts.verdicts, "javascript:alert(1)");
    let list = index(&[entry]);
    assert!(!list.contains("<script>alert"));
    assert!(!list.contains("javascript:"));
    assert!(!markdown(&parts.experiment, &parts.verdicts).contains("<script>"));
}

#[test]
fn a_page_refers_to_nothing_outside() {
    let mut parts = Parts::new(experiment());
    parts.experiment.figures = vec![figure("a", line()), figure("b", bar())];
    let page = parts.page();
    let shell = without_scripts(&page);
    for reference in ["http", "src=", "<link", "@import", "url("] {
        assert!(!shell.contains(reference), "{reference}");
    }
    // The script is there, once, and itself not a reference.
    assert_eq!(page.matches("plotly.js v").count(), 1);
    assert!(!page.contains("MathJax-script"));
    for element in page.split("<script").skip(1) {
        let tag = &element[..element.find('>').unwrap()];
        assert!(!tag.contains("src"), "{tag}");
    }
}

#[test]
fn without_figures_the_page_has_no_plotly() {
    let page = Parts::new(experiment()).page();
    assert!(page.len() < 20_000, "{}", page.len());
    assert!(page.contains("This experiment has no figures"));
}

#[test]
fn lines_are_the_means_of_the_rows() {
    let mut parts = Parts::new(experiment());
    parts.experiment.figures = vec![figure("fig5", line())];
    let plot = &plots(&parts.page())[0];
    assert_eq!(plot["data"].as_array().unwrap().len(), 2);
    for cc in ["cubic", "cubic-plus"] {
        let trace = &traces_named(plot, cc)[0];
        assert_eq!(numbers(&trace["x"]), [Some(0.1), Some(1.0), Some(20.0)]);
        let means: Vec<Option<f64>> = ["0.1bdp", "1bdp", "20bdp"]
            .iter()
            .map(|buffer| {
                let of = |rival| case_mean(&parts, &[rival, cc, buffer], 0);
                Some(f64::midpoint(of("bbr1"), of("bbr2")))
            })
            .collect();
        for (drawn, mean) in numbers(&trace["y"]).iter().zip(&means) {
            assert!((drawn.unwrap() - mean.unwrap()).abs() < 1e-9);
        }
    }
    let page = parts.page();
    assert!(page.contains("Averaged over rival."));
    assert!(page.contains("Bars: smallest to largest repeat."));
}

#[test]
fn error_bars_reach_the_extremes_of_few_repeats() {
    let mut parts = Parts::new(experiment());
    let mut drawn = figure("fig5", line());
    drawn
        .select
        .insert("rival".to_owned(), vec!["bbr1".to_owned()]);
    parts.experiment.figures = vec![drawn];
    let plot = &plots(&parts.page())[0];
    let trace = &traces_named(plot, "cubic")[0];
    let (y, up) = (numbers(&trace["y"]), numbers(&trace["error_y"]["array"]));
    let largest = parts
        .table
        .rows
        .iter()
        .filter(|row| row.labels == ["bbr1", "cubic", "1bdp"])
        .filter_map(|row| row.values[0])
        .fold(f64::MIN, f64::max);
    assert!((y[1].unwrap() + up[1].unwrap() - largest).abs() < 1e-9);
}

#[test]
fn the_interval_is_that_of_students_t() {
    let mut parts = Parts::new(experiment());
    parts.experiment.repeats = 5;
    parts.table = table(&parts.experiment);
    // Mean 3, variance 2.5, t(4) = 2.776: 3 ± 2.776 * sqrt(2.5 / 5).
    for row in &mut parts.table.rows {
        row.values[0] = Some(f64::from(row.run.repeat) + 1.0);
    }
    parts.experiment.figures = vec![figure("fig5", line())];
    let plot = &plots(&parts.page())[0];
    let up = numbers(&plot["data"][0]["error_y"]["array"]);
    assert!((up[0].unwrap() - 2.776_445 * 0.5_f64.sqrt()).abs() < 1e-5);
    assert_eq!(ErrorBars::of(5), ErrorBars::Interval);
    assert_eq!(ErrorBars::of(4), ErrorBars::Range);
    assert_eq!(ErrorBars::of(1), ErrorBars::None);
}

#[test]
fn panels_share_legend_and_colours() {
    let mut parts = Parts::new(experiment());
    let mut drawn = figure("fig5", line());
    drawn.panels = vec!["rival".to_owned()];
    parts.experiment.figures = vec![drawn, figure("fig6", bar())];
    let plots = plots(&parts.page());
    let cubic = traces_named(&plots[0], "cubic");
    assert_eq!(cubic.len(), 2);
    assert_eq!(
        (&cubic[0]["xaxis"], &cubic[1]["xaxis"]),
        (&"x".into(), &"x2".into())
    );
    let legends: Vec<_> = cubic
        .iter()
        .map(|trace| trace["showlegend"].as_bool())
        .collect();
    assert_eq!(legends, [Some(true), Some(false)]);
    assert!(plots[0]["layout"]["xaxis2"]["domain"][0].as_f64().unwrap() > 0.5);
    assert_eq!(plots[0]["layout"]["annotations"][1]["text"], "<b>bbr2</b>");
    let colour = |trace: &Value| trace["marker"]["color"].clone();
    assert_eq!(colour(&cubic[0]), colour(&cubic[1]));
    assert_eq!(
        colour(&cubic[0]),
        colour(&traces_named(&plots[1], "cubic")[0])
    );
    assert_ne!(
        colour(&cubic[0]),
        colour(&traces_named(&plots[0], "cubic-plus")[0])
    );
}

#[test]
fn many_panels_all_have_axes() {
    let mut parts = Parts::new(experiment());
    let mut drawn = figure("all", line());
    drawn.kind = FigureKind::Line {
        x: "buffer".to_owned(),
        y: vec![
            "subject.goodput_mbps".to_owned(),
            "bottleneck.queue_delay_mean_ms".to_owned(),
        ],
    };
    drawn.panels = vec!["rival".to_owned(), "buffer".to_owned()];
    parts.experiment.figures = vec![drawn];
    let plot = &plots(&parts.page())[0];
    // Six panels times two units.
    assert_eq!(plot["layout"]["xaxis12"]["anchor"], "y12");
    assert_eq!(plot["layout"]["yaxis"]["title"]["text"], "goodput (Mbit/s)");
    assert_eq!(
        plot["layout"]["yaxis2"]["title"]["text"],
        "queue delay mean (ms)"
    );
}

#[test]
fn colours_do_not_depend_on_rows() {
    let mut parts = Parts::new(experiment());
    parts.experiment.figures = vec![figure("fig5", line())];
    let full = plots(&parts.page());
    let colour = |plot: &Value| traces_named(plot, "cubic-plus")[0]["marker"]["color"].clone();
    let before = colour(&full[0]);
    parts.table.rows.retain(|row| row.labels[1] == "cubic-plus");
    assert_eq!(colour(&plots(&parts.page())[0]), before);

    let palette = Palette::of(&parts.experiment);
    assert_eq!(before, palette.style("cubic-plus").color);
    assert_ne!(palette.style("cubic"), palette.style("cubic-plus"));
}

#[test]
fn a_measure_has_dashes_where_colour_is_taken() {
    let mut parts = Parts::new(experiment());
    let mut drawn = figure("fig5", line());
    drawn.kind = FigureKind::Line {
        x: "buffer".to_owned(),
        y: vec![
            "subject.goodput_mbps".to_owned(),
            "rival.goodput_mbps".to_owned(),
        ],
    };
    parts.experiment.figures = vec![drawn];
    let plot = &plots(&parts.page())[0];
    let own = &traces_named(plot, "cubic, subject.goodput_mbps")[0];
    let other = &traces_named(plot, "cubic, rival.goodput_mbps")[0];
    assert_eq!(own["line"]["color"], other["line"]["color"]);
    assert_ne!(own["line"]["dash"], other["line"]["dash"]);
}

#[test]
fn lines_are_named_alike_in_panels_of_all_units() {
    let mut parts = Parts::new(experiment());
    let mut drawn = figure("fig5", line());
    drawn.kind = FigureKind::Line {
        x: "buffer".to_owned(),
        y: parts.table.measures.clone(),
    };
    parts.experiment.figures = vec![drawn];
    let plot = &plots(&parts.page())[0];
    let delay = traces_named(plot, "cubic, bottleneck.queue_delay_mean_ms");
    assert_eq!(delay.len(), 1);
    assert_eq!(delay[0]["yaxis"], "y2");
    assert!(traces_named(plot, "cubic").is_empty());
}

#[test]
fn an_empty_table_says_what_is_missing() {
    let mut parts = Parts::new(experiment());
    parts.experiment.figures = vec![
        figure("a", line()),
        figure("b", bar()),
        figure("c", cdf()),
        figure("d", over_time("subject.cwnd_bytes")),
    ];
    parts.table = Table::default();
    let page = parts.page();
    assert!(page.contains("<b>Unfinished:</b> 0 of 36 runs"));
    assert_eq!(page.matches("Missing in this figure:").count(), 4);
    assert!(page.contains("No row has the measure `subject.goodput_mbps`."));
    assert!(page.contains("Samples of 0 of 36 runs."));
    assert!(page.contains("cubic, subject.cwnd_bytes, bbr1, 0.1bdp: no time series"));
    assert!(plots(&page).is_empty());
}

#[test]
fn an_unfinished_experiment_shows_what_there_is() {
    let mut parts = Parts::new(experiment());
    parts.experiment.figures = vec![figure("a", line())];
    parts
        .table
        .rows
        .retain(|row| row.run.repeat == 0 && row.labels[2] != "20bdp");
    let page = parts.page();
    assert!(page.contains("<b>Unfinished:</b> 8 of 36 runs"));
    assert!(page.contains("2 of 6 points have no value"));
    assert!(page.contains("the first: cubic, subject.goodput_mbps, 20bdp."));
    let y = numbers(&traces_named(&plots(&page)[0], "cubic")[0]["y"]);
    assert!(y[0].is_some() && y[1].is_some() && y[2].is_none());
}

#[test]
fn a_quick_form_says_so() {
    let mut parts = Parts::new(experiment());
    parts.experiment.quick = true;
    let page = parts.page();
    assert!(page.contains("Quick form"));
    assert!(page.contains("swiftwater lab run test/sharing --quick"));
}

#[test]
fn a_quick_form_has_no_verdicts_that_look_like_results() {
    let mut parts = Parts::new(experiment());
    parts.experiment.quick = true;
    parts.verdicts = vec![verdict("C1", Outcome::Pass), verdict("C2", Outcome::Fail)];
    let page = parts.page();
    assert!(
        page.contains("1 claims inside their bands, 1 outside"),
        "counts"
    );
    assert!(page.contains("<th>Smoke run</th>") && page.contains("<table class=\"smoke\">"));
    assert!(!page.contains(">FAIL<") && !page.contains(">pass<"));

    let entry = |quick| IndexEntry {
        quick,
        ..IndexEntry::new(&experiment(), 12, &parts.verdicts, "sharing/report.html")
    };
    let list = index(&[entry(true), entry(true)]);
    // The notice comes before the numbers, and no row is marked as failed.
    let said = list.find("verdicts are not results").expect("it says so");
    assert!(said < list.find("<table>").expect("there is a table"));
    assert!(list.contains("2: smoke run: 2 claims inside their bands, 2 outside"));
    assert!(!list.contains("tr class=\"fail\"") && !list.contains("<th>Failed</th>"));
    assert!(index(&[entry(false)]).contains("tr class=\"fail\""));

    let text = markdown(&parts.experiment, &parts.verdicts);
    assert!(text.contains("smoke run: 1 claims") && !text.contains("| FAIL |"));
}

#[test]
fn distributions_leave_out_what_did_not_end() {
    let mut parts = Parts::new(experiment());
    let mut drawn = figure("c", cdf());
    drawn
        .select
        .insert("rival".to_owned(), vec!["bbr1".to_owned()]);
    drawn
        .select
        .insert("buffer".to_owned(), vec!["1bdp".to_owned()]);
    parts.experiment.figures = vec![drawn];
    let sample = |duration_ms| Sample {
        group: "transfers".to_owned(),
        start_s: 0.0,
        size_bytes: 1000,
        duration_ms,
    };
    let needed = needs(&parts.experiment);
    assert_eq!(needed.samples.len(), 6);
    assert!(needed.series.is_empty());
    parts.samples = needed
        .samples
        .iter()
        .map(|&run| {
            let value = f64::from(run.repeat) * 10.0 + 10.0;
            (run, vec![sample(Some(value)), sample(None)])
        })
        .collect();
    let page = parts.page();
    let trace = &traces_named(&plots(&page)[0], "cubic")[0];
    assert_eq!(
        numbers(&trace["x"]),
        [Some(10.0), Some(10.0), Some(20.0), Some(30.0)]
    );
    let y = numbers(&trace["y"]);
    assert_eq!((y[0], y[3]), (Some(0.0), Some(1.0)));
    assert!(page.contains("cubic, transfers: 3 of 6 samples did not end and are left out."));
}

#[test]
fn values_over_time_come_from_the_first_repeat() {
    let mut parts = Parts::new(experiment());
    let mut drawn = figure("d", over_time("subject.cwnd_bytes"));
    drawn
        .select
        .insert("buffer".to_owned(), vec!["1bdp".to_owned()]);
    drawn.panels = vec!["rival".to_owned()];
    parts.experiment.figures = vec![drawn];
    let needed = needs(&parts.experiment);
    assert_eq!(needed.series.len(), 4);
    assert!(needed.series.iter().all(|run| run.repeat == 0));
    parts.series = needed
        .series
        .iter()
        .map(|&run| (run, flow_series("subject", 10_000)))
        .collect();
    let page = parts.page();
    let plot = &plots(&page)[0];
    let trace = &traces_named(plot, "cubic-plus")[1];
    let kept = trace["x"].as_array().unwrap().len();
    assert!(kept <= MAX_POINTS && kept > MAX_POINTS / 2, "{kept}");
    // The single spike of the series is still present.
    assert!(numbers(&trace["y"]).contains(&Some(1e9)));
    assert_eq!(trace["hovertext"][0], "slow start");
    assert_eq!(plot["layout"]["yaxis"]["title"]["text"], "cwnd (bytes)");
    assert!(page.contains("thinned"));
}

#[test]
fn what_was_not_recorded_is_named() {
    let mut parts = Parts::new(experiment());
    let mut drawn = figure("d", over_time("subject.nothing"));
    drawn
        .select
        .insert("rival".to_owned(), vec!["bbr1".to_owned()]);
    drawn
        .select
        .insert("buffer".to_owned(), vec!["1bdp".to_owned()]);
    parts.experiment.figures = vec![drawn];
    let runs = needs(&parts.experiment).series;
    parts.series = runs.iter().map(|&run| (run, Series::default())).collect();
    let page = parts.page();
    assert!(page.contains("cubic, subject.nothing: nothing of this name was recorded."));
}

#[test]
fn labels_lie_at_their_numbers_in_one_unit() {
    let mut parts = Parts::new(experiment());
    parts.relabel("buffer", &["100kbit", "2mbit", "1gbit"]);
    let mut drawn = figure("a", line());
    drawn.x_scale = Scale::Log;
    parts.experiment.figures = vec![drawn];
    let plot = &plots(&parts.page())[0];
    assert_eq!(
        numbers(&plot["data"][0]["x"]),
        [Some(100.0), Some(2000.0), Some(1e6)]
    );
    assert_eq!(plot["layout"]["xaxis"]["title"]["text"], "buffer (kbit)");
    assert_eq!(plot["layout"]["xaxis"]["type"], "log");
    assert_eq!(plot["layout"]["xaxis"]["ticktext"][1], "2mbit");
}

#[test]
fn labels_without_numbers_stand_side_by_side() {
    let mut parts = Parts::new(experiment());
    parts.relabel("buffer", &["1bdp", "10p", "unlimited"]);
    parts.experiment.figures = vec![figure("a", line())];
    let plot = &plots(&parts.page())[0];
    assert_eq!(plot["layout"]["xaxis"]["type"], "category");
    assert_eq!(plot["data"][0]["x"][2], "unlimited");
}

#[test]
fn zero_is_not_lost_on_a_logarithmic_axis() {
    let mut parts = Parts::new(experiment());
    parts.relabel("buffer", &["0%", "1%", "2%"]);
    let mut drawn = figure("a", line());
    drawn.x_scale = Scale::Log;
    parts.experiment.figures = vec![drawn];
    let page = parts.page();
    assert_eq!(plots(&page)[0]["layout"]["xaxis"]["type"], "category");
    assert!(page.contains("`buffer` has 0, which a logarithmic scale can&#39;t show"));
}

#[test]
fn numbers_of_labels() {
    let cases = [
        ("0.1bdp", 0.1, "bdp"),
        ("30ms", 30.0, "ms"),
        ("1%", 1.0, "%"),
        ("100mbit", 100.0, "mbit"),
        ("1e3", 1000.0, ""),
        ("-2.5 dB", -2.5, "dB"),
        (".5", 0.5, ""),
        ("1em", 1.0, "em"),
        ("3.", 3.0, ""),
    ];
    for (label, value, unit) in cases {
        assert_eq!(number_and_unit(label), Some((value, unit)), "{label}");
    }
    for label in ["", "cubic", "-", "inf", "NaN", ".", "e3", "1e999"] {
        assert_eq!(number_and_unit(label), None, "{label}");
    }
}

#[test]
fn markdown_has_misses_first_and_one_line_each() {
    let mut pass = verdict("C1", Outcome::Pass);
    pass.says = "a | b\nc".to_owned();
    let mut fail = verdict("C2", Outcome::Fail);
    fail.here = "+3.2 %".to_owned();
    fail.margin = Some(0.011);
    let mut open = verdict("C3", Outcome::Open);
    open.band = "at least 1.1x".to_owned();
    open.lowered = "half of the published gain".to_owned();
    let text = markdown(&experiment(), &[pass, open, fail]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[2],
        "1 failed, 1 open, 0 without data, 0 not testable, 1 passed."
    );
    assert!(lines[6].starts_with("| C2 |") && lines[6].contains("+3.2 % ± 1.1"));
    assert!(lines[7].starts_with("| C3 |") && lines[7].contains("| open |"));
    assert!(lines[7].contains("at least 1.1x (lowered bar: half of the published gain)"));
    assert!(lines[8].starts_with("| C1 |") && lines[8].contains("a \\| b c"));
    assert_eq!(lines.len(), 9);
}

#[test]
fn the_index_counts_and_links() {
    let verdicts = [verdict("C1", Outcome::Pass), verdict("C2", Outcome::Fail)];
    let entry = IndexEntry::new(&experiment(), 12, &verdicts, "sharing/report.html");
    let page = index(&[entry.clone(), entry]);
    assert_eq!(page.matches("href=\"sharing/report.html\"").count(), 2);
    assert!(page.contains("2: 2 failed, 0 open, 0 without data, 0 not testable, 2 passed"));
    assert!(page.contains("12 of 36"));
    assert_eq!(Counts::of(&verdicts).failed, 1);
}

#[test]
fn captions_lead_to_verdicts() {
    let mut parts = Parts::new(experiment());
    let mut drawn = figure("a", line());
    drawn.caption = "See C1, not C12.".to_owned();
    parts.experiment.figures = vec![drawn];
    parts.verdicts = vec![verdict("C1", Outcome::Pass)];
    assert!(
        parts
            .page()
            .contains("See <a href=\"#claim-C1\">C1</a>, not C12.")
    );
}

#[test]
fn the_same_data_make_the_same_page() {
    let mut parts = Parts::new(experiment());
    parts.experiment.figures = vec![figure("a", line()), figure("b", bar())];
    assert!(parts.page() == parts.page());
}

proptest! {
    #[test]
    fn decimation_keeps_ends_and_extremes(
        values in prop::collection::vec(prop::option::weighted(0.9, -1e6..1e6_f64), 0..3000),
        limit in 8..400_usize,
    ) {
        let kept = decimate(&values, limit);
        prop_assert!(kept.len() <= limit);
        prop_assert!(kept.windows(2).all(|pair| pair[0] < pair[1]));
        prop_assert!(kept.iter().all(|&place| place < values.len()));
        if values.len() <= limit {
            prop_assert_eq!(kept.len(), values.len());
        } else {
            prop_assert_eq!((kept[0], kept[kept.len() - 1]), (0, values.len() - 1));
        }
        let extremes = |values: &mut dyn Iterator<Item = Option<f64>>| {
            values.flatten().fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)))
        };
        let all = extremes(&mut values.iter().copied());
        prop_assert_eq!(extremes(&mut kept.iter().map(|&place| values[place])), all);
    }

    #[test]
    fn any_label_is_read_or_refused(label in "[-+0-9.eE a-z%]{0,12}") {
        if let Some((number, unit)) = number_and_unit(&label) {
            prop_assert!(number.is_finite());
            prop_assert!(label.trim().ends_with(unit));
        }
    }
}

fn line() -> FigureKind {
    FigureKind::Line {
        x: "buffer".to_owned(),
        y: vec!["subject.goodput_mbps".to_owned()],
    }
}

fn bar() -> FigureKind {
    FigureKind::Bar {
        x: "buffer".to_owned(),
        y: vec!["subject.goodput_mbps".to_owned()],
    }
}

fn cdf() -> FigureKind {
    FigureKind::Cdf {
        group: "transfers".to_owned(),
        of: "duration_ms".to_owned(),
    }
}

fn over_time(y: &str) -> FigureKind {
    FigureKind::Series {
        y: vec![y.to_owned()],
    }
}

/// The experiment must be the one that the other tests assume.
#[test]
fn the_example_is_complete() {
    let example: Experiment = experiment();
    assert_eq!(example.cases.len(), 12);
    assert_eq!(table(&example).rows.len(), 36);
}
