//! Assembles the page of an experiment.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use plotly::Plot;

use super::data::ReportData;
use super::figures::{Context, Drawn, Palette, draw};
use super::html::{document, escape, json, paragraphs};
use super::index::{Counts, SMOKE};
use super::measured_table::measured_tables;
use super::number::short;
use super::statistics::Means;
use super::{ReportError, cases, table_html, verdicts};
use crate::claim::Rows;
use crate::scenario::{Experiment, Figure};

/// The page: verdicts, figures, cases, origin. It is self-contained, and links to `rows.csv` and
/// the other results in its folder.
pub fn render_data(data: &ReportData<'_>) -> Result<String, ReportError> {
    let experiment = data.experiment;
    let means = Means::new(experiment, data.table);
    let mut body = head(data);
    body.push_str("<h2>Claims</h2>\n");
    if !data.verdicts.is_empty() {
        let counts = Counts::of(data.verdicts);
        let counts = if data.experiment.quick {
            counts.smoke()
        } else {
            counts.to_string()
        };
        let _ = writeln!(body, "<p>{counts}.</p>");
    }
    body.push_str(&verdicts::table(data.verdicts, data.experiment.quick));
    if !experiment.tables.is_empty() {
        body.push_str("<h2>Tables</h2>\n");
        for measured in measured_tables(experiment, data.table) {
            body.push_str(&table_html::table(&measured));
        }
    }
    body.push_str("<h2>Figures</h2>\n");
    let drawn = figures(&mut body, data, &means)?;
    body.push_str("<h2>Cases</h2>\n");
    body.push_str(&cases::table(experiment, &means));
    body.push_str(&how_it_was_run(data));
    let mut scripts = String::new();
    if drawn {
        scripts.push_str(&plotly_script());
    }
    let _ = writeln!(scripts, "<script>\n{}</script>", include_str!("page.js"));
    let title = format!("{}: {}", experiment.name, experiment.title);
    Ok(document(&title, &scripts, &body))
}

/// Runs that have a row.
fn present(data: &ReportData<'_>) -> usize {
    let runs: BTreeSet<_> = data.table.rows.iter().map(|row| row.run).collect();
    runs.len()
}

fn head(data: &ReportData<'_>) -> String {
    let experiment = data.experiment;
    let mut out = format!("<h1>{}</h1>\n", escape(&experiment.title));
    if !experiment.source.is_empty() {
        let _ = writeln!(
            out,
            "<p class=\"source\">{}</p>",
            escape(&experiment.source)
        );
    }
    let (present, expected) = (present(data), experiment.runs().count());
    if present < expected {
        let _ = writeln!(
            out,
            "<p class=\"banner\"><b>Unfinished:</b> {present} of {expected} runs have a row. \
             Means are over the repeats that there are.</p>"
        );
    }
    if experiment.quick {
        let _ = writeln!(
            out,
            "<p class=\"banner\"><b>Quick form:</b> a smoke run, its verdicts are not results. {SMOKE}</p>"
        );
    }
    out.push_str(&paragraphs(&experiment.about));
    out
}

/// Writes all figures; true if one has a plot.
fn figures(
    body: &mut String,
    data: &ReportData<'_>,
    means: &Means<'_>,
) -> Result<bool, ReportError> {
    let palette = Palette::of(data.experiment);
    let context = Context {
        data: *data,
        means,
        rows: &Rows::new(data.experiment, data.table),
        palette: &palette,
    };
    let mut any = false;
    if data.experiment.figures.is_empty() {
        body.push_str("<p>This experiment has no figures.</p>\n");
    }
    for (place, figure) in data.experiment.figures.iter().enumerate() {
        let drawn = draw(figure, context).map_err(|source| ReportError::Figure {
            figure: figure.id.clone(),
            source,
        })?;
        any |= drawn.plot.is_some();
        write_figure(body, place, figure, &drawn, data);
    }
    Ok(any)
}

