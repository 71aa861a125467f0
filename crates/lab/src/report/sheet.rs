//! An HTML page for results without a scenario, in the style of the report of an experiment. Its charts
//! are SVG: it is self-contained, small and needs no script.

use std::fmt::Write as _;

use super::chart::Chart;
use super::html::{document, escape};

/// A page under construction. All text is escaped here.
#[derive(Clone, Debug)]
pub struct Sheet {
    title: String,
    body: String,
}

/// Headline values of one of several compared things.
#[derive(Clone, Debug)]
pub struct Headline<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its colour in charts ([`Curve::colour`](super::Curve::colour)).
    pub colour: usize,
    /// Values with their labels.
    pub values: Vec<(String, &'static str)>,
}

impl Sheet {
    /// A page with this title and no content.
    pub fn new(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            body: format!("<h1>{}</h1>\n", escape(title)),
        }
    }

    /// Starts a section.
    pub fn heading(&mut self, text: &str) {
        let _ = writeln!(self.body, "<h2>{}</h2>", escape(text));
    }

    /// Adds a paragraph.
    pub fn paragraph(&mut self, text: &str) {
        let _ = writeln!(self.body, "<p>{}</p>", escape(text));
    }

    /// Adds a highlighted paragraph.
    pub fn banner(&mut self, text: &str) {
        let _ = writeln!(self.body, "<p class=\"banner\">{}</p>", escape(text));
    }

    /// Adds a table; all columns except the first hold numbers.
    pub fn table<'a>(
        &mut self,
        titles: impl IntoIterator<Item = &'a str>,
        rows: impl IntoIterator<Item = Vec<String>>,
    ) {
        self.body
            .push_str("<div class=\"scroll\"><table>\n<thead><tr>");
        for title in titles {
            let _ = write!(self.body, "<th>{}</th>", escape(title));
        }
        self.body.push_str("</tr></thead>\n<tbody>\n");
        for row in rows {
            self.body.push_str("<tr>");
            for (column, cell) in row.iter().enumerate() {
                let class = if column == 0 { "" } else { " class=\"number\"" };
                let _ = write!(self.body, "<td{class}>{}</td>", escape(cell));
            }
            self.body.push_str("</tr>\n");
        }
        self.body.push_str("</tbody></table></div>\n");
    }

    /// Adds a chart with a title above and an explanation below.
    pub fn chart(&mut self, title: &str, chart: &Chart, caption: &str) {
        let _ = writeln!(
            self.body,
            "<figure>\n<figcaption>{}</figcaption>\n{}<p class=\"caption\">{}</p>\n</figure>",
            escape(title),
            chart.render(),
            escape(caption),
        );
    }

    /// Adds headline values, side by side: for each name, values with their labels.
    pub fn headlines<'a>(&mut self, headlines: impl IntoIterator<Item = Headline<'a>>) {
        self.body.push_str("<div class=\"headlines\">\n");
        for headline in headlines {
            let colour = headline.colour % super::chart::COLOURS;
            let _ = writeln!(
                self.body,
                "<section class=\"c{colour}\">\n<h3>{}</h3>",
                escape(headline.name)
            );
            for (value, meaning) in headline.values {
                let _ = writeln!(
                    self.body,
                    "<p><b>{}</b> {}</p>",
                    escape(&value),
                    escape(meaning)
                );
            }
            self.body.push_str("</section>\n");
        }
        self.body.push_str("</div>\n");
    }

    /// Adds a list of names with descriptions.
    pub fn facts<'a>(&mut self, facts: impl IntoIterator<Item = (&'a str, String)>) {
        self.body.push_str("<dl>\n");
        for (name, fact) in facts {
            let _ = writeln!(
                self.body,
                "<dt>{}</dt><dd><code>{}</code></dd>",
                escape(name),
                escape(&fact)
            );
        }
        self.body.push_str("</dl>\n");
    }

    /// The whole page.
    pub fn render(&self) -> String {
        document(&self.title, "", &self.body)
    }
}
