//! Claims against rows.
//!
//! A test is done in these steps: `select` finds the cases that it needs and reads one value for
//! each repeat; `compare` makes a number of them, with its confidence interval (`confidence`);
//! `take` makes one number of the points over which the comparison is repeated, and `evaluate` holds
//! it against the band and writes the verdict in the form of the published number (`text`).

mod compare;
mod confidence;
mod evaluate;
mod select;
mod take;
mod text;

use serde::Serialize;

pub use confidence::half_width;
pub use evaluate::evaluate;

/// How a claim fared.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Inside the band.
    Pass,
    /// Outside, or not a number: there was nothing to measure in a run, or it was divided by zero.
    Fail,
    /// Rows are missing (an unfinished or a quick run without these cases).
    NoData,
    /// Can't be tested, the claim says why.
    NotTestable,
}

/// A claim with what was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// [`Claim::id`](crate::scenario::Claim::id).
    pub id: String,
    /// The statement.
    pub says: String,
    /// The published number.
    pub paper: String,
    /// What was measured, in the form of the published number, or in a word why there is no number;
    /// empty without data.
    pub here: String,
    /// The number itself.
    pub value: Option<f64>,
    /// Half the width of its 95 % confidence interval over repeats, if there are several.
    pub margin: Option<f64>,
    /// What passes, as text.
    pub band: String,
    /// Pass or fail.
    pub outcome: Outcome,
    /// Which point decided, or why it can't be tested.
    pub detail: String,
    /// The claim's note.
    pub note: String,
}
