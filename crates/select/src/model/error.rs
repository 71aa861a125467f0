//! Why a model file can't be used.

use thiserror::Error;

/// Why a model file can't be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ModelError {
    /// Not the JSON, or not the structure, of XGBoost's model files.
    #[error("not a model of XGBoost: {0}")]
    Json(#[from] serde_json::Error),
    /// Not UBJSON, at this byte.
    #[error("not a model of XGBoost: no UBJSON at byte {0}")]
    Ubj(usize),
    /// More than a model may have.
    #[error("the model has too many {0}")]
    TooLarge(&'static str),
    /// A model of another kind: only `gbtree` with `binary:logistic` scores networks.
    #[error("the model's {what} is `{found}`; it must be `{expected}`")]
    Kind {
        /// What differs.
        what: &'static str,
        /// What the file says.
        found: String,
        /// What it must say.
        expected: &'static str,
    },
    /// A feature that is not extracted here.
    #[error(
        "the model has the feature `{0}`; known are Retran_rate, TTFB_avg, RTT_avg, TTFB, resp_rec_G, TTFB_rate and req_cmpl_G"
    )]
    Feature(String),
    /// Unnamed features whose meaning is not clear from their number.
    #[error("the model has {0} unnamed features; only 7 and 5 have a fixed order")]
    Unnamed(usize),
    /// The base score is not a probability.
    #[error("the model's base score `{0}` is not a probability between 0 and 1")]
    BaseScore(String),
    /// A tree whose nodes contradict each other.
    #[error("tree {tree}, node {node}: {what}")]
    Tree {
        /// Position of the tree.
        tree: usize,
        /// Position of the node in the tree.
        node: usize,
        /// What is wrong.
        what: &'static str,
    },
}
