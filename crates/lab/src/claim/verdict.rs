//! The outcome of a claim.

use serde::Serialize;

use super::confidence::Interval;

/// Outcome of a claim.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The whole confidence interval is inside the band.
    Pass,
    /// The confidence interval crosses a bound of the band, or there is none: fewer than two repeats.
    Open,
    /// The whole confidence interval is outside; or there is no number: what the measure is the time of did not
    /// happen in a run, or there was a division by zero.
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
    /// Half the width of its 95 % confidence interval over repeats, if there are several; none for the
    /// smallest and largest of several points, whose intervals are not symmetrical.
    pub margin: Option<f64>,
    /// The confidence interval that the verdict is about.
    pub interval: Option<Interval>,
    /// The runs, or pairs of runs with the same seed, that the number is made of, and those that were run:
    /// the others had nothing to measure.
    pub runs: Option<(usize, usize)>,
    /// The pass band, as text.
    pub band: String,
    /// Why the band is wider than the published number, as the scenario states it; empty if it isn't.
    pub lowered: String,
    /// Pass, open or fail.
    pub outcome: Outcome,
    /// The point that decided, or the reason why it can't be tested.
    pub detail: String,
    /// The claim's note.
    pub note: String,
}
