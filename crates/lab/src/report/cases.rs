//! The table of all cases with the means of the measures that claims and figures use.

use std::fmt::Write as _;

use super::html::escape;
use super::number::short;
use super::statistics::Means;
use crate::scenario::{Compare, Experiment, FigureKind, Verifiable};

/// Measures that claims, figures and tables refer to, each once, in the order of the file.
pub(super) fn measures(experiment: &Experiment) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    let mut add = |name| {
        if !names.contains(&name) {
            names.push(name);
        }
    };
    for claim in &experiment.claims {
        let Verifiable::Test(test) = &claim.test else {
            continue;
        };
        add(test.measure.as_str());
        if let Compare::Ratio(other) | Compare::Change(other) | Compare::Difference(other) =
            &test.compare
        {
            other.measure.as_deref().into_iter().for_each(&mut add);
        }
    }
    for figure in &experiment.figures {
        if let FigureKind::Line { y, .. } | FigureKind::Bar { y, .. } = &figure.kind {
            y.iter().map(String::as_str).for_each(&mut add);
        }
    }
    for column in experiment.tables.iter().flat_map(|table| &table.columns) {
        add(column.test.measure.as_str());
    }
    names
}

/// The table, collapsed.
pub(super) fn table(experiment: &Experiment, means: &Means<'_>) -> String {
    let measures = measures(experiment);
    let mut out = format!(
        "<details><summary>{} cases, means over repeats of what claims and figures use (a click on \
         a heading sorts)</summary>\n<div class=\"scroll\"><table class=\"sortable\">\n<thead><tr>",
        experiment.cases.len()
    );
    let headings = experiment.axes.iter().map(|axis| axis.name.as_str());
    for heading in headings.chain(["repeats"]).chain(measures.iter().copied()) {
        let _ = write!(out, "<th>{}</th>", escape(heading));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for (index, case) in experiment.cases.iter().enumerate() {
        out.push_str("<tr>");
        for label in &case.labels {
            let _ = write!(out, "<td>{}</td>", escape(label));
        }
        let _ = write!(out, "<td class=\"number\">{}</td>", means.repeats(index));
        for measure in &measures {
            let column = means.column(measure);
            match column.and_then(|column| means.point(&[index], column).mean) {
                Some(mean) => {
                    let shown = short(mean);
                    let _ = write!(
                        out,
                        "<td class=\"number\" data-value=\"{mean}\">{shown}</td>"
                    );
                }
                None => out.push_str("<td class=\"number\" data-value=\"\">-</td>"),
            }
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n</details>\n");
    out
}
