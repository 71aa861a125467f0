//! Evaluation of claims against rows.
//!
//! A test is done in these steps: `select` finds the required cases and reads one value for each
//! repeat; `compare` computes a number from them, with its confidence interval (`confidence`);
//! `reduction` reduces the points over which the comparison is repeated to one number, and `evaluate`
//! checks it against the band and writes the verdict in the format of the published number (`text`).

mod compare;
mod confidence;
mod evaluate;
mod reduction;
mod select;
mod text;

use serde::Serialize;

pub use confidence::half_width;
pub use evaluate::evaluate;

/// Outcome of a claim.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Inside the band.
    Pass,
    /// Outside, or not a number: a run had no value, or there was a division by zero.
    Fail,
    /// Rows are missing (an unfinished or a quick run without these cases).
    NoData,
    /// Can't be tested; the claim states the reason.
    NotTestable,
}

/// A claim with its measured result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// [`Claim::id`](crate::scenario::Claim::id).
    pub id: String,
    /// The statement.
    pub says: String,
    /// The published number.
    pub paper: String,
    /// The measured number, in the format of the published number, or the reason why there is none;
    /// empty without data.
    pub here: String,
    /// The number itself.
    pub value: Option<f64>,
    /// Half the width of its 95 % confidence interval over repeats, if there are several.
    pub margin: Option<f64>,
    /// The pass band, as text.
    pub band: String,
    /// Pass or fail.
    pub outcome: Outcome,
    /// The point that decided, or the reason why it can't be tested.
    pub detail: String,
    /// The claim's note.
    pub note: String,
}
