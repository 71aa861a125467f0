//! The report of an experiment: one self-contained HTML page, an index page of a collection, and
//! the verdicts as Markdown.
//!
//! ```text
//! Experiment --needs-----> runs whose time series and samples the figures show
//! ReportData --page------> title, verdicts, figures, cases, how it was run
//!              figures --> JSON for plotly.js, one object for each figure
//! rows       --measured_table--> the tables of the experiment
//! verdicts   --markdown--> tables for documents, misses first; pages of which parts are replaced
//! Sheet      --chart-----> pages of results that come from no scenario, drawn as SVG
//! ```
//!
//! Pages contain text of files (titles, labels, notes), all of it escaped in `html.rs`. Files are
//! read through [`Results`](crate::store::Results) only; nothing is written. Verdicts, and the numbers of tables, come
//! from [`claim`](crate::claim).

mod cases;
mod chart;
mod data;
pub mod figures;
mod html;
mod index;
mod markdown;
mod measured_table;
mod number;
mod page;
mod sheet;
mod statistics;
mod stored;
mod table_html;
mod verdicts;

use thiserror::Error;

pub use chart::{Chart, ChartBand, Curve, Panel, Shape};
pub use data::{Needs, ReportData, RowsOrigin, needs};
pub use index::{Counts, IndexEntry, index};
pub use markdown::{DocumentError, Documented, document_template, fill_document, markdown};
pub use measured_table::{MeasuredCell, MeasuredRow, MeasuredTable, measured_tables};
pub use page::render_data;
pub use sheet::{Headline, Sheet};
pub use statistics::{ErrorBars, Means, Point};
pub use stored::{command, render};

use crate::store::StoreError;

/// Why a report could not be generated.
#[derive(Debug, Error)]
pub enum ReportError {
    /// Results could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A figure could not be written as JSON.
    #[error("figure `{figure}`: {source}")]
    Figure {
        /// The figure's id.
        figure: String,
        /// The cause.
        source: serde_json::Error,
    },
}
