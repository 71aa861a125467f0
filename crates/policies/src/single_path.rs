//! One path, acknowledgements per RFC 9000, and the re-injector of a system; alone, plain ARQ: what a
//! plain QUIC v1 stack does.

use std::fmt;

use swiftwater_congestion::{Parameter, ParameterError, Tunable};
use swiftwater_quic::policy::{NoReinjection, PolicyFactory, Reinjector};

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
        Err(ParameterError::Unknown {
            name: name.to_owned(),
            known: "none".to_owned(),
        })
    }
}

/// The policies of a connection with one path: acknowledgements per RFC 9000, section 13.2.2, and
/// the re-injector of a system, plain ARQ unless another is given.
#[derive(Clone, Copy, Debug, Default)]
pub struct SinglePathPolicies<R = Arq>(pub R);

impl<R: ReinjectorFactory> PolicyFactory for SinglePathPolicies<R> {
    fn reinjector(&self) -> Box<dyn Reinjector> {
        self.0.reinjector()
    }
}
