//! The report of an experiment: one self-contained HTML page, an index page of a collection, and
//! the verdicts as Markdown.
//!
//! ```text
//! Experiment --needs-----> runs whose time series and samples the figures show
//! ReportData --page------> title, verdicts, figures, cases, how it was run
//!              figures --> JSON for plotly.js, one object for each figure
//! verdicts   --markdown--> table for documents, misses first
//! Sheet      --chart-----> pages of results that come from no scenario, drawn as SVG
//! ```
//!
//! Pages contain text of files (titles, labels, notes), all of it escaped in `html.rs`. Files are
//! read through [`Results`](crate::store::Results) only; nothing is written or evaluated: verdicts
//! come from [`claim`](crate::claim).

mod cases;
mod chart;
mod data;
pub mod figures;
mod html;
mod index;
mod markdown;
mod number;
mod page;
mod sheet;
mod statistics;
mod stored;
mod verdicts;

use thiserror::Error;

pub use chart::{Chart, ChartBand, Curve, Panel, Shape};
pub use data::{Needs, ReportData, RowsOrigin, needs};
pub use index::{Counts, IndexEntry, index};
pub use markdown::markdown;
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
