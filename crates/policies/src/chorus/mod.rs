//! Chorus (*Coordinating Mobile Multipath Scheduling and Adaptive Video Streaming*, `MobiCom` 2024): the sender's part.
//!
//! A response of known size is of use only when all of it has arrived, within the time in which the player expects it.
//! Before it starts its bytes are divided among the paths in proportion to their bandwidths (coarse decision,
//! [`scheduler`]); while it is sent, what hasn't left is divided anew whenever one path runs out of its part and another
//! doesn't keep up (fine correction); what is in flight at the end is copied to other paths only if the response may come
//! late ([`reinjector`]). The player is told how the paths share the work ([`feedback`]), so that it can predict
//! throughput.
//!
//! [`plus_scheduler`] and [`plus_reinjector`] are the project's variant, `chorus+`, with the same feedback.
//!
//! The three policies of a connection share no state. Each computes bandwidths ([`path_rate`]) and shares ([`shares`])
//! by itself from the same views. The player's part (prediction, expected time, choice of the bitrate) is not here: it
//! belongs to the application, and the messages to a feedback policy of the player.

mod expectations;
pub mod feedback;
pub mod path_rate;
pub mod plus_reinjector;
pub mod plus_scheduler;
mod quotas;
pub mod reinjector;
pub mod scheduler;
pub mod shares;

pub use feedback::{ChorusFeedback, ChorusFeedbackConfig};
pub use path_rate::{PathRates, RateSource};
pub use plus_reinjector::{ChorusPlusReinjector, ChorusPlusReinjectorConfig};
pub use plus_scheduler::{ChorusPlusScheduler, ChorusPlusSchedulerConfig};
pub use reinjector::{ChorusReinjector, ChorusReinjectorConfig};
pub use scheduler::{ChorusScheduler, ChorusSchedulerConfig};

use swiftwater_quic::policy::{Hints, PathView, ResponseStart};

/// True if a response may use the path: it is active, and not only a backup.
fn is_shared(path: &PathView) -> bool {
    path.is_usable() && !path.is_backup()
}

/// The response that `hints` announce, if it is another one than `known`.
fn new_response(hints: &Hints, known: Option<&ResponseStart>) -> Option<ResponseStart> {
    let is_known = |response: &ResponseStart| {
        known.is_some_and(|known| {
            (known.stream, known.requested_at) == (response.stream, response.requested_at)
        })
    };
    hints.response.filter(|response| !is_known(response))
}