fn write_figure(
    body: &mut String,
    place: usize,
    figure: &Figure,
    drawn: &Drawn,
    data: &ReportData<'_>,
) {
    let id = escape(&figure.id);
    let _ = writeln!(
        body,
        "<figure id=\"figure-{id}\">\n<figcaption>{id}: {}</figcaption>",
        escape(&figure.title)
    );
    if let Some(plot) = &drawn.plot {
        let _ = writeln!(
            body,
            "<div class=\"plot\" data-plot=\"plot-{place}\" style=\"height:{}px\"></div>\n\
             <script type=\"application/json\" id=\"plot-{place}\">{}</script>",
            drawn.height,
            json(plot)
        );
    }
    if !drawn.missing.is_empty() {
        body.push_str("<div class=\"missing\"><b>Missing in this figure:</b><ul>\n");
        for missing in &drawn.missing {
            let _ = writeln!(body, "<li>{}</li>", escape(missing));
        }
        body.push_str("</ul></div>\n");
    }
    if !figure.caption.is_empty() {
        let caption = link_claims(&figure.caption, data);
        let _ = writeln!(body, "<p class=\"caption\">{caption}</p>");
    }
    if drawn.plot.is_some() && !drawn.notes.is_empty() {
        let notes = escape(&drawn.notes.join(" "));
        let _ = writeln!(body, "<p class=\"notes\">{notes}</p>");
    }
    body.push_str("</figure>\n");
}

/// A caption in which the ids of claims are links to their verdicts.
fn link_claims(caption: &str, data: &ReportData<'_>) -> String {
    let in_word = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_');
    let mut out = String::new();
    let mut rest = caption;
    while !rest.is_empty() {
        let of_word = rest.starts_with(in_word);
        let end = rest
            .find(|letter| in_word(letter) != of_word)
            .unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let word_html = escape(word);
        if data.verdicts.iter().any(|verdict| verdict.id == word) {
            let _ = write!(out, "<a href=\"#claim-{word_html}\">{word_html}</a>");
        } else {
            out.push_str(&word_html);
        }
        rest = after;
    }
    out
}

fn how_it_was_run(data: &ReportData<'_>) -> String {
    let experiment = data.experiment;
    let origin = data.origin;
    let mut facts = vec![
        ("Experiment", experiment.name.clone()),
        (
            "Command",
            origin
                .command
                .clone()
                .unwrap_or_else(|| command(experiment)),
        ),
        (
            "Form",
            (if experiment.quick { "quick" } else { "full" }).to_owned(),
        ),
        ("Seeds", seeds(experiment)),
        ("Repeats", experiment.repeats.to_string()),
        (
            "Rows",
            format!("{} of {}", present(data), experiment.runs().count()),
        ),
        ("Digest", experiment.digest.clone()),
    ];
    if let Some(version) = &origin.version {
        facts.push(("Program version of the rows", version.clone()));
    }
    if !origin.commits.is_empty() {
        facts.push(("Commit of the rows", origin.commits.join(", ")));
    }
    facts.push((
        "Program version of this page",
        env!("CARGO_PKG_VERSION").to_owned(),
    ));
    if let Some(simulated) = origin.simulated_s {
        facts.push(("Simulated", format!("{} s", short(simulated))));
    }
    if let Some(wall) = origin.wall_s {
        facts.push(("Time on one core", format!("{} s", short(wall))));
    }
    let mut out = String::from("<h2>How it was run</h2>\n<dl>\n");
    for (name, fact) in facts {
        let _ = writeln!(
            out,
            "<dt>{name}</dt><dd><code>{}</code></dd>",
            escape(&fact)
        );
    }
    out.push_str(
        "</dl>\n<p>Beside this page: <a href=\"rows.csv\">rows.csv</a> (one row per run), \
         <a href=\"timing.csv\">timing.csv</a>, <a href=\"verdicts.json\">verdicts.json</a>, \
         <a href=\"manifest.json\">manifest.json</a>.</p>\n",
    );
    out
}

fn command(experiment: &Experiment) -> String {
    let quick = if experiment.quick { " --quick" } else { "" };
    format!("swiftwater lab run {}{quick}", experiment.name)
}

fn seeds(experiment: &Experiment) -> String {
    let last = experiment
        .seed
        .wrapping_add(u64::from(experiment.repeats.saturating_sub(1)));
    if experiment.repeats > 1 {
        format!("{} to {last}", experiment.seed)
    } else {
        experiment.seed.to_string()
    }
}

/// The script element with plotly.js. The crate offers it together with MathJax, which no figure
/// uses.
pub(super) fn plotly_script() -> String {
    let both = Plot::offline_js_sources();
    let end = "</script>";
    let element = both
        .split_inclusive(end)
        .find(|element| element.contains("plotly.js v"));
    element
        .map(|element| format!("{}\n", element.trim()))
        .unwrap_or(both)
}
