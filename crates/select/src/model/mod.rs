//! Gradient-boosted trees that score a network: reading of XGBoost's files, and prediction.
//!
//! A model file is untrusted input: `document` checks size, shape and order of the nodes before a model
//! exists, so that prediction can neither loop nor read outside of its arrays. Training happens
//! elsewhere, in Python.

mod document;
mod error;
mod ubj;

use std::sync::Arc;

use crate::arm::Transport;
use crate::features::{Feature, Features};

pub use error::ModelError;

/// Most trees of a model.
pub const MAX_TREES: usize = 1024;
/// Most nodes of a model, over all of its trees.
pub const MAX_NODES: usize = 65_536;
/// Greatest depth of a tree: edges between the root and a leaf.
pub const MAX_DEPTH: usize = 32;
/// Largest model file, bytes.
pub const MAX_FILE: usize = 16 << 20;

/// A node in 12 bytes. The left child of a split follows it directly.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// The bound of a split, or the value of a leaf.
    value: f32,
    /// Position of the right child; a leaf's own position.
    right: u32,
    /// Position of the feature.
    feature: u8,
    /// Where a missing value goes.
    missing_left: bool,
}

/// A tree: where it begins, and how many steps lead to every leaf.
#[derive(Clone, Copy, Debug)]
struct Root {
    node: u32,
    depth: u32,
}

/// Trees that are walked at the same time: their steps don't wait for each other's memory.
const ABREAST: usize = 8;

/// A model: P(QUIC is quicker than TCP | features), as trained with `binary:logistic`.
#[derive(Clone, Debug)]
pub struct Model {
    nodes: Box<[Node]>,
    roots: Box<[Root]>,
    inputs: Box<[Feature]>,
    margin: f32,
}

impl Model {
    /// Reads a model that XGBoost has saved as JSON (from 1.0 on) or UBJ; which of them it is shows in
    /// the first bytes.
    ///
    /// The model's feature names select its inputs by [`Feature::name`]. Without names, a model with seven
    /// inputs has [`Feature::ALL`] and one with five [`Feature::QUIC`].
    pub fn read(file: &[u8]) -> Result<Self, ModelError> {
        if file.len() > MAX_FILE {
            return Err(ModelError::TooLarge("bytes"));
        }
        // A UBJ object goes on with the type of a key's length or of its values, JSON with a key or space.
        let is_ubj = matches!(
            file,
            [b'{', b'i' | b'U' | b'I' | b'l' | b'L' | b'$' | b'#', ..]
        );
        let document = if is_ubj {
            serde_json::from_value(ubj::read(file)?)
        } else {
            serde_json::from_slice(file)
        };
        document::Document::into_model(document?)
    }

    /// Probability that QUIC is quicker, 0 to 1. Missing features (NaN) take the default direction that
    /// training found.
    pub fn predict(&self, features: &Features) -> f32 {
        1.0 / (1.0 + (-self.margin(features)).exp())
    }

    /// The logarithm of the odds that QUIC is quicker.
    pub fn margin(&self, features: &Features) -> f32 {
        // One more than there are, so that no position is out of range.
        let mut values = [f32::NAN; Feature::COUNT + 1];
        values[..Feature::COUNT].copy_from_slice(features.values());
        let mut sum = self.margin;
        for trees in self.roots.chunks(ABREAST) {
            let mut places = [0; ABREAST];
            let mut depth = 0;
            for (place, root) in places.iter_mut().zip(trees) {
                *place = root.node;
                depth = depth.max(root.depth);
            }
            for _ in 0..depth {
                for place in &mut places {
                    *place = self.step(*place, &values);
                }
            }
            for place in &places[..trees.len()] {
                sum += self.nodes[*place as usize].value;
            }
        }
        sum
    }

    /// The child that the features lead to; a leaf leads to itself. Without branches: which child it is can't
    /// be foreseen.
    fn step(&self, at: u32, values: &[f32; Feature::COUNT + 1]) -> u32 {
        let node = &self.nodes[at as usize];
        let value = values[usize::from(node.feature & 7)];
        let left = (value < node.value) | (value.is_nan() & node.missing_left);
        let is_split = node.right != at;
        if left {
            at + u32::from(is_split)
        } else {
            node.right
        }
    }

    /// The features that the model looks at, in its order.
    pub fn inputs(&self) -> &[Feature] {
        &self.inputs
    }

    /// Number of trees.
    pub fn trees(&self) -> usize {
        self.roots.len()
    }

    /// Number of nodes over all trees.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Bytes of memory, without the allocator's share.
    pub fn memory(&self) -> usize {
        size_of_val(&*self.nodes) + size_of_val(&*self.roots) + size_of_val(&*self.inputs)
    }
}

/// A model for each transport in use: their scores answer the same question from different sides.
#[derive(Clone, Debug, Default)]
pub struct Models {
    /// For requests that go over TCP now; `None` scores nothing.
    pub tcp: Option<Arc<Model>>,
    /// For requests that go over QUIC now; `None` scores nothing.
    pub quic: Option<Arc<Model>>,
}

impl Models {
    /// No models: experiments are started by new connections and changes of the network alone.
    pub fn none() -> Self {
        Self::default()
    }

    /// The models of this crate, trained on the requests of simulated users (docs/select-model.md). An error means
    /// that the crate's files are damaged.
    pub fn shipped() -> Result<Self, ModelError> {
        Self::read(
            include_bytes!("../../models/tcp.ubj"),
            include_bytes!("../../models/quic.ubj"),
        )
    }

    /// Models from two files.
    pub fn read(tcp: &[u8], quic: &[u8]) -> Result<Self, ModelError> {
        Ok(Self {
            tcp: Some(Arc::new(Model::read(tcp)?)),
            quic: Some(Arc::new(Model::read(quic)?)),
        })
    }

    /// The model of a transport.
    pub fn of(&self, transport: Transport) -> Option<&Model> {
        match transport {
            Transport::Tcp => self.tcp.as_deref(),
            Transport::Quic => self.quic.as_deref(),
        }
    }
}
