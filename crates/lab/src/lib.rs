//! The laboratory: experiments as data, run on the real stack in virtual time.
//!
//! ```text
//! scenario file --scenario--> Experiment = cases x repeats, claims, figures
//!     each run  --world-----> Outcome    = measures, time series, samples
//!     outcomes  --store-----> rows.csv and files beside it, resumable
//!     rows      --claim-----> verdicts
//!     all of it --report----> one HTML page
//! ```
//!
//! - [`scenario`]: what an experiment is, and how it is read from a TOML file.
//! - [`world`]: builds the network of one run, runs it, measures.
//! - [`record`]: time series of a run.
//! - [`run`]: every run of an experiment, on all cores.
//! - [`store`]: rows on disk; work that was interrupted goes on.
//! - [`claim`]: statements of a paper against rows.
//! - [`report`]: figures and tables.
//!
//! The simulator is `swiftwater-sim`, the command line `swiftwater-cli`; neither is here.

#![forbid(unsafe_code)]

pub mod claim;
pub mod record;
pub mod report;
pub mod run;
pub mod scenario;
pub mod store;
pub mod world;
