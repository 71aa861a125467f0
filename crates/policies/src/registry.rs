//! Policies by name.

use std::sync::Arc;

use swiftwater_quic::policy::PolicyFactory;
use thiserror::Error;

use crate::single_path::SinglePathPolicies;

/// There are no policies of that name.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("no policies are called '{0}'; known: {known}", known = NAMES.join(", "))]
pub struct UnknownPolicies(pub String);

const NAMES: &[&str] = &["single-path"];

/// The names that [`by_name`] knows.
pub fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().copied()
}

/// The policies called `name`.
pub fn by_name(name: &str) -> Result<Arc<dyn PolicyFactory>, UnknownPolicies> {
    match name {
        "single-path" => Ok(Arc::new(SinglePathPolicies)),
        other => Err(UnknownPolicies(other.to_owned())),
    }
}
