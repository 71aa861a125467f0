//! A page put together piece by piece, for results that come from no scenario. It looks like the
//! report of an experiment and, like it, opens without a network.

use std::fmt::Write as _;

use serde_json::Value;

use super::html::{document, escape, json, plot_text};
use super::page::plotly_script;

/// A page in the making. All text is escaped here.
#[derive(Clone, Debug)]
pub struct Sheet {
    title: String,
    body: String,
    plots: usize,
}

impl Sheet {
    /// A page with this title and nothing else.
    pub fn new(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            body: format!("<h1>{}</h1>\n", escape(title)),
            plots: 0,
        }
    }

    /// Begins a section.
    pub fn heading(&mut self, text: &str) {
        let _ = writeln!(self.body, "<h2>{}</h2>", escape(text));
    }

    /// Adds a paragraph.
    pub fn paragraph(&mut self, text: &str) {
        let _ = writeln!(self.body, "<p>{}</p>", escape(text));
    }

    /// Adds a paragraph that nobody should miss.
    pub fn banner(&mut self, text: &str) {
        let _ = writeln!(self.body, "<p class=\"banner\">{}</p>", escape(text));
    }

    /// Adds a table; all columns but the first hold numbers.
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

    /// Adds a plot: `data` and `layout` as plotly.js has them, `height` in pixels. Names and titles in
    /// it must have gone through [`Sheet::plot_text`].
    pub fn plot(&mut self, title: &str, data: &Value, layout: &Value, height: u32, caption: &str) {
        let place = self.plots;
        self.plots += 1;
        let plot = serde_json::json!({ "data": data, "layout": layout });
        let _ = writeln!(
            self.body,
            "<figure>\n<figcaption>{}</figcaption>\n\
             <div class=\"plot\" data-plot=\"plot-{place}\" style=\"height:{height}px\"></div>\n\
             <script type=\"application/json\" id=\"plot-{place}\">{}</script>\n\
             <p class=\"caption\">{}</p>\n</figure>",
            escape(title),
            json(&plot),
            escape(caption),
        );
    }

    /// Adds a list of names and what belongs to them.
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
        let mut scripts = String::new();
        if self.plots > 0 {
            scripts.push_str(&plotly_script());
        }
        let _ = writeln!(scripts, "<script>\n{}</script>", include_str!("page.js"));
        document(&self.title, &scripts, &self.body)
    }

    /// Text as it may stand in a plot, where plotly.js reads a few tags.
    pub fn plot_text(text: &str) -> String {
        plot_text(text)
    }
}
