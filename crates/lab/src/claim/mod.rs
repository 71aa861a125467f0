//! Evaluation of claims against rows.
//!
//! A test is done in these steps: `select` finds the required cases and reads one value for each
//! repeat; `compare` computes a number from them, with its confidence interval (`confidence`);
//! `reduction` reduces the points over which the comparison is repeated to one number, with the judgement of its
//! interval by the band (`judgement`); `estimate` does all of that, in the format of the published number (`text`);
//! `evaluate` makes the verdicts of it. Tables and figures of a report use `estimate` too.

mod compare;
mod confidence;
mod estimate;
mod evaluate;
mod judgement;
mod reduction;
mod select;
mod text;
mod verdict;

pub use confidence::{Interval, half_width};
pub use estimate::{Estimate, estimate};
pub use evaluate::evaluate;
pub use select::Rows;
pub use verdict::{Outcome, Verdict};
