//! Feedback policies, one file each: what player and sender tell each other
//! ([`QoeSignal`](swiftwater_quic::policy::QoeSignal)). That of Chorus is in [`chorus`](crate::chorus), their names are
//! in [`FeedbackCatalogue`](crate::FeedbackCatalogue).

mod player;

pub use player::{PlayerFeedback, PlayerFeedbackConfig};

use std::fmt;
use std::sync::Arc;

use swiftwater_quic::policy::{FeedbackPolicy, NoFeedback};
use swiftwater_tunable::{MadeFrom, Parameter, ParameterError, Tunable};

/// Makes feedback policies of one system. Implemented by their configuration.
pub trait FeedbackFactory: Send + Sync + fmt::Debug {
    /// One for a new connection.
    fn feedback(&self) -> Box<dyn FeedbackPolicy>;
}

/// No feedback.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl FeedbackFactory for Silent {
    fn feedback(&self) -> Box<dyn FeedbackPolicy> {
        Box::new(NoFeedback)
    }
}

impl Tunable for Silent {
    fn parameters(&self) -> Vec<Parameter> {
        Vec::new()
    }

    fn set(&mut self, name: &str, _value: &str) -> Result<(), ParameterError> {
        Err(ParameterError::none(name))
    }
}

impl<C: FeedbackFactory + 'static> MadeFrom<C> for dyn FeedbackFactory {
    fn made_from(config: C) -> Arc<Self> {
        Arc::new(config)
    }
}
