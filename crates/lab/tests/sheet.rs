//! Pages that come from no scenario.

use serde_json::json;
use swiftwater_lab::report::Sheet;

/// Everything that a page can have, with text that must not be taken for markup.
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
    assert!(!html.contains("plotly.js v"), "no plot, no script for it");
}

#[test]
fn plots_bring_what_draws_them() {
    let mut sheet = page();
    let before = sheet.render().matches("</script>").count();
    for title in ["one", "two"] {
        let data = json!([{"type": "scatter", "x": [1], "y": [2], "name": "</script>"}]);
        sheet.plot(title, &data, &json!({}), 300, "a caption");
    }
    let html = sheet.render();
    // Two plots, and plotly.js once.
    assert_eq!(html.matches("</script>").count(), before + 3);
    assert_eq!(html.matches("plotly.js v").count(), 1);
    for place in ["plot-0", "plot-1"] {
        assert!(html.contains(&format!("data-plot=\"{place}\"")));
        assert!(html.contains(&format!("id=\"{place}\"")));
    }
}

#[test]
fn plot_text_has_no_tags() {
    assert_eq!(Sheet::plot_text("a<b>&c"), "a&lt;b&gt;&amp;c");
}
