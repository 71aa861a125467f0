//! A paper's statements about its results, in testable form.

use std::collections::BTreeMap;

use serde::Serialize;

/// A statement about the rows of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// Short name, such as `C5`.
    pub id: String,
    /// The statement, in words.
    pub says: String,
    /// The published number, as text; empty if there is none.
    pub paper: String,
    /// Background: contradictions, choices.
    pub note: String,
    /// Why the band is wider than the published number; empty if it isn't.
    pub lowered: String,
    /// Its test.
    #[serde(flatten)]
    pub test: Verifiable,
}

/// Whether a claim can be tested.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verifiable {
    /// Yes, by this test.
    Test(Test),
    /// No, for this reason.
    #[serde(rename = "untestable")]
    No(String),
}

/// Fixed labels of some axes.
pub type Selection = BTreeMap<String, String>;

/// How a claim is tested: a measure is averaged over the repeats of each selected case, compared,
/// reduced over the points of `each`, and checked against a band.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Test {
    /// Column of the rows.
    pub measure: String,
    /// The case, together with `each` and `average`: every axis is in exactly one of the three.
    #[serde(rename = "where")]
    pub select: Selection,
    /// Axes for each of whose labels the comparison is made.
    pub each: Vec<String>,
    /// Axes over whose labels the mean is taken.
    pub average: Vec<String>,
    /// The comparison.
    pub compare: Compare,
    /// Reduction of the points of `each`.
    pub take: Take,
    /// The pass band.
    pub pass: Band,
}

/// How a value is compared with another.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Compare {
    /// No comparison.
    Value,
    /// Value / other.
    Ratio(Against),
    /// Value / other - 1.
    Change(Against),
    /// Value - other.
    Difference(Against),
}

/// The other side of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Against {
    /// Its measure, if not the same.
    pub measure: Option<String>,
    /// Labels that differ from those of the test's selection.
    #[serde(rename = "where")]
    pub select: Selection,
}

/// Reduction of the points of `each`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Take {
    /// Every point must pass; the worst one is shown. Also for a single point.
    All,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The mean.
    Mean,
    /// The value of the one axis in `each` (the number at the start of its label) at which the
    /// comparison first is at least this, interpolated.
    FirstAtLeast(f64),
    /// As before, at most.
    FirstAtMost(f64),
}

/// The pass band: at least `min` and at most `max`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Band {
    /// Lower end, if any.
    pub min: Option<f64>,
    /// Upper end, if any.
    pub max: Option<f64>,
}

impl Band {
    /// True if `value` passes; a value that is not finite never does.
    pub fn holds(&self, value: f64) -> bool {
        value.is_finite()
            && self.min.is_none_or(|min| value >= min)
            && self.max.is_none_or(|max| value <= max)
    }
}
