//! Text into HTML: escaping, paragraphs, JSON inside a page. Pages are assembled elsewhere.

use std::fmt::Write as _;

use serde_json::Value;

/// Text escaped for use between tags and in quoted attributes.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

/// Text escaped for plotly.js, which interprets a few tags and entities in titles, names and
/// labels.
pub(super) fn plot_text(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// JSON that can't end the surrounding script element.
pub(super) fn json(value: &Value) -> String {
    value
        .to_string()
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}

/// Paragraphs, separated by empty lines.
pub(super) fn paragraphs(text: &str) -> String {
    let mut out = String::new();
    let mut open = String::new();
    for line in text.lines().chain([""]) {
        if !line.trim().is_empty() {
            open.push_str(line.trim());
            open.push(' ');
        } else if !open.is_empty() {
            let _ = writeln!(out, "<p>{}</p>", escape(open.trim()));
            open.clear();
        }
    }
    out
}

/// A whole page. `style` and `scripts` come from this crate or plotly.js, not from files.
pub(super) fn document(title: &str, scripts: &str, body: &str) -> String {
    let title = escape(title);
    let style = include_str!("page.css");
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n{body}{scripts}</body>\n\
         </html>\n"
    )
}
