//! Algorithms by name, each with its default parameters. For other parameters make the factory
//! directly, for example a [`CubicConfig`].

use std::sync::Arc;

use thiserror::Error;

use crate::controller::ControllerFactory;
use crate::cubic::CubicConfig;
use crate::newreno::NewRenoConfig;

type Maker = fn() -> Arc<dyn ControllerFactory>;

/// Every selectable algorithm; a new one adds its line here.
const ALGORITHMS: &[(&str, Maker)] = &[
    ("cubic", || Arc::new(CubicConfig::default())),
    ("newreno", || Arc::new(NewRenoConfig::default())),
];

/// No algorithm has the name asked for.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("unknown congestion controller `{name}`; known are: {}", known())]
pub struct UnknownController {
    /// The name asked for.
    pub name: String,
}

/// Names accepted by [`by_name`], in alphabetical order.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALGORITHMS.iter().map(|(name, _)| *name)
}

/// The algorithm called `name` (upper or lower case), with its default parameters.
pub fn by_name(name: &str) -> Result<Arc<dyn ControllerFactory>, UnknownController> {
    ALGORITHMS
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, make)| make())
        .ok_or_else(|| UnknownController {
            name: name.to_owned(),
        })
}

fn known() -> String {
    names().collect::<Vec<_>>().join(", ")
}
