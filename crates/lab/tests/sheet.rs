//! Pages without a scenario.

use swiftwater_lab::report::{Chart, ChartBand, Curve, Headline, Panel, Shape, Sheet};

/// Everything that a page can have, with text that must not be interpreted as markup.
fn page() -> Sheet {
    let odd = "<b>&\"'</script>";
    let mut sheet = Sheet::new(odd);
    sheet.heading(odd);
    sheet.paragraph(odd);
    sheet.banner(odd);
    sheet.table(["", odd], [vec!["name".to_owned(), odd.to_owned()]]);
    sheet.facts([(odd, odd.to_owned())]);
    sheet
}

#[test]
fn text_is_no_markup() {
    let html = page().render();
    assert!(!html.contains("<b>"), "a tag from a text");
    assert_eq!(html.matches("&lt;b&gt;&amp;&quot;&#39;").count(), 9);
    assert!(!html.contains("<script"), "nothing needs one");
}

/// A chart with two panels, two curves and a band far shorter than a pixel.
fn chart() -> Chart {
    let curve = |name: &str, colour| Curve {
        name: name.to_owned(),
        colour,
        shape: Shape::Line,
        points: vec![(0.0, 0.0), (10.0, 40.0), (f64::NAN, 1.0), (30.0, 20.0)],
    };
    let panel = |title: &str, curves| Panel {
        title: title.to_owned(),
        y: "ms".to_owned(),
        y_end: None,
        height: 100,
        curves,
        bands: vec![ChartBand {
            from: 12.0,
            to: 12.001,
            note: "frozen for 1 ms".to_owned(),
        }],
    };
    Chart {
        x: "s".to_owned(),
        panels: vec![
            panel("one", vec![curve("<b>a", 0)]),
            panel("two", vec![curve("<b>a", 0), curve("other", 1)]),
        ],
    }
}

#[test]
fn charts_need_no_script() {
    let mut sheet = page();
    sheet.chart("title", &chart(), "caption");
    let html = sheet.render();
    assert!(!html.contains("<script") && !html.contains("http"));
    assert!(html.len() < 20_000, "{} bytes", html.len());
    assert_eq!(html.matches("<path class=\"curve c0\"").count(), 2);
    // In the legend each name is once, and a text is no markup.
    assert_eq!(
        html.matches("<span class=\"c0\">&lt;b&gt;a</span>").count(),
        1
    );
    assert!(!html.contains("<b>a"));
    // Values that are no numbers are left out.
    assert!(!html.contains("NaN"));
}

#[test]
fn short_bands_can_be_seen() {
    let mut sheet = Sheet::new("");
    sheet.chart("title", &chart(), "caption");
    let html = sheet.render();
    assert_eq!(html.matches("<title>frozen for 1 ms</title>").count(), 2);
    let band = html.split("class=\"band\"").nth(1).expect("a band");
    let width = band
        .split("width=\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next());
    let width: f64 = width.expect("a width").parse().expect("a number");
    assert!(width >= 2.0, "{width}");
}

#[test]
fn pages_follow_the_colour_scheme() {
    let html = page().render();
    assert!(html.contains("prefers-color-scheme: dark"));
}

#[test]
fn a_chart_without_points_is_a_chart() {
    let mut sheet = Sheet::new("");
    sheet.chart("title", &Chart::default(), "caption");
    assert!(sheet.render().contains("<svg"));
}

#[test]
fn headlines_come_with_what_they_are() {
    let mut sheet = Sheet::new("");
    sheet.headlines([Headline {
        name: "<one>",
        colour: 7,
        values: vec![("329 ms".to_owned(), "frozen")],
    }]);
    let html = sheet.render();
    assert!(html.contains("<h3>&lt;one&gt;</h3>") && html.contains("<b>329 ms</b> frozen"));
    // After the last colour they repeat.
    assert!(html.contains("<section class=\"c1\">"));
}

#[test]
fn points_are_dots_that_say_their_name() {
    let mut chart = chart();
    chart.panels[1].curves[1].shape = Shape::Points;
    let mut sheet = Sheet::new("points");
    sheet.chart("title", &chart, "caption");
    let html = sheet.render();
    let dots = html.split("class=\"points c1\"").nth(1).unwrap_or_default();
    let path = dots.split("</path>").next().unwrap_or_default();
    // One for each finite point, and nothing between them.
    assert_eq!(path.matches("h0").count(), 3, "{path}");
    assert!(
        !path.contains('L') && path.contains("<title>other</title>"),
        "{path}"
    );
}
