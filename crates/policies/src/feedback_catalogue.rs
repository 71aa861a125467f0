//! Feedback policies by name: those of this crate, and others written by its user.

use swiftwater_tunable::{Catalogue, Family};

use crate::chorus::ChorusFeedbackConfig;
use crate::feedback::{FeedbackFactory, PlayerFeedbackConfig, Silent};
use crate::tecc::{TeccClientFeedbackConfig, TeccFeedbackConfig};

/// Feedback policies by name.
pub type FeedbackCatalogue = Catalogue<dyn FeedbackFactory>;

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
        all.add(
            "tecc",
            "TECC, the server: rate and queue of a tunnel for the congestion controller",
            TeccFeedbackConfig::default(),
        );
        all.add(
            "tecc-client",
            "TECC, the client: reports of its tunnel, and where packets were lost",
            TeccClientFeedbackConfig::default(),
        );
    }
}
