//! A paper's statements about its results, in testable form.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

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

/// The permitted labels of some axes, at least one each, in the order of the axis. Other axes may have any.
pub type Selection = BTreeMap<String, Vec<String>>;

/// A selection as in a file: a single label is a text, several are a list.
pub(super) fn as_written<S: Serializer>(
    selection: &Selection,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Labels<'a> {
        One(&'a str),
        Several(&'a [String]),
    }
    serializer.collect_map(selection.iter().map(|(axis, labels)| {
        let labels = match labels.as_slice() {
            [label] => Labels::One(label),
            labels => Labels::Several(labels),
        };
        (axis, labels)
    }))
}

/// How a claim is tested: a measure is averaged over the repeats of each selected case, compared,
/// reduced over the points of `each`, and checked against a band.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Test {
    /// Column of the rows.
    pub measure: String,
    /// The cases: those with these labels.
    #[serde(rename = "where", serialize_with = "as_written")]
    pub select: Selection,
    /// Axes, or fields of axes (`net.class`), for each of whose labels the comparison is made.
    pub each: Vec<String>,
    /// Axes over whose labels the mean is taken. Fields of axes: the mean over the means of each of their values.
    /// An axis with several labels that is in neither list, nor a field of it in this one, is averaged too.
    pub average: Vec<String>,
    /// The comparison.
    pub compare: Compare,
    /// Reduction of the points of `each`.
    pub take: Take,
    /// The pass band.
    pub pass: Band,
}

impl Test {
    /// The fields of axes in [`Self::average`]: the values of each count alike, however many labels have them.
    pub fn average_fields(&self) -> Vec<String> {
        let names = self.average.iter();
        names.filter(|name| name.contains('.')).cloned().collect()
    }
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
    pub select: BTreeMap<String, String>,
}

impl Against {
    /// In words: `recovery=arq`.
    pub fn describe(&self) -> String {
        let labels = self.select.iter();
        let labels = labels.map(|(axis, label)| format!("{axis}={label}"));
        let measure = self.measure.iter().cloned();
        measure.chain(labels).collect::<Vec<_>>().join(", ")
    }
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
