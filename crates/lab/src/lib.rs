//! The laboratory: experiments as data, run with the real stack in virtual time.
//!
//! ```text
//! scenario file --scenario--> Experiment = cases x repeats, claims, figures
//!     each run  --world-----> RunOutcome = measures, time series, samples
//!     outcomes  --store-----> rows.csv and further files, resumable
//!     rows      --claim-----> verdicts
//!     all of it --report----> one HTML page
//! ```
//!
//! - [`scenario`]: the definition of an experiment, read from a TOML file.
//! - [`world`]: builds and runs the network of one run, and measures.
//! - [`mod@record`]: time series of a run.
//! - [`run`]: every run of an experiment, on all cores.
//! - [`store`]: rows on disk; interrupted work can be continued.
//! - [`claim`]: evaluation of a paper's statements against rows.
//! - [`report`]: figures and tables.
//!
//! The simulator is `swiftwater-sim`, the command line is in `swiftwater-cli`.

#![forbid(unsafe_code)]

pub mod claim;
pub mod record;
pub mod report;
pub mod run;
pub mod scenario;
pub mod store;
pub mod world;
