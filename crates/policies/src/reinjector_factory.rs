//! What makes re-injectors, and the one without any copies.

use std::fmt;

use swiftwater_quic::policy::{NoReinjection, Reinjector};
use swiftwater_tunable::{Parameter, ParameterError, Tunable};

/// Makes re-injectors of one system. Implemented by its configuration.
pub trait ReinjectorFactory: Send + Sync + fmt::Debug {
    /// One for a new connection.
    fn reinjector(&self) -> Box<dyn Reinjector>;
}

/// Plain ARQ: lost data is retransmitted each time that the loss of its newest copy is detected, and
/// nothing is sent twice before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arq;

impl ReinjectorFactory for Arq {
    fn reinjector(&self) -> Box<dyn Reinjector> {
        Box::new(NoReinjection)
    }
}

impl Tunable for Arq {
    fn parameters(&self) -> Vec<Parameter> {
        Vec::new()
    }

    fn set(&mut self, name: &str, _value: &str) -> Result<(), ParameterError> {
        Err(ParameterError::none(name))
    }
}
