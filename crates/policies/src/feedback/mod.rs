//! Feedback policies, one file each, and their names: what player and sender tell each other
//! ([`QoeSignal`](swiftwater_quic::policy::QoeSignal)).

mod player;

pub use player::{PlayerFeedback, PlayerFeedbackConfig};

use std::fmt;
use std::sync::Arc;

use swiftwater_quic::policy::{FeedbackPolicy, NoFeedback};
use swiftwater_tunable::{Catalogue, Family, MadeFrom, Parameter, ParameterError, Tunable};

use crate::chorus::ChorusFeedbackConfig;

/// Makes feedback policies of one system. Implemented by their configuration.
pub trait FeedbackFactory: Send + Sync + fmt::Debug {
    /// One for a new connection.
    fn feedback(&self) -> Box<dyn FeedbackPolicy>;
}

/// Feedback policies by name.
pub type FeedbackCatalogue = Catalogue<dyn FeedbackFactory>;

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

impl Family for dyn FeedbackFactory {
    const KIND: &'static str = "feedback policy";

    /// Every feedback policy of this crate; a new one adds its line here.
    fn add_standard(all: &mut FeedbackCatalogue) {
        all.add("none", "no feedback", Silent);
        all.add(
            "chorus",
            "Chorus, the sender: how responses are divided among paths",
            ChorusFeedbackConfig::default(),
        );
        all.add(
            "player",
            "what a player has buffered, when it expects chunks, deadlines",
            PlayerFeedbackConfig::default(),
        );
    }
}
