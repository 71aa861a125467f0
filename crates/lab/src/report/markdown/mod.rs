//! Results as Markdown, for documents.
//!
//! `claims` writes the verdicts of an experiment, `tables` its tables, `provenance` where rows come from, `counts` how
//! many claims have which verdict. `document` puts all of that between the markers of a page.

mod cells;
mod claims;
mod counts;
mod document;
mod documented;
mod provenance;
mod tables;

pub use claims::markdown;
pub use document::{DocumentError, document_template, fill_document};
pub use documented::Documented;
