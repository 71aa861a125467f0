//! The structure of XGBoost's model files, and the checks that make a [`Model`] of it.

use serde::Deserialize;

use super::error::ModelError;
use super::{MAX_DEPTH, MAX_NODES, MAX_TREES, Model, Node, Root};
use crate::features::Feature;

/// A model file; what is not used here is skipped.
#[derive(Deserialize)]
pub(super) struct Document {
    learner: Learner,
}

#[derive(Deserialize)]
struct Learner {
    #[serde(default)]
    feature_names: Vec<String>,
    gradient_booster: Booster,
    #[serde(rename = "learner_model_param")]
    parameters: ModelParameters,
    objective: Objective,
}

#[derive(Deserialize)]
struct Objective {
    name: String,
}

#[derive(Deserialize)]
struct ModelParameters {
    base_score: String,
    num_feature: String,
}

#[derive(Deserialize)]
struct Booster {
    name: String,
    /// Absent in other kinds, whose name is reported instead.
    model: Option<Forest>,
}

#[derive(Deserialize)]
struct Forest {
    trees: Vec<Tree>,
}

#[derive(Deserialize)]
struct Tree {
    left_children: Vec<i32>,
    right_children: Vec<i32>,
    split_indices: Vec<u32>,
    split_conditions: Vec<f32>,
    default_left: Vec<Flag>,
    #[serde(default)]
    split_type: Vec<u32>,
}

/// Truth values are numbers since 1.6, `true` and `false` before.
#[derive(Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Flag {
    Bool(bool),
    Number(u8),
}

impl Flag {
    fn is_set(self) -> bool {
        match self {
            Self::Bool(set) => set,
            Self::Number(number) => number != 0,
        }
    }
}

impl Document {
    pub(super) fn into_model(self) -> Result<Model, ModelError> {
        let learner = self.learner;
        expect("kind", &learner.gradient_booster.name, "gbtree")?;
        expect("objective", &learner.objective.name, "binary:logistic")?;
        let parameters = &learner.parameters;
        let inputs = inputs(learner.feature_names, &parameters.num_feature)?;
        let margin = margin(&parameters.base_score)?;
        let trees = learner.gradient_booster.model.map(|forest| forest.trees);
        let trees = trees.unwrap_or_default();
        if trees.len() > MAX_TREES {
            return Err(ModelError::TooLarge("trees"));
        }
        let mut nodes = Vec::new();
        let mut roots = Vec::with_capacity(trees.len());
        for (number, tree) in trees.iter().enumerate() {
            let node = nodes.len() as u32;
            let depth = tree.pack(number, &inputs, &mut nodes)?;
            roots.push(Root { node, depth });
        }
        Ok(Model {
            nodes: nodes.into(),
            roots: roots.into(),
            inputs: inputs.into(),
            margin,
        })
    }
}

fn expect(what: &'static str, found: &str, expected: &'static str) -> Result<(), ModelError> {
    if found == expected {
        return Ok(());
    }
    Err(ModelError::Kind {
        what,
        found: found.chars().take(40).collect(),
        expected,
    })
}

fn inputs(names: Vec<String>, count: &str) -> Result<Vec<Feature>, ModelError> {
    if names.is_empty() {
        return match count.parse() {
            Ok(Feature::COUNT) => Ok(Feature::ALL.to_vec()),
            Ok(5) => Ok(Feature::QUIC.to_vec()),
            other => Err(ModelError::Unnamed(other.unwrap_or_default())),
        };
    }
    let known = |name: String| Feature::named(&name).ok_or(ModelError::Feature(name));
    names.into_iter().map(known).collect()
}

/// The base score as a margin. It is a probability in a string, since 3.1 within brackets.
fn margin(text: &str) -> Result<f32, ModelError> {
    let number = text.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let score = number.unwrap_or(text).trim().parse::<f32>();
    match score {
        Ok(score) if score > 0.0 && score < 1.0 => Ok((score / (1.0 - score)).ln()),
        _ => Err(ModelError::BaseScore(text.chars().take(40).collect())),
    }
}

/// A node that is still to be packed.
struct Waiting {
    node: usize,
    depth: usize,
    /// The packed parent whose right child it is.
    parent: Option<usize>,
}

impl Tree {
    /// Appends the nodes that are reachable from the root, each left child directly after its parent. Returns
    /// the tree's depth.
    fn pack(
        &self,
        tree: usize,
        inputs: &[Feature],
        packed: &mut Vec<Node>,
    ) -> Result<u32, ModelError> {
        let wrong = |node, what| ModelError::Tree { tree, node, what };
        let count = self.left_children.len();
        let lengths = [
            self.right_children.len(),
            self.split_indices.len(),
            self.split_conditions.len(),
            self.default_left.len(),
        ];
        if count == 0 || lengths.iter().any(|length| *length != count) {
            return Err(wrong(0, "the node arrays are empty or differ in length"));
        }
        if self.split_type.iter().any(|kind| *kind != 0) {
            return Err(wrong(0, "categorical splits are not supported"));
        }
        let mut deepest = 0;
        let mut seen = vec![false; count];
        let mut waiting = vec![Waiting {
            node: 0,
            depth: 0,
            parent: None,
        }];
        while let Some(Waiting {
            node,
            depth,
            parent,
        }) = waiting.pop()
        {
            if std::mem::replace(&mut seen[node], true) {
                return Err(wrong(node, "it has two parents"));
            }
            if packed.len() >= MAX_NODES {
                return Err(ModelError::TooLarge("nodes"));
            }
            if depth > MAX_DEPTH {
                return Err(wrong(node, "the tree is deeper than 32"));
            }
            deepest = deepest.max(depth);
            let place = packed.len();
            if let Some(parent) = parent {
                packed[parent].right = place as u32;
            }
            let made = self.node(node, place as u32, inputs);
            packed.push(made.map_err(|what| wrong(node, what))?);
            let Some(children) = self.children(node).map_err(|what| wrong(node, what))? else {
                continue;
            };
            let [left, right] = children;
            let depth = depth + 1;
            waiting.push(Waiting {
                node: right,
                depth,
                parent: Some(place),
            });
            waiting.push(Waiting {
                node: left,
                depth,
                parent: None,
            });
        }
        Ok(deepest as u32)
    }

    fn children(&self, node: usize) -> Result<Option<[usize; 2]>, &'static str> {
        let pair = [self.left_children[node], self.right_children[node]];
        if pair == [-1, -1] {
            return Ok(None);
        }
        let child = |number: i32| match usize::try_from(number) {
            Ok(child) if child <= node => Err("a child does not come after it"),
            Ok(child) if child < self.left_children.len() => Ok(child),
            _ => Err("a child does not exist"),
        };
        Ok(Some([child(pair[0])?, child(pair[1])?]))
    }

    /// The node for `place`, as a leaf until its right child is placed.
    fn node(&self, node: usize, place: u32, inputs: &[Feature]) -> Result<Node, &'static str> {
        let value = self.split_conditions[node];
        if !value.is_finite() {
            return Err("its value is not finite");
        }
        let is_leaf = self.left_children[node] == -1;
        let input = inputs.get(self.split_indices[node] as usize);
        let feature = match input {
            Some(feature) => *feature as u8,
            None if is_leaf => 0,
            None => return Err("its feature does not exist"),
        };
        Ok(Node {
            value,
            right: place,
            feature,
            missing_left: self.default_left[node].is_set(),
        })
    }
}
