//! What a paper says about its numbers, in a form that can be tested.

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
    /// What to know about it: contradictions, choices.
    pub note: String,
    /// How it is tested.
    #[serde(flatten)]
    pub test: Verifiable,
}

/// Whether a claim can be tested.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verifiable {
    /// Yes, in this way.
    Test(Test),
    /// No, for this reason.
    #[serde(rename = "untestable")]
    No(String),
}

/// Labels that some axes are held at.
pub type Selection = BTreeMap<String, String>;

/// How a claim is tested: a measure is averaged over the repeats of each selected case, compared,
/// taken together over the points of `each`, and held against a band.
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
    /// With what it is compared.
    pub compare: Compare,
    /// What becomes of the points of `each`.
    pub take: Take,
    /// What passes.
    pub pass: Band,
}

/// How a value is compared with another.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Compare {
    /// Not at all.
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

/// What becomes of the points of `each`.
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
    /// The value of the one axis in `each` (the number its label begins with) at which the
    /// comparison first is at least this, interpolated.
    FirstAtLeast(f64),
    /// As before, at most.
    FirstAtMost(f64),
}

/// What passes: at least `min` and at most `max`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Band {
    /// Lower end, if any.
    pub min: Option<f64>,
    /// Upper end, if any.
    pub max: Option<f64>,
}

impl Band {
    /// True if `value` passes; what is no finite number never does.
    pub fn holds(&self, value: f64) -> bool {
        value.is_finite()
            && self.min.is_none_or(|min| value >= min)
            && self.max.is_none_or(|max| value <= max)
    }
}
